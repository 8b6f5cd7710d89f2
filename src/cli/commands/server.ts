import { KEY_FORMS, readKey } from "../../config/values.ts";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EXIT, UsageError, type Io } from "../io.ts";
import { serve } from "../../app.ts";
import { DAY_MS } from "../../core/limits.ts";
import { StoreLost } from "../../core/store.ts";
import { TravelClock } from "../../demo/clock.ts";
import { demoBeginning, demoText, playDay, type DemoService } from "../../demo/play.ts";
import { startTarget } from "../../demo/target.ts";
import { createPaint } from "../../observability/terminal.ts";
import { relayStreams, relayToService, type SendMessage } from "../../../mcp/bridge/relay.ts";
import { apiKeyFromEnv } from "../../client/api-key-file.ts";
import { createResetLink, createWelcomeLink, welcomeUrl } from "../../accounts/welcome-links.ts";
import { firstStartNotice } from "../../app/first-keys.ts";
import { createOwnerKey, withAdminStore, type AdminParts } from "../../admin/access.ts";
import { backUp } from "../../admin/backup.ts";
import { COMMAND } from "../../config/commit.ts";
import { readConfig, type Config } from "../../config/config.ts";
import { systemClock } from "../../core/clock.ts";
import { encodeId, systemIds } from "../../core/ids.ts";
import { rotateKey, type RotatedKey } from "../../admin/rotate-key.ts";
import { migrateToPostgres, type Migrated } from "../../admin/migrate.ts";

const TRANSFER_REPORT_MS = 1_000;

/** `outgate serve`: runs the service with the settings of the environment. */
export async function runService({ env }: Io): Promise<void> {
  await serve(env);
}

const ADVICE = " To use a running Outgate, set OUTGATE_URL and OUTGATE_API_KEY.";

/** `outgate mcp`: MCP over standard streams, as a bridge to OUTGATE_URL or with the whole service in this process. */
export async function speakMcp(io: Io): Promise<void> {
  if ((io.env["OUTGATE_URL"] ?? "") !== "") return relayToService(io);
  return serveInProcess(io, (await apiKeyFromEnv(io.env)) ?? "");
}

/** Runs the whole service, pages included, until the agent closes standard input. */
async function serveInProcess(io: Io, key: string): Promise<void> {
  const served = await serve(io.env, { outputFd: 2, insteadOfKeys: firstStartNotice, advice: ADVICE });
  const own: Readonly<Record<string, string>> = key === "" ? {} : { host: "localhost", authorization: `Bearer ${key}` };
  const send: SendMessage = ({ headers, body = "", ...init }) => {
    const framed = { ...headers, ...own, "content-length": String(Buffer.byteLength(body)) };
    return served.app.answerAgent(
      new Request("http://localhost/mcp", { ...init, ...(body === "" ? {} : { body }), headers: framed }),
    );
  };
  await relayStreams(io, send);
  await served.stop();
}

/** `outgate demo`: a service of its own with a day behind it, until Ctrl-C. */
export async function runDemo(io: Io, { port = DEMO_PORT }: DemoFlags): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "outgate-demo-"));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  const url = `http://localhost:${port}`;
  const clock = new TravelClock(systemClock, DAY_MS);
  const outage = { isOn: false };
  const target = startTarget(outage);
  // Ignores the person's own settings, except for Bun's. Doesn't share the login cookie of 127.0.0.1.
  const env = {
    BUN_CONFIG_MAX_HTTP_REQUESTS: io.env["BUN_CONFIG_MAX_HTTP_REQUESTS"],
    PORT: String(port),
    BASE_URL: url,
    DATABASE_URL: `file:${join(folder, "outgate.db")}`,
    ...DEMO_SETTINGS,
  };
  io.out(demoBeginning(folder));
  const served = await serve(env, { insteadOfKeys: () => "", advice: DEMO_ADVICE, clock, divert: target.divert });
  const { app } = served;
  const password = encodeId(systemIds.bytes(DEMO_PASSWORD_BYTES)).slice(-DEMO_PASSWORD_CHARS);
  const { ownerKey = null, welcomeToken = null } = app.firstKeys ?? {};
  // Both exist, because the database is new and no setting gave the key.
  if (ownerKey === null || welcomeToken === null) throw new Error("The demo's database is not a new one.");
  try {
    const machineNow = () => systemClock.now();
    const service: DemoService = { url, ownerKey, welcomeToken, answerAs: (...call) => app.answerAs(...call) };
    const day = await playDay(service, clock, machineNow, outage, password);
    io.out(demoText({ url, folder, password, ownerKey, day }, createPaint({ isTty: io.isTty, env: io.env })));
  } catch (error) {
    await Promise.all([served.stop(), target.stop()]);
    throw error;
  }
  // The service runs until a signal ends the process.
  return new Promise<never>(() => {});
}

