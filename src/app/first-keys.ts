import { existsSync, renameSync, rmSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { FirstKeys } from "../accounts/bootstrap.ts";
import { ENTER_KEY, firstActionCall } from "../api/code-samples.ts";
import { welcomeUrl } from "../accounts/welcome-links.ts";
import { COMMAND } from "../config/commit.ts";
import type { Config } from "../config/config.ts";
import type { Database, LogLevel } from "../config/values.ts";
import { errorCode, syncFolder, writeDurably } from "../crypto/master-key.ts";
import type { LogFields } from "../observability/log.ts";
import type { Paint } from "../observability/terminal.ts";

/** Where and how a start shows the first keys. */
export interface StartOutput {
  /** Writes the text. Returns whether all of it was written. */
  readonly say: (text: string) => boolean;
  /** A line of JSON for an event, regardless of the log level; null: people read the output as text. */
  readonly formatLine: ((level: LogLevel, event: string, fields: LogFields) => string) | null;
  /** The output ends up in a log, so it must not contain keys. */
  readonly isLogged: boolean;
  readonly paint: Paint;
}

/** Prints the first keys, or writes a file if output is logged. False: nobody saw them, so the next start shows them. */
export function printFirstKeys(
  config: Config,
  keys: FirstKeys,
  { say, formatLine, isLogged, paint }: StartOutput,
): boolean {
  const { baseUrl: url } = config;
  const print = (text: string, level: LogLevel, event: string, fields: LogFields) =>
    say(formatLine === null ? text : formatLine(level, event, fields));
  if (!isLogged) {
    const { ownerKey, agentKey, welcomeToken } = keys;
    return print(firstKeysText(config, keys, paint), "info", "service.first_keys", {
      message:
        "These are shown once. owner_key is for you, agent_key for your agent; open welcome_url in a browser and choose a password.",
      url,
      owner_key: ownerKey ?? undefined,
      agent_key: agentKey,
      welcome_url: welcomeToken === null ? undefined : welcomeUrl(config, welcomeToken),
    });
  }
  const file = firstKeysFile(config.database);
  try {
    writeFirstKeys(file, firstKeysText(config, keys));
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const message = `${why} Make its folder writable and start again, or start once in a terminal: that prints them.`;
    print(`\n${message}\n\n`, "error", "service.first_keys_not_written", { message });
    return false;
  }
  const what = "The first owner key, the first agent key and the link for you are in";
  const advice = "which only this user can read. Read it, then delete it: nothing else shows them.";
  const text = `\nOutgate listens on ${url}. ${what}\n\n  ${file}\n\n${advice}\n\n`;
  print(text, "info", "service.first_keys", { message: `${what} this file, ${advice}`, url, file });
  return true;
}

/** A notice for the operator while the file of the first keys exists; else null. */
export function firstKeysNotice(database: Database): string | null {
  const file = firstKeysFile(database);
  return existsSync(file) ? `The first keys are still in ${file}. Delete the file once you have read it.` : null;
}

/** The file of the first keys: next to the database, or in the working directory if the database is remote. */
function firstKeysFile(database: Database): string {
  return resolve(database.kind === "file" ? `${database.path}.first-keys` : "outgate.first-keys");
}

/** Writes a file of mode 0600 atomically, replacing one of an earlier start. Throws an error for the operator. */
function writeFirstKeys(file: string, text: string): void {
  const partial = `${file}.partial`;
  try {
    // An existing file may be readable by others, or be a link.
    rmSync(partial, { force: true });
    writeDurably(partial, text);
    renameSync(partial, file);
    syncFolder(dirname(file));
  } catch (cause) {
    rmSync(partial, { force: true });
    throw new Error(`The first keys can't be written to ${file} (${errorCode(cause)}).`, { cause });
  }
}

/** The text of the first start: keys, link and a command to try. */
export function firstKeysText(
  config: Pick<Config, "baseUrl">,
  { ownerKey, agentKey, welcomeToken }: FirstKeys,
  paint: Paint = (text) => text,
): string {
  const { baseUrl } = config;
  const owner = ownerKey ?? "(the one in BOOTSTRAP_API_KEY)";
  const steps = [
    welcomeToken !== null &&
      `To decide in a browser, open this once and choose a password. It works for
   7 days, and \`${COMMAND} welcome-link\` makes another:

   ${welcomeUrl(config, welcomeToken)}
`,
    ownerKey !== null &&
      `To use the command line, keep the owner key there; it asks for it:

   ${COMMAND} login ${baseUrl}
`,
    `Send a first action (bash, zsh). After the first line paste the agent key and press Enter:

${ENTER_KEY}

${firstActionCall(baseUrl)}
`,
    `Let an agent send it: this adds Outgate to Claude Code, started where
   OUTGATE_API_KEY is set. Other clients: ${baseUrl}/docs/mcp

   claude mcp add --transport http outgate ${baseUrl}/mcp --scope project --header 'Authorization: Bearer \${OUTGATE_API_KEY}'
`,
  ];
  return `
Outgate listens on ${baseUrl}. These keys are shown once:

  owner key   ${paint(owner, "bold")}
              for you: everything, approvals included
  agent key   ${paint(agentKey, "bold")}
              for your agent: creates, reads, cancels and retries; never approves

Next

${steps
  .filter((step) => step !== false)
  .map((step, at) => `${at + 1}. ${step}`)
  .join("\n")}
`;
}

/** The text if an agent reads the output: without keys and link, with which it could act as its user. */
export function firstStartNotice({ baseUrl }: Pick<Config, "baseUrl">): string {
  return `
Outgate listens on ${baseUrl} and serves the agent on standard input. To decide in a browser run \`outgate welcome-link\`
in the same folder; \`outgate new-owner-key\` makes a key for you. Neither is for the agent.

`;
}
