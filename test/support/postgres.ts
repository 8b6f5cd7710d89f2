import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { findPrograms, isAlive } from "./postgres/server.ts";

/** A server of yours instead of one that is started here: a role in it that may create databases. */
const GIVEN = process.env["TEST_POSTGRES_URL"] || undefined;
const KEEPER = join(import.meta.dir, "postgres", "keeper.ts");
const READY_MS_MAX = 60_000;
/** A keeper that has just begun has not yet written its process id. */
const BEGINNING_MS = 5_000;
/** What a test run that was killed left on a server of yours goes after this long. */
const LEFT_MS_MAX = 3_600_000;

const { reason } = GIVEN === undefined ? findPrograms() : { reason: "" };

/** Whether tests can have a PostgreSQL; where they can't, they are skipped. */
export const hasPostgres = reason === "";

if (!hasPostgres) {
  console.log(
    `skipped: PostgreSQL is not installed: ${reason}. Install it (Debian: apt-get install postgresql) or set ` +
      `TEST_POSTGRES_URL to one whose role may create databases; nothing was tried on PostgreSQL`,
  );
}

/** A schema that databases begin with, made once for each server and copied from then on. */
export interface DatabaseTemplate {
  /** Says what is in it: something that changes with its content, such as a digest of the migrations. */
  readonly name: string;
  /** Fills it; no connection may be left open. */
  readonly prepare: (url: string) => Promise<void>;
}

/** An empty database of the caller's own, or a copy of a template: its `postgres://` URL. Goes with the server, or by `dropDatabase`. */
export async function createDatabase(template: DatabaseTemplate | null = null): Promise<string> {
  const server = await serverUrl();
  await using admin = connect(server);
  const source = template === null ? null : await ensureTemplate(admin, server, template);
  const name = newName("test");
  await admin.unsafe(`CREATE DATABASE ${name}${source === null ? "" : ` TEMPLATE ${source}`}`);
  return withDatabase(server, name);
}

/** Deletes a database, whoever is still connected to it. */
export async function dropDatabase(url: string): Promise<void> {
  await using admin = connect(await serverUrl());
  await admin.unsafe(`DROP DATABASE IF EXISTS ${new URL(url).pathname.slice(1)} WITH (FORCE)`);
}

let known: Promise<string> | null = null;

/** The administrative database of the server that this run uses; starts one at the first call. */
function serverUrl(): Promise<string> {
  known ??= GIVEN === undefined ? ownServer() : givenServer(GIVEN);
  return known;
}

async function givenServer(url: string): Promise<string> {
  await using admin = connect(url);
  const rows: readonly { datname: string }[] =
    await admin`SELECT datname FROM pg_database WHERE datname ~ '^outgate_(test|template)_[0-9]+_'`;
  for (const { datname: name } of rows) {
    if (Number(name.split("_")[2]) > Date.now() - LEFT_MS_MAX) continue;
    await admin.unsafe(`ALTER DATABASE ${name} IS_TEMPLATE false`);
    await admin.unsafe(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  }
  return url;
}

/**
 * One server for all test processes of this checkout, begun by whoever makes its folder. Each file of a parallel run has
 * globals of its own, so memory could not share it; starting takes 2 s.
 */
async function ownServer(): Promise<string> {
  const checkout = createHash("sha256")
    .update(import.meta.dir)
    .digest("hex")
    .slice(0, 12);
  const folder = join(tmpdir(), `outgate-postgres-${process.getuid?.() ?? 0}-${checkout}`);
  const untilMs = performance.now() + READY_MS_MAX;
  while (performance.now() < untilMs) {
    if (isMade(folder)) startKeeper(folder);
    const url = readyUrl(folder);
    if (url !== null) return url;
    await Bun.sleep(20);
  }
  throw new Error("PostgreSQL was not ready within a minute.");
}

/** Whether it was not there before. */
function isMade(folder: string): boolean {
  try {
    mkdirSync(folder, { mode: 0o711 });
    return true;
  } catch {
    if (existsSync(folder) && statSync(folder).uid !== process.getuid?.()) {
      throw new Error(`${folder} belongs to somebody else: remove it.`);
    }
    return false;
  }
}

function startKeeper(folder: string): void {
  mkdirSync(join(folder, "users"), { recursive: true });
  // In a session of its own: it outlives this process for as long as it takes to stop and delete the server.
  const options = { detached: true, stdin: "ignore", stdout: "ignore", stderr: "ignore" } as const;
  Bun.spawn([process.execPath, KEEPER, folder], options).unref();
}

function readyUrl(folder: string): string | null {
  try {
    writeFileSync(join(folder, "users", String(process.pid)), "");
    if (isAbandoned(folder)) clear(folder);
    else if (existsSync(join(folder, "ready"))) return readFileSync(join(folder, "ready"), "utf8");
  } catch {
    // It is being made or deleted.
    return null;
  }
  const failed = join(folder, "failed");
  if (existsSync(failed)) throw new Error(`PostgreSQL did not start: ${readFileSync(failed, "utf8")}`);
  return null;
}

function isAbandoned(folder: string): boolean {
  const keeper = join(folder, "keeper");
  if (existsSync(keeper)) return !isAlive(Number(readFileSync(keeper, "utf8")));
  return Date.now() - statSync(folder).birthtimeMs > BEGINNING_MS;
}

/** Deletes what a keeper that was killed left. */
function clear(folder: string): void {
  const file = join(folder, "server", "data", "postmaster.pid");
  const pid = existsSync(file) ? Number(readFileSync(file, "utf8").split("\n")[0]) : 0;
  if (pid > 0 && isAlive(pid)) process.kill(pid, "SIGQUIT");
  rmSync(folder, { recursive: true, force: true });
}

async function ensureTemplate(admin: SQL, server: string, { name, prepare }: DatabaseTemplate): Promise<string> {
  const digest = createHash("sha256").update(name).digest("hex").slice(0, 16);
  const pattern = `^outgate_template_[0-9]+_${digest}$`;
  // One process makes it, the others wait.
  await admin`SELECT pg_advisory_lock(hashtext(${digest}))`;
  try {
    const rows: readonly { datname: string }[] =
      await admin`SELECT datname FROM pg_database WHERE datname ~ ${pattern} AND datistemplate`;
    const [made] = rows;
    if (made !== undefined) return made.datname;
    const fresh = `outgate_template_${Date.now()}_${digest}`;
    await admin.unsafe(`CREATE DATABASE ${fresh}`);
    await prepare(withDatabase(server, fresh));
    await admin`UPDATE pg_database SET datistemplate = true WHERE datname = ${fresh}`;
    return fresh;
  } finally {
    await admin`SELECT pg_advisory_unlock(hashtext(${digest}))`;
  }
}

/** One connection: an advisory lock belongs to it. */
function connect(url: string): SQL {
  return new SQL(url, { max: 1 });
}

function newName(kind: string): string {
  return `outgate_${kind}_${Date.now()}_${randomBytes(6).toString("hex")}`;
}

function withDatabase(server: string, database: string): string {
  const url = new URL(server);
  url.pathname = `/${database}`;
  return url.href;
}

// A server takes seconds to start on a busy machine: files wait for it while they load, and no test does.
if (hasPostgres) await serverUrl();