/** Differs from the usual port, so that the demo can run beside a service. */
const DEMO_PORT = 3_001;

const DEMO_ADVICE = ` For another port, run \`${COMMAND} demo --port 3002\`.`;

/** No limit on requests, because a day plays in seconds. Logs only errors. */
const DEMO_SETTINGS = { RATE_LIMIT_PER_SECOND: "0", LOG_LEVEL: "error", SIGNUPS: "closed" };

const DEMO_PASSWORD_BYTES = 16;

const DEMO_PASSWORD_CHARS = 12;

/** `outgate new-owner-key`: makes a key for an owner who has lost theirs. */
export async function addOwnerKey({ env, out, err }: Io, email: string | null = null): Promise<void> {
  const key = await withAdminStore(env, (parts) => createOwnerKey(parts, email));
  if (key === null) {
    throw new Error(
      email === null ? "There is no account yet: start the service once." : `No person has the address ${email}.`,
    );
  }
  out(`${key}\n`);
  err("It is shown only this once. Other keys keep working: revoke a lost one with `outgate keys revoke <id>`.\n");
}

/** `outgate reset-password`: prints a link for a person who can't log in. */
export async function resetPassword(io: Io, email: string): Promise<void> {
  await printLink(io, (parts) => createResetLink(parts, email), {
    none: `No person has the address ${email}.`,
    what: "The person who opens the link chooses a new password. It works once, for a day; until then the old password works.",
  });
}

/** `outgate welcome-link`: prints a new link that replaces the one of the first start. */
export async function renewWelcomeLink(io: Io): Promise<void> {
  await printLink(io, createWelcomeLink, {
    none: "The first account has an owner who can log in already. For a new password run `outgate reset-password <email>`.",
    what: "The person who opens the link becomes the first account's owner. It works once, for 7 days; the previous link no longer works.",
  });
}

/** Prints a link. `none`: the error if there is none to make. */
async function printLink(
  { env, out, err }: Io,
  makeToken: (parts: AdminParts) => Promise<string | null>,
  { none, what }: { readonly none: string; readonly what: string },
): Promise<void> {
  const url = await withAdminStore(env, async (parts) => {
    const token = await makeToken(parts);
    return token === null ? null : welcomeUrl(parts.config, token);
  });
  if (url === null) throw new Error(none);
  out(`${url}\n`);
  err(`${what}\n`);
}

/** `outgate backup`: makes a consistent copy of database and key, even while the service runs. */
export async function runBackup({ env, out }: Io, folder: string): Promise<void> {
  // Only this user may read the folder, which contains the key.
  process.umask(0o077);
  const { database, keyFile } = backUp(readConfig(env), folder);
  const key =
    keyFile ?? "The key is the setting SECRET_KEY: keep a copy elsewhere. Without it the backup can't be decrypted.";
  out(`${database}\n${key}\n`);
}

