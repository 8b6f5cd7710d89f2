/** Migrations of SQLite, also from version 0.1. */
import { type Column, getTableColumns, getTableName } from "drizzle-orm";
import start from "./migrations/0000_start.sql" with { type: "text" };
import claimingNode from "./migrations/0001_claiming-node.sql" with { type: "text" };
import weekOne from "./migrations/0002_week-one.sql" with { type: "text" };
import consolePages from "./migrations/0003_console.sql" with { type: "text" };
import version02 from "./migrations/0004_version-0-2.sql" with { type: "text" };
import noSearch from "./migrations/0005_no-search-for-altered-rows.sql" with { type: "text" };
import rules from "./migrations/0006_rules.sql" with { type: "text" };
import grants from "./migrations/0007_grants.sql" with { type: "text" };
import budgets from "./migrations/0008_budgets.sql" with { type: "text" };
import credentials from "./migrations/0009_credentials.sql" with { type: "text" };
import oauth from "./migrations/0010_oauth.sql" with { type: "text" };
import credentialRequests from "./migrations/0011_credential_requests.sql" with { type: "text" };
import { type Row, toStatement } from "../sql/dialect.ts";
import { tables } from "../tables.ts";
import { type DbConnection, runStatements } from "../commands/command.ts";

const START = "0000_start";

/** Migrations in the order in which they run. `drizzle-kit` generates them from `tables.ts`. Never edit one; generate another. */
const MIGRATIONS: ReadonlyMap<string, string> = new Map([
  [START, start],
  ["0001_claiming-node", claimingNode],
  ["0002_week-one", weekOne],
  ["0003_console", consolePages],
  ["0004_version-0-2", version02],
  ["0005_no-search-for-altered-rows", noSearch],
  ["0006_rules", rules],
  ["0007_grants", grants],
  ["0008_budgets", budgets],
  ["0009_credentials", credentials],
  ["0010_oauth", oauth],
  ["0011_credential_requests", credentialRequests],
]);

/** The last commit of this repository that creates the tables of version 0.1. */
const LAST_OF_0_1 = "ac0f7c2";

/** The hand-written migrations of version 0.1. */
const VERSION_0_1: readonly string[] = [
  "0001-start",
  "0002-key-of-action",
  "0003-broken-rows",
  "0005-callback-hosts",
  "0006-pauses-and-audit",
  "0007-session-secrets",
  "0008-key-scope",
  "0009-rejections",
];

/** The database was written by a newer version, so this one must not touch it. */
export class NewerDatabase extends Error {
  override readonly name = "NewerDatabase";
}

/** The database was written by an older version, or is empty. */
export class OlderDatabase extends Error {
  override readonly name = "OlderDatabase";
}

/** Migrates the tables to this version, each migration in one transaction. If they are of this version, writes nothing. */
export async function migrate(connection: DbConnection, now: Date): Promise<void> {
  if (!(await hasMigrations(connection))) {
    await runStatements(connection, [
      toStatement("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, ran_at INTEGER NOT NULL)"),
    ]);
  }
  const ran = await readRan(connection);
  await requireParts(connection, ran);
  for (const [name, text] of MIGRATIONS) {
    if (ran.has(name)) continue;
    const statements = name === START && ran.size > 0 ? fromVersion01(ran) : splitStatements(text);
    const mark = { sql: "INSERT INTO migrations (name, ran_at) VALUES (?, ?)", args: [name, now.getTime()] };
    await runStatements(connection, [...statements.map((one) => toStatement(one)), mark]);
  }
}

/**
 * Throws `OlderDatabase` if a migration that ran has since gained columns or unique indexes, without which a row could be there
 * twice: a checkout between two releases had an earlier text of it.
 */
