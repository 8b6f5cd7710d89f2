#!/usr/bin/env node
import { relayToService } from "./relay.ts";

/** The bridge for machines with Node alone: relays standard input to the service at OUTGATE_URL. */
const { env, stdin: input, stdout, stderr } = process;

try {
  await relayToService({ env, input, out: (text) => void stdout.write(text), err: (text) => void stderr.write(text) });
} catch (error) {
  stderr.write(`outgate mcp: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 2;
}
