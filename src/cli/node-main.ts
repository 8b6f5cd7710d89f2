#!/usr/bin/env node
import { processIo } from "./io.ts";
import { run } from "./program.ts";

// The entry point of a bundle for Node, without the commands that need Bun.
process.exitCode = await run(process.argv.slice(2), processIo(process.env));
