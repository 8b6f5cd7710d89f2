import { readFileSync } from "node:fs";
import { join } from "node:path";
import { clientTypes } from "../client-types.ts";
import { ROOT } from "./bundle.ts";

const CLIENT = `
/** A client of the HTTP API: each call is one request, and its repetitions where they are safe. */
export declare function createClient(settings: ClientSettings): OutgateClient;

/**
 * Checks that a call or callback was signed by Outgate with this secret (\`whsec_…\`) within the last five minutes. Several
 * secrets: any of them may have signed, for the day after a rotation. Throws an \`OutgateError\` with the code \`invalid_signature\`.
 */
export declare function verify(secret: string | readonly string[], request: SignedRequest): Verified;

/** Any failure of a call, except an abort by the caller. The message is for people. */
export declare class OutgateError extends Error implements OutgateErrorFacts {
  readonly name: "OutgateError";
  readonly code: OutgateErrorFacts["code"];
  readonly status: OutgateErrorFacts["status"];
  readonly requestId: OutgateErrorFacts["requestId"];
  readonly details: OutgateErrorFacts["details"];
  readonly retryAfterMs: OutgateErrorFacts["retryAfterMs"];
  constructor(
    code: OutgateErrorCode,
    message: string,
    facts?: Partial<OutgateErrorFacts> & { readonly cause?: unknown },
  );
}
`;

/** The declarations of the npm package: they need no other package. */
export async function declarations(): Promise<string> {
  const api = await clientTypes("described");
  const own = readFileSync(join(ROOT, "src/client/types.ts"), "utf8");
  const text = `${api}${own}`
    .replaceAll(/^import type .* from "\.\/openapi\.ts";\n/gm, "")
    .replaceAll("Api.", "")
    .replaceAll(/^\/\/.*\n/gm, "");
  if (/^import/m.test(text)) throw new Error("src/client/types.ts imports more than the types of the API.");
  return `${text.trim()}\n${CLIENT}`;
}
