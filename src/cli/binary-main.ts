import { processIo } from "./io.ts";
import { runCommandLine } from "./program.ts";
import { addServerCommands } from "./server-commands.ts";

// The entry point of the binary.

/**
 * Settings of Bun, which reads them when it starts. Of calls it makes 256 at a time by default, less than the service may have
 * under way. Its allocator gives every hole in its pages back to the system, several times a second: an eighth of the
 * processor's time, for 50 MB after a burst.
 */
const ENGINE = { BUN_CONFIG_MAX_HTTP_REQUESTS: "1024", MIMALLOC_PURGE_HOLES: "0" };

const args = process.argv.slice(2);
const isUnset = Object.keys(ENGINE).some((name) => process.env[name] === undefined);
if (isUnset && (args[0] === "serve" || args[0] === "mcp")) {
  // The process replaces itself, and keeps its id.
  process.execve?.(process.execPath, [process.execPath, ...args], { ...ENGINE, ...process.env });
}
process.exitCode = await runCommandLine(args, processIo(process.env), addServerCommands);
