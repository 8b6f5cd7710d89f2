#!/usr/bin/env node
import { processIo } from "./command.ts";
import { runCommandLine } from "./program.ts";

// The entry point of a bundle for Node, without the commands that need Bun.
process.exitCode = await runCommandLine(process.argv.slice(2), processIo(process.env));
