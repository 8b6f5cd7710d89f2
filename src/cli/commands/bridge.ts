import { relayStreams, sendTo } from "../../../mcp/bridge/relay.ts";
import { apiKeyOf } from "../../client/api-key-file.ts";
import type { Io } from "../io.ts";

/** `outgate mcp` with OUTGATE_URL: MCP over standard streams, as a bridge to a service. Runs on plain Node. */
export async function bridgeToService(io: Io): Promise<void> {
  const { OUTGATE_URL: url = "" } = io.env;
  if (url === "") {
    throw new Error(
      "Set OUTGATE_URL and OUTGATE_API_KEY (or OUTGATE_API_KEY_FILE). To run the whole service, call `outgate mcp` with Bun.",
    );
  }
  const key = (await apiKeyOf(io.env)) ?? "";
  if (key === "")
    throw new Error("Set OUTGATE_API_KEY or OUTGATE_API_KEY_FILE: the service at OUTGATE_URL needs an agent's key.");
  await relayStreams(standardStreams(io), sendTo(url, key));
}

/** The streams that an MCP client speaks on. */
export function standardStreams({ out, err }: Io) {
  return { input: process.stdin, write: out, warn: err };
}
