#!/usr/bin/env node
import { CLIENT_COMMANDS } from "./client-commands.ts";
import { processIo } from "./command.ts";
import { run } from "./run.ts";

// The entry point of a bundle for Node, without the commands that need Bun.
process.exitCode = await run(process.argv.slice(2), processIo(process.env), CLIENT_COMMANDS);
