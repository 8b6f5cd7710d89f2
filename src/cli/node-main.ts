#!/usr/bin/env node
import { type CliCommand } from "./command.ts";
import { type Io, processIo } from "./io.ts";
import { runCommandLine } from "./program.ts";

// The entry point for plain Node, in the npm package: without the commands that need Bun.
process.exitCode = await runCommandLine(process.argv.slice(2), processIo(process.env), addBridge);

function addBridge(program: CliCommand, io: Io): void {
  program
    .command("mcp")
    .description("speak MCP on standard input to the service at OUTGATE_URL")
    .takes("no arguments; set OUTGATE_URL and OUTGATE_API_KEY.")
    .action(async () => (await import("../../mcp/bridge/relay.ts")).relayToService(io));
}
