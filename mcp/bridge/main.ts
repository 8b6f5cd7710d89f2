#!/usr/bin/env node
import { relayStreams, sendTo } from "./bridge.ts";

/** The bridge alone, for a machine that has only Node: relays standard input to the service at OUTGATE_URL. */
const { OUTGATE_URL: url, OUTGATE_API_KEY: key } = process.env;
const warn = (text: string) => void process.stderr.write(text);

if (url === undefined || url === "" || key === undefined || key === "") {
  warn("outgate mcp: set OUTGATE_URL and OUTGATE_API_KEY. To run the whole service, call `outgate mcp` with Bun.\n");
  process.exitCode = 2;
} else {
  await relayStreams(
    { input: process.stdin, write: (text) => void process.stdout.write(text), warn },
    sendTo(url, key),
  );
}
