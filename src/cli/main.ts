#!/usr/bin/env bun
import { COMMANDS } from "./commands.ts";
import { processIo } from "./command.ts";
import { run } from "./run.ts";

process.exitCode = await run(process.argv.slice(2), processIo(process.env), COMMANDS);
