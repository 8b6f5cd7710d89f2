#!/usr/bin/env node
import { CLIENT_COMMANDS } from "./client-commands.ts";
import { processIo } from "./command.ts";
import { run } from "./run.ts";

// The entry of a bundle for Node: the commands for which the service is elsewhere.

// The entry of a bundle for Node: the commands for which the service is elsewhere.
process.exitCode = await run(process.argv.slice(2), processIo(process.env), CLIENT_COMMANDS);