async function requireParts(connection: Pick<DbConnection, "read">, ran: ReadonlySet<string>): Promise<void> {
  const found = new Set((await connection.read(toStatement(PARTS))).map(({ name }) => String(name)));
  const textOf = (hasRun: boolean) =>
    [...MIGRATIONS].flatMap(([name, text]) => (ran.has(name) === hasRun ? [text] : [])).join("\n");
  const pending = textOf(false);
  const columns = Object.values(tables).flatMap((table) => {
    const name = getTableName(table);
    if (pending.includes(`CREATE TABLE \`${name}\` `)) return [];
    return Object.values<Column>(getTableColumns(table))
      .filter((column) => !pending.includes(`ALTER TABLE \`${name}\` ADD \`${column.name}\` `))
      .map((column) => `${name}.${column.name}`);
  });
  const indexes = Array.from(textOf(true).matchAll(/CREATE UNIQUE INDEX `(\w+)`/g), ([, name = ""]) => name);
  const missing = [...columns, ...indexes].find((part) => !found.has(part));
  if (missing === undefined) return;
  throw new OlderDatabase(
    `The database was written by a checkout between two releases of Outgate: it has no ${missing}. Start the ` +
      "checkout that wrote it, or put a backup in its place, or set DATABASE_URL to a new file.",
  );
}

const PARTS = `SELECT m.name || '.' || c.name AS name
  FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'
  UNION ALL SELECT name FROM sqlite_schema WHERE type = 'index'`;

/** Throws `NewerDatabase` or `OlderDatabase` unless the tables are of this version. Changes nothing. */
export async function checkMigrated(connection: Pick<DbConnection, "read">): Promise<void> {
  requireAll(MIGRATIONS, (await hasMigrations(connection)) ? await readRan(connection) : new Set());
}

async function hasMigrations(connection: Pick<DbConnection, "read">): Promise<boolean> {
  return (await connection.read(toStatement("SELECT 1 FROM sqlite_schema WHERE name = 'migrations'"))).length > 0;
}

async function readRan(connection: Pick<DbConnection, "read">): Promise<ReadonlySet<string>> {
  return ranIn(await connection.read(toStatement("SELECT name FROM migrations ORDER BY name")), [
    ...VERSION_0_1,
    ...MIGRATIONS.keys(),
  ]);
}

/** The names of migrations in these rows. Throws `NewerDatabase` if one is not known. */
export function ranIn(rows: readonly Row[], known: Iterable<string>): ReadonlySet<string> {
  const ran = new Set(rows.map(({ name }) => String(name)));
  const [unknown] = ran.difference(new Set(known));
  if (unknown === undefined) return ran;
  throw new NewerDatabase(`The database was written by a newer version of Outgate (${unknown}). Start that version.`);
}

/** Throws `OlderDatabase` unless all of the migrations ran. */
export function requireAll(migrations: ReadonlyMap<string, string>, ran: ReadonlySet<string>): void {
  if ([...migrations.keys()].every((name) => ran.has(name))) return;
  throw new OlderDatabase("The database is not of this version of Outgate yet. Start this version once.");
}

/** Tables that version 0.1 created as `drizzle-kit` can't: WITHOUT ROWID, or with UNIQUE inside. */
const REBUILT =
  "action_keys api_keys approval_links callback_hosts callback_overlaps facts members people sessions signing_seeds welcome_links";

/** Turns a database of version 0.1 into what the first generated migration creates. Its other tables are the same. */
function fromVersion01(ran: ReadonlySet<string>): readonly string[] {
  if (!VERSION_0_1.every((name) => ran.has(name))) {
    throw new OlderDatabase(
      `The database was written before version 0.1 of Outgate was complete. Start commit ${LAST_OF_0_1} of its repository on it once, then this version, or set DATABASE_URL to a new file.`,
    );
  }
  const statements = splitStatements(start);
  return REBUILT.split(" ").flatMap((name) => {
    const created = statements.filter((statement) => statement.startsWith(`CREATE TABLE \`${name}\` `));
    const names = [...created.join("\n").matchAll(/^\t`(\w+)` /gm)].map(([, column]) => column).join(", ");
    return [
      `ALTER TABLE ${name} RENAME TO old_${name}`,
      ...created,
      `INSERT INTO ${name} (${names}) SELECT ${names} FROM old_${name}`,
      `DROP TABLE old_${name}`,
      ...statements.filter((statement) => statement.includes(` ON \`${name}\` (`)),
    ];
  });
}

/** The single statements of a migration, since drivers run one at a time. */
function splitStatements(text: string): readonly string[] {
  return text.split("--> statement-breakpoint").map((statement) => statement.trim().replace(/;$/, ""));
}
