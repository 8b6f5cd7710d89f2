import { migrateToPostgres, type Migrated, type MigrateReport } from "../../admin/migrate.ts";
import { readConfig } from "../../config/config.ts";
import { TRANSFER_REPORT_MS } from "../../core/limits.ts";
import { systemClock } from "../../core/clock.ts";
import type { Io } from "../io.ts";

const BEGUN = {
  new: "Copying. If it is interrupted, run the same command again: it continues.\n",
  resumed: "Continuing an interrupted copy.\n",
  again: "The file has changed since an interrupted copy, or differed from it: copying everything again.\n",
} as const;

/** `outgate migrate`: copies the database file to PostgreSQL and verifies the copy. */
export async function migrateDatabase(io: Io, to: string): Promise<void> {
  const report = reporter(io);
  const migrated = await migrateToPostgres(readConfig(io.env), to, {
    clock: systemClock,
    onStart: ({ kind }) => io.err(BEGUN[kind]),
    onProgress: report,
  });
  io.out(summaryOf(migrated));
}

/** Reports each table and phase, and the progress of long ones every second. */
function reporter({ err }: Pick<Io, "err">): (report: MigrateReport) => void {
  let lastMs = Number.NEGATIVE_INFINITY;
  return ({ phase, table, rows, of }) => {
    const nowMs = systemClock.monotonicMs();
    if (rows < of && nowMs - lastMs < TRANSFER_REPORT_MS) return;
    lastMs = nowMs;
    err(`${phase} ${rows} of ${of} rows of ${table}\n`);
  };
}

function summaryOf({ tables, path, keyFile }: Migrated): string {
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
3. Keep the file and its key as a backup. Don't start a service on it again: it would send the same calls once more.
`;
}
