#!/usr/bin/env bun
import { processIo } from "./io.ts";
import { runCommandLine } from "./program.ts";
import { addServerCommands } from "./server-commands.ts";

process.exitCode = await runCommandLine(process.argv.slice(2), processIo(process.env), addServerCommands);
