import { VERSION } from "../config/config.ts";
import { type Commands, EXIT, type Io, UsageError } from "./command.ts";

/** Runs `outgate <command> …` and resolves with its exit code. Never rejects: errors are written to standard error. */
export async function run(args: readonly string[], io: Io, commands: Commands): Promise<number> {
  const [name, ...rest] = args;
  if (name === undefined || name === "help" || name === "--help" || name === "-h") {
    io.out(help(commands));
    return EXIT.ok;
  }
  if (name === "--version" || name === "version") {
    io.out(`${VERSION}\n`);
    return EXIT.ok;
  }
  const listed = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (listed === undefined) {
    io.err(`There is no command ${JSON.stringify(name)}. \`outgate help\` lists them.\n`);
    return EXIT.usage;
  }
  const command = await listed.load();
  if (rest.includes("--help") || rest.includes("-h")) {
    const { usage, details } = command;
    io.out(`outgate ${usage}\n\n  ${listed.summary}\n${details === undefined ? "" : `\n${details}\n`}`);
    return EXIT.ok;
  }
  try {
    return await command.run(rest, io);
  } catch (error) {
    io.err(`${error instanceof Error ? error.message : String(error)}\n`);
    if (!(error instanceof UsageError)) return EXIT.failed;
    io.err(`Usage: outgate ${command.usage}\n`);
    return EXIT.usage;
  }
}

const KEYS = `Commands that talk to a service take the API key from OUTGATE_API_KEY,
from the file named by OUTGATE_API_KEY_FILE, or from --api-key-file <file>; - is standard input.`;

function help(commands: Commands): string {
  const names = Object.keys(commands);
  const width = Math.max(...names.map((name) => name.length));
  const lines = names.map((name) => `  ${name.padEnd(width)}  ${commands[name]?.summary ?? ""}`);
  return `outgate: the action delivery service\n\n${lines.join("\n")}\n\noutgate <command> --help shows its options. ${KEYS}\n`;
}
