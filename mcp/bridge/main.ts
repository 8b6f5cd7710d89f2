#!/usr/bin/env node
import { apiKeyOf } from "../../src/client/api-key-file.ts";
import { relayStreams, sendTo } from "./relay.ts";

/** The bridge for machines with Node alone: relays standard input to the service at OUTGATE_URL. */
const { OUTGATE_URL: url } = process.env;

const warn = (text: string) => void process.stderr.write(text);

const key = await apiKeyOf(process.env).catch((error: unknown) => {
  warn(`outgate mcp: ${error instanceof Error ? error.message : String(error)}\n`);
  return null;
});

if (url === undefined || url === "" || key === null) {
  warn(
    "outgate mcp: set OUTGATE_URL and OUTGATE_API_KEY (or OUTGATE_API_KEY_FILE). To run the whole service, call `outgate mcp` with Bun.\n",
  );
  process.exitCode = 2;
} else {
  await relayStreams(
    { input: process.stdin, write: (text) => void process.stdout.write(text), warn },
    sendTo(url, key),
  );
}
