import start from "./migrations/0001-start.sql" with { type: "text" };
import keyOfAction from "./migrations/0002-key-of-action.sql" with { type: "text" };
import brokenRows from "./migrations/0003-broken-rows.sql" with { type: "text" };
import callbackHosts from "./migrations/0005-callback-hosts.sql" with { type: "text" };
import pausesAndAudit from "./migrations/0006-pauses-and-audit.sql" with { type: "text" };
import sessionSecrets from "./migrations/0007-session-secrets.sql" with { type: "text" };
import keyScope from "./migrations/0008-key-scope.sql" with { type: "text" };
import rejections from "./migrations/0009-rejections.sql" with { type: "text" };
import type { Sql, SqlValue } from "./sql.ts";

/** In the order in which they run. Never edit a released migration: add another one. */
const MIGRATIONS: readonly { readonly name: string; readonly sql: string }[] = [
  { name: "0001-start", sql: start },
  { name: "0002-key-of-action", sql: keyOfAction },
  { name: "0003-broken-rows", sql: brokenRows },
  { name: "0005-callback-hosts", sql: callbackHosts },
  { name: "0006-pauses-and-audit", sql: pausesAndAudit },
  { name: "0007-session-secrets", sql: sessionSecrets },
  { name: "0008-key-scope", sql: keyScope },
  { name: "0009-rejections", sql: rejections },
];

/** The database was written by a newer version; this one must not touch it. */
export class NewerDatabase extends Error {
  override readonly name = "NewerDatabase";
}

/** The database was written by an older version, or is empty. */
class OlderDatabase extends Error {
  override readonly name = "OlderDatabase";
}

/** Migrates the tables to this version; each migration is one transaction. */
export async function migrate(sql: Sql, now: Date): Promise<void> {
  const created = "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, ran_at INTEGER NOT NULL)";
  await sql.batch([{ sql: created, args: [] }]);
  const ran = await readRan(sql);
  for (const { name, sql: text } of MIGRATIONS) {
    if (ran.includes(name)) continue;
    const mark = { sql: "INSERT INTO migrations (name, ran_at) VALUES (?, ?)", args: [name, now.getTime()] };
    await sql.batch([...statementsOf(text).map((statement) => ({ sql: statement, args: [] })), mark]);
  }
}

/** Throws `NewerDatabase` or `OlderDatabase` unless the tables are of this version; changes nothing. */
export async function checkMigrated(sql: Sql): Promise<void> {
  const [table] = await sql.read({ sql: "SELECT 1 FROM sqlite_schema WHERE name = 'migrations'", args: [] });
  const ran = table === undefined ? [] : await readRan(sql);
  if (MIGRATIONS.every(({ name }) => ran.includes(name))) return;
  throw new OlderDatabase("The database is not of this version of Outgate yet. Start this version once.");
}

async function readRan(sql: Sql): Promise<readonly SqlValue[]> {
  const rows = await sql.read({ sql: "SELECT name FROM migrations ORDER BY name", args: [] });
  const ran = rows.map(({ name = null }) => name);
  const unknown = ran.find((name) => !MIGRATIONS.some((migration) => migration.name === name));
  if (unknown === undefined) return ran;
  throw new NewerDatabase(`The database was written by a newer version of Outgate (${unknown}). Start that version.`);
}

/** Splits by semicolons, which our migrations have only between statements; drivers run one at a time. */
function statementsOf(text: string): readonly string[] {
  const withoutComments = text.replaceAll(/^[ \t]*--.*$/gm, "");
  return withoutComments
    .split(";")
    .map((statement) => statement.trim())
    .filter((statement) => statement !== "");
}