/** `outgate rotate-secret-key`: encrypts everything with a new master key. Runs with the service's own settings. */
export async function rotateSecretKey({ env, out, err }: Io, options: RotateKeyFlags): Promise<void> {
  // Only this user may read new key files.
  process.umask(0o077);
  const config = readConfig(env);
  if (config.database.kind === "remote" && options.server_is_stopped !== true) {
    throw new UsageError("Stop every service on this database, then add --server-is-stopped.");
  }
  const text = (env["NEW_SECRET_KEY"] ?? "").trim();
  const newKey = text === "" ? null : readKey(text);
  if (text !== "" && newKey === null) {
    throw new UsageError(`NEW_SECRET_KEY has the wrong form. Allowed: ${KEY_FORMS}.`);
  }
  const onFatal = (cause: unknown) => {
    // After a failed fsync the state on disk is unknown. Another run checks it.
    const why = cause instanceof StoreLost ? cause.message : "A commit could not be made durable.";
    err(`${why} Not all is encrypted with the new key yet: run this again, which goes on from there.\n`);
    process.exit(EXIT.failed);
  };
  const deps = { clock: systemClock, ids: systemIds, onFatal };
  const rotated = await rotateKey(config, { newKey, newLinks: options.new_links === true }, deps);
  out(rotatedText(rotated, config));
  if (rotated.unopened === 0) return;
  const names = rotated.named.map(({ table, row, column }) => `  ${column} of ${table} ${row}\n`).join("");
  err(
    `${rotated.unopened} values can't be decrypted with the old key, because they were altered. They were left unchanged:\n${names}`,
  );
}

function rotatedText({ count, newKeyId, keptFile }: RotatedKey, { secretKey }: Config): string {
  const done = `Everything is encrypted with the new master key ${newKeyId} (values encrypted in this run: ${count}).\n`;
  if (keptFile !== null) return `${done}The old key is kept in ${keptFile}: earlier backups need it.\n`;
  const kept = secretKey === null ? "The old key file was left as it is" : "Keep the old key";
  return `${done}Set SECRET_KEY to the new key before you start. ${kept}: earlier backups need it.\n`;
}

const BEGUN = {
  new: "Copying. If it is interrupted, run the same command again: it continues.\n",
  resumed: "Continuing an interrupted copy.\n",
} as const;

/** `outgate migrate`: copies the database file to PostgreSQL and verifies the copy. */
export async function migrateDatabase({ env, out, err }: Io, to: string): Promise<void> {
  let lastMs = Number.NEGATIVE_INFINITY;
  const migrated = await migrateToPostgres(readConfig(env), to, {
    clock: systemClock,
    onStart: ({ kind }) => err(BEGUN[kind]),
    /** Reports each table and phase, and the progress of long ones every second. */
    onProgress: ({ phase, table, rows, of }) => {
      const nowMs = systemClock.monotonicMs();
      if (rows < of && nowMs - lastMs < TRANSFER_REPORT_MS) return;
      lastMs = nowMs;
      err(`${phase} ${rows} of ${of} rows of ${table}\n`);
    },
  });
  out(migratedText(migrated));
}

function migratedText({ tables, path, keyFile, mark }: Migrated): string {
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  const width = Math.max(...tables.map(({ name }) => name.length));
  const lines = tables.map(
    (table) => `  ${table.name.padEnd(width)} ${String(table.rows).padStart(10)}  ${table.digest.slice(0, 16)}\n`,
  );
  const key =
    keyFile === null
      ? "Set SECRET_KEY on every node to the SECRET_KEY of this command."
      : `Set SECRET_KEY on every node to the content of ${keyFile}.`;
  return `All ${rows} rows of ${tables.length} tables are in PostgreSQL. Every value was compared with ${path}, which was not changed.
Rows of each table, and the first 16 digits of the SHA-256 of its values, the same on both sides:
${lines.join("")}
Next:
1. ${key}
2. Set DATABASE_URL on every node to the PostgreSQL database, and start them.
3. Keep the file and its key as a backup. Don't start a service on it again: it would send the same calls once more.${
    mark === null
      ? ""
      : `
   While ${mark} is there, none starts.`
  }
`;
}

export interface DemoFlags {
  readonly port?: number;
}

export interface RotateKeyFlags {
  readonly new_links?: boolean;
  readonly server_is_stopped?: boolean;
}
