/** Migrations of PostgreSQL, under a lock, since several nodes may start at once. */
import { MIGRATION_LOCK_MS_MAX, TRANSACTION_MS_MAX } from "../../src/core/limits.ts";
import { ranIn, requireAll } from "../libsql/migrate.ts";
import type { PostgresPool } from "./connection.ts";
import { RAISE_BASE, START_LOCK } from "./queries.ts";
import functions from "./migrations/0000_functions.sql" with { type: "text" };
import start from "./migrations/0001_start.sql" with { type: "text" };
import weekOne from "./migrations/0002_week-one.sql" with { type: "text" };
import consolePages from "./migrations/0003_console.sql" with { type: "text" };
import version02 from "./migrations/0004_version-0-2.sql" with { type: "text" };
import noSearch from "./migrations/0005_no-search-for-altered-rows.sql" with { type: "text" };
import positionsOfLists from "./migrations/0006_positions-of-lists.sql" with { type: "text" };
import rules from "./migrations/0007_rules.sql" with { type: "text" };
import grants from "./migrations/0008_grants.sql" with { type: "text" };
import budgets from "./migrations/0009_budgets.sql" with { type: "text" };
import credentials from "./migrations/0010_credentials.sql" with { type: "text" };
import oauth from "./migrations/0011_oauth.sql" with { type: "text" };
import credentialRequests from "./migrations/0012_credential_requests.sql" with { type: "text" };
import roomInIndexes from "./migrations/0013_room_in_indexes.sql" with { type: "text" };
import roomInTimeline from "./migrations/0014_room_in_timeline.sql" with { type: "text" };
import histories from "./migrations/0015_histories.sql" with { type: "text" };
import hostsOver from "./migrations/0016_hosts_over.sql" with { type: "text" };

/**
 * Migrations in the order in which they run. `drizzle-kit` generates them from `tables.ts`. Never edit one; generate another.
 * Hand-written are 0000 and two that leave room in index pages, since full pages split in halves that nothing fills again: 0013
 * for entries that each change of an action adds to indexes whose columns it doesn't change, 0014 for events that arrive when
 * those of later actions are stored already. So are the functions of 0006 and 0015.
 */
const MIGRATIONS: ReadonlyMap<string, string> = new Map([
  ["0000_functions", functions],
  ["0001_start", start],
  ["0002_week-one", weekOne],
  ["0003_console", consolePages],
  ["0004_version-0-2", version02],
  ["0005_no-search-for-altered-rows", noSearch],
  ["0006_positions-of-lists", positionsOfLists],
  ["0007_rules", rules],
  ["0008_grants", grants],
  ["0009_budgets", budgets],
  ["0010_credentials", credentials],
  ["0011_oauth", oauth],
  ["0012_credential_requests", credentialRequests],
  ["0013_room_in_indexes", roomInIndexes],
  ["0014_room_in_timeline", roomInTimeline],
  ["0015_histories", histories],
  ["0016_hosts_over", hostsOver],
]);

const HAS_MIGRATIONS = "select cast(to_regclass('migrations') is not null as int) as found";

const RAN = "select name from migrations order by name";

/**
 * Goes on in the schema that has the tables, though another one may come before it by now: of the user's name, or by a new setting of
 * the role. Tables made there would be those of an empty service.
 */
const GO_TO_TABLES = `select set_config('search_path', quote_ident(name), true) from (
  select name from unnest(current_schemas(false)) with ordinality as schema(name, place)
    where to_regprocedure(quote_ident(name) || '.settled_position()') is not null order by place limit 1) found`;

const SERVER = `select current_setting('server_encoding') as encoding, current_setting('server_version') as version,
  cast(current_setting('server_version_num') as int) as number`;

/** The first with `pg_current_xact_id`. Only versions from 15 on are tested. */
const VERSION_NUMBER_MIN = 130_000;

/** A role may have bounds, which are meant for others than these statements. Servers before 17 have none for transactions. */
const NO_BOUNDS =
  "select set_config(name, '0', true) from pg_settings where name in ('statement_timeout', 'transaction_timeout')";

/** Encodings that hold every text. The server takes texts for SQL_ASCII as they come. */
const ENCODINGS: ReadonlySet<unknown> = new Set(["UTF8", "SQL_ASCII"]);

/**
 * Migrates the tables to this version, in one transaction under a lock, so that nodes that start at the same time find it done.
 * Rejects if the lock or that of a table is not free within `lockMsMax`, since waiting for a table's lock blocks all others.
 */
export async function migratePostgres(
  pool: Pick<PostgresPool, "alone">,
  now: Date,
  lockMsMax = TRANSACTION_MS_MAX,
): Promise<void> {
  await pool.alone(async (run) => {
    await run("begin isolation level read committed");
    await run(`select set_config('lock_timeout', '${lockMsMax}', true)`);
    await run(NO_BOUNDS);
    const [server] = await run(SERVER);
    if (Number(server?.["number"]) < VERSION_NUMBER_MIN) throw tooOld(String(server?.["version"]));
    if (!ENCODINGS.has(server?.["encoding"])) throw wrongEncoding(String(server?.["encoding"]));
    await run(`select pg_advisory_xact_lock(${START_LOCK})`);
    await run(`select set_config('lock_timeout', '${Math.min(lockMsMax, MIGRATION_LOCK_MS_MAX)}', true)`);
    await run(GO_TO_TABLES);
    const [table] = await run(HAS_MIGRATIONS);
    if (table?.["found"] !== 1) await run("create table migrations (name text primary key, ran_at bigint not null)");
    const ran = ranIn(await run(RAN), MIGRATIONS.keys());
    // Before its first write, since nodes that run add events in later transactions.
    if (ran.size > 0) await run(RAISE_BASE);
    for (const [name, text] of MIGRATIONS) {
      if (ran.has(name)) continue;
      for (const statement of text.split("--> statement-breakpoint")) await run(statement, { isLong: true });
      await run(`insert into migrations (name, ran_at) values ('${name}', ${now.getTime()})`);
    }
    await run("commit", { isLong: true });
  });
}

function tooOld(version: string): Error {
  return new Error(`The server has PostgreSQL ${version}. Outgate needs PostgreSQL 15 or newer.`);
}

function wrongEncoding(encoding: string): Error {
  return new Error(
    `The PostgreSQL database has the encoding ${encoding}, in which answers of targets can't be stored. Create one with ` +
      "ENCODING 'UTF8' TEMPLATE template0, and restore a dump into it if this one has contents.",
  );
}

/** Throws `NewerDatabase` or `OlderDatabase` unless the tables are of this version. Changes nothing. */
export async function checkPostgresMigrated(pool: PostgresPool): Promise<void> {
  await pool.alone(async (run) => {
    const [table] = await run(HAS_MIGRATIONS);
    requireAll(MIGRATIONS, ranIn(table?.["found"] === 1 ? await run(RAN) : [], MIGRATIONS.keys()));
  });
}
