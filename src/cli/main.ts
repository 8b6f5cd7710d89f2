#!/usr/bin/env bun
import { processIo } from "./io.ts";
import { run } from "./program.ts";
import { addServerCommands } from "./server-commands.ts";

process.exitCode = await run(process.argv.slice(2), processIo(process.env), addServerCommands);
