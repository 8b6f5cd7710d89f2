import type { AppContext } from "../runtime/app-context.ts";
import { existsSync, renameSync, rmSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { AccountStore, PeopleStore, WelcomeLink, SealedPlace } from "../core/account-store.ts";
import type { FactStore, Store } from "../core/store.ts";
import { auditOfSystem } from "../core/audit.ts";
import { COMMAND } from "../config/commit.ts";
import type { Config } from "../config/config.ts";
import { WELCOME_LINK_MS_MAX } from "../core/limits.ts";
import type { Database, LogLevel } from "../config/values.ts";
import { errorCodeOf, syncFolder, writeDurably } from "../crypto/master-key.ts";
import type { Secrets } from "../crypto/secrets.ts";
import type { LogFields } from "../observability/log.ts";
import type { Paint } from "../observability/terminal.ts";
import type { Clock } from "../core/clock.ts";
import { ENTER_KEY, firstActionCall } from "./first-action.ts";
import { keyCreated, keyRow } from "./keys.ts";
import { newAccount } from "./people.ts";
import { SYSTEM } from "../core/roles.ts";

/** The credentials of the first start, in clear text. */
export interface FirstKeys {
  /** Null if `BOOTSTRAP_API_KEY` gave it: the operator knows it, and no log should contain it. */
  readonly ownerKey: string | null;
  readonly agentKey: string;
  /** Token of the link whose visitor becomes the account's first person; null: used. */
  readonly welcomeToken: string | null;
}

interface BootstrapDeps extends Pick<Store, "accounts" | "people" | "facts">, Pick<AppContext, "ids" | "clock"> {
  readonly secrets: Secrets;
  /** `BOOTSTRAP_API_KEY`: the owner key of the first account, taken as given. */
  readonly givenOwnerKey: string | null;
}

/** Name of the fact that keeps the first keys, encrypted, until they were shown. */
export const FIRST_KEYS_FACT = "first-keys";

export const FIRST_KEYS_PLACE: SealedPlace = { table: "facts", row: FIRST_KEYS_FACT, column: "value" };

/**
 * Creates the first account with an owner key, an agent key and a one-time link, in one commit. Returns them at this and
 * every later start until `forgetFirstKeys`, since a start may end before it has shown them; null: they were shown. A later
 * start adds a new `BOOTSTRAP_API_KEY` as another owner key.
 */
export async function bootstrap(deps: BootstrapDeps): Promise<FirstKeys | null> {
  const { accounts, secrets, clock, givenOwnerKey } = deps;
  const now = clock.now();
  const ownerRow = (accountId: string, key: string) =>
    keyRow(deps, key, { accountId, name: "owner", role: "owner", createdBy: SYSTEM }, now);
  const first = await accounts.first();
  if (first !== null) {
    if (givenOwnerKey !== null && (await accounts.keyByHash(secrets.hash(givenOwnerKey))) === null) {
      const row = ownerRow(first.id, givenOwnerKey);
      await accounts.addKey(row, auditOfSystem(first.id, keyCreated(row), now));
    }
    return unshownKeys(deps);
  }
  const account = newAccount(deps, now);
  const ownerKey = givenOwnerKey ?? secrets.newApiKey();
  const agentKey = secrets.newApiKey();
  const welcomeToken = secrets.newToken();
  const keys = { ownerKey: givenOwnerKey === null ? ownerKey : null, agentKey, welcomeToken };
  const rows = [
    ownerRow(account.id, ownerKey),
    keyRow(deps, agentKey, { accountId: account.id, name: "agent", role: "agent", createdBy: SYSTEM }, now),
  ];
  const isFirst = await accounts.create(account, rows, {
    link: welcomeLinkRow(secrets.hash(welcomeToken), account.id, now),
    facts: { [FIRST_KEYS_FACT]: secrets.seal(JSON.stringify(keys), FIRST_KEYS_PLACE) },
    audit: rows.map((row) => auditOfSystem(account.id, keyCreated(row), now)),
  });
  // If not, another node was first, and its keys are there by now.
  return isFirst ? keys : bootstrap(deps);
}

/** Deletes the first keys. Call it once they were shown. */
export async function forgetFirstKeys(facts: Pick<FactStore, "writeAll">): Promise<void> {
  await facts.writeAll({ [FIRST_KEYS_FACT]: null });
}

/** The first keys that no start has shown yet; null: shown, or one of them was revoked. */
async function unshownKeys(deps: BootstrapDeps): Promise<FirstKeys | null> {
  const { accounts, people, facts, secrets, clock } = deps;
  const sealed = await facts.read(FIRST_KEYS_FACT);
  if (sealed === null) return null;
  let keys: FirstKeys;
  try {
    // Safe: `bootstrap` sealed it, and nothing else uses this place.
    keys = JSON.parse(secrets.open(sealed, FIRST_KEYS_PLACE).toString()) as FirstKeys;
  } catch {
    // The row was altered. `outgate new-owner-key` creates another key.
    return null;
  }
  const { ownerKey, agentKey, welcomeToken } = keys;
  const isLive = async (key: string) => (await accounts.keyByHash(secrets.hash(key)))?.revokedAt === null;
  const live = await Promise.all([ownerKey, agentKey].filter((key) => key !== null).map(isLive));
  if (live.includes(false)) {
    // Somebody with an owner key revoked it, so nobody needs to be shown these.
    await forgetFirstKeys(facts);
    return null;
  }
  const isTokenLive = welcomeToken !== null && (await people.link(secrets.hash(welcomeToken), clock.now())) !== null;
  return { ownerKey, agentKey, welcomeToken: isTokenLive ? welcomeToken : await createWelcomeLink(deps) };
}

interface WelcomeLinkDeps {
  readonly accounts: Pick<AccountStore, "first">;
  readonly people: Pick<PeopleStore, "offer">;
  readonly secrets: Pick<Secrets, "hash" | "newToken">;
  readonly clock: Pick<Clock, "now">;
}

/** Makes a link for the first account's first person, and voids the previous one. Null: there is a person, or no account. */
export async function createWelcomeLink({ accounts, people, secrets, clock }: WelcomeLinkDeps): Promise<string | null> {
  const account = await accounts.first();
  if (account === null) return null;
  const token = secrets.newToken();
  return (await people.offer(welcomeLinkRow(secrets.hash(token), account.id, clock.now()))) ? token : null;
}

function welcomeLinkRow(hash: string, accountId: string, now: Date): WelcomeLink {
  return { hash, personId: null, accountId, createdAt: now, expiresAt: new Date(now.getTime() + WELCOME_LINK_MS_MAX) };
}

export interface StartOutput {
  /** Writes the text. Returns whether all of it was written. */
  readonly say: (text: string) => boolean;
  /** A line of JSON for an event, regardless of the log level; null: people read the output as text. */
  readonly lineOf: ((level: LogLevel, event: string, fields: LogFields) => string) | null;
  /** The output ends up in a log, so it must not contain keys. */
  readonly isLogged: boolean;
  readonly paint: Paint;
}

/** Prints the first keys, or writes a file if output is logged. False: nobody saw them, so the next start shows them. */
export function printFirstKeys(
  config: Config,
  keys: FirstKeys,
  { say, lineOf, isLogged, paint }: StartOutput,
): boolean {
  const { baseUrl: url } = config;
  const print = (text: string, level: LogLevel, event: string, fields: LogFields) =>
    say(lineOf === null ? text : lineOf(level, event, fields));
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
  const file = firstKeysFileOf(config.database);
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
  const file = firstKeysFileOf(database);
  return existsSync(file) ? `The first keys are still in ${file}. Delete the file once you have read it.` : null;
}

/** The file of the first keys: next to the database, or in the working directory if the database is remote. */
function firstKeysFileOf(database: Database): string {
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
    throw new Error(`The first keys can't be written to ${file} (${errorCodeOf(cause)}).`, { cause });
  }
}

export function welcomeUrl({ baseUrl }: Pick<Config, "baseUrl">, token: string): string {
  return `${baseUrl}/welcome/${token}`;
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
   OUTGATE_API_KEY is set. mcp/README.md explains other clients:

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
