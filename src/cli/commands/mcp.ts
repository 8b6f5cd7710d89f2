import { relayStreams, sendTo } from "../../../mcp/bridge/bridge.ts";
import type { Send } from "../../../mcp/bridge/send.ts";
import { apiKeyOf } from "../../client/api-key.ts";
import { serve } from "../../serve.ts";
import { firstStartNotice } from "../../welcome.ts";
import { type Command, EXIT, type Io, UsageError } from "../command.ts";

const ADVICE = " To use an Outgate that runs already, set OUTGATE_URL and OUTGATE_API_KEY.";

/** `outgate mcp`: agents that speak over standard streams (decisions 9). */
export const mcpCommand: Command = {
  usage: "mcp",
  async run(args, io) {
    if (args.length > 0) throw new UsageError("mcp takes no arguments; OUTGATE_URL and OUTGATE_API_KEY say where to.");
    const { OUTGATE_URL: url = "" } = io.env;
    const key = (await apiKeyOf(io.env)) ?? "";
    if (url === "") return beTheService(io, key);
    if (key === "")
      throw new Error(
        "OUTGATE_API_KEY is not set, nor OUTGATE_API_KEY_FILE: the service at OUTGATE_URL asks for an agent's key.",
      );
    await relayStreams(streamsOf(io), sendTo(url, key));
    return EXIT.ok;
  },
};

/** Runs the whole service, pages included, until the agent closes its end. */
async function beTheService(io: Io, key: string): Promise<number> {
  const served = await serve(io.env, { speaksTo: 2, insteadOfKeys: firstStartNotice, advice: ADVICE });
  const own: Readonly<Record<string, string>> = key === "" ? {} : { host: "localhost", authorization: `Bearer ${key}` };
  const send: Send = ({ headers, body = "", ...init }) => {
    const framed = { ...headers, ...own, "content-length": String(Buffer.byteLength(body)) };
    return served.app.answerAgent(
      new Request("http://localhost/mcp", { ...init, ...(body === "" ? {} : { body }), headers: framed }),
    );
  };
  await relayStreams(streamsOf(io), send);
  await served.stop();
  return EXIT.ok;
}

function streamsOf({ out, err }: Io) {
  return { input: process.stdin, write: out, warn: err };
}
