import { type CliCommand, JSON_OPTION } from "./command.ts";
import { type Io, UsageError } from "./io.ts";
import { wholeNumber } from "./option-values.ts";
import { PORT_MAX } from "../core/limits.ts";
import type { SessionOptions } from "./session.ts";
import type { HealthFlags } from "./commands/health.ts";
import type { DemoFlags, RotateKeyFlags } from "./commands/server.ts";

/** Adds the commands that run a service. Loads their code only when one runs. */
export function addServerCommands(program: CliCommand, io: Io): void {
  program.commandsGroup("On the server's machine:");
  program
    .command("serve")
    .description("run the service")
    .takes("no arguments; its settings come from the environment.")
    .action(async () => (await server()).runService(io));
  program
    .command("demo")
    .description("try Outgate: play a day of five agents in a service of its own")
    .option("--port <port>", "where it listens; default 3001", parsePort)
    .addHelpText(
      "after",
      `
It has a database of its own, which it deletes when Ctrl-C ends it, and does not read your settings. Every host of the day is
played by a target in this process: the demo calls nothing else.`,
    )
    .action(async (options: DemoFlags) => (await server()).runDemo(io, options));
  program
    .serviceCommand("doctor", "check settings and connection, and suggest fixes")
    .option(...JSON_OPTION)
    .addHelpText("after", "\nExit code: 0 no problems, 1 problems found.")
    .action(async (options: SessionOptions) => (await import("./commands/doctor.ts")).diagnose(io, options));
  program
    .command("health")
    .description("ask the service with these settings whether it runs, for supervisors and health checks")
    .option("--ready", "ask whether it can store actions")
    .takes("no arguments; HOST and PORT come from the environment.")
    .addHelpText("after", "\nExit code: 0 yes, 1 no.")
    .action(async (options: HealthFlags) => (await import("./commands/health.ts")).checkHealth(io, options));
  program
    .command("mcp")
    .description("run the MCP server on standard input and output, for OUTGATE_URL or with the service itself")
    .takes("no arguments; set OUTGATE_URL and OUTGATE_API_KEY.")
    .action(async () => (await server()).speakMcp(io));
  addAccessCommands(program, io);
  program
    .command("backup")
    .description("copy database and key into a folder, also while the service runs")
    .argument("<folder>", "it is created")
    .takes("a folder.")
    .action(async (folder: string) => (await server()).runBackup(io, folder));
  program
    .command("rotate-secret-key")
    .description("encrypt everything with a new master key; the service must be stopped")
    .option(
      "--new-links",
      "make all existing receipt, approval and invitation links invalid, for example after a leak of the key; without it they keep working",
    )
    .option("--server-is-stopped", "required for a remote database, where the command can't check it")
    .addHelpText(
      "after",
      `
Without SECRET_KEY it creates a new key file. With SECRET_KEY, give the new key as NEW_SECRET_KEY.
If it is interrupted, run it again with the same options: it continues where it stopped.`,
    )
    .action(async (options: RotateKeyFlags) => (await server()).rotateSecretKey(io, options));
  program
    .command("migrate")
    .description("copy the database file to PostgreSQL; the service must be stopped")
    .requiredOption("--to <url>", "an empty database: postgres://<user>@<host>:5432/<database>")
    .addHelpText(
      "after",
      `
The file of DATABASE_URL is only read. The password can be in PGPASSWORD instead of the address, where other users of this
machine don't see it. If it is interrupted, run it again: it continues where it stopped. At the end every value is compared.`,
    )
    .action(async ({ to }: { readonly to: string }) => (await server()).migrateDatabase(io, to));
}

function parsePort(text: string): number {
  const port = wholeNumber("port")(text);
  if (port <= PORT_MAX) return port;
  throw new UsageError(`--port takes a port from 1 to ${PORT_MAX}, not ${port}.`);
}

/** Adds commands for people who lost their link, password or key. */
function addAccessCommands(program: CliCommand, io: Io): void {
  program
    .command("welcome-link")
    .description("print a new link with which the first person logs in")
    .takes("no arguments.")
    .action(async () => (await server()).renewWelcomeLink(io));
  program
    .command("reset-password <email>")
    .description("print a link with which a person chooses a new password")
    .takes("one email address.")
    .action(async (email: string) => (await server()).resetPassword(io, email));
  program
    .command("new-owner-key [email]")
    .description("create another owner key, if one is lost")
    .takes("at most one email address.")
    .action(async (email?: string) => (await server()).addOwnerKey(io, email));
}

const server = () => import("./commands/server.ts");
