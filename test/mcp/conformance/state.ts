import { createRequestStateCodec } from "@modelcontextprotocol/server";

const codec = createRequestStateCodec<Record<string, unknown>>({ key: crypto.getRandomValues(new Uint8Array(32)) });

/** The state of the suite's own tools, as the SDK makes and checks it; the product's is its own. */
export const mint = (payload: Record<string, unknown>): Promise<string> => codec.mint(payload);
export const verify = codec.verify.bind(codec);
