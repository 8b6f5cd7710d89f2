import { processIo } from "./io.ts";
import { runCommandLine } from "./program.ts";
import { addServerCommands } from "./server-commands.ts";

// The entry point of the binary.

/** How many calls Bun makes at a time. The service may make more than its default of 256. */
const CALLS_AT_A_TIME = "1024";

const args = process.argv.slice(2);
const { BUN_CONFIG_MAX_HTTP_REQUESTS: calls } = process.env;
// Bun reads the setting only when it starts, so the process replaces itself and keeps its id.
if (calls === undefined && (args[0] === "serve" || args[0] === "mcp")) {
  process.execve?.(process.execPath, [process.execPath, ...args], {
    ...process.env,
    BUN_CONFIG_MAX_HTTP_REQUESTS: CALLS_AT_A_TIME,
  });
}
process.exitCode = await runCommandLine(args, processIo(process.env), addServerCommands);
