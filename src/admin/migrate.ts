import { rmSync } from "node:fs";
import { migratedMark } from "../../db/libsql/inspect.ts";
import { DatabaseFault, errorReason } from "../../db/sql/errors.ts";
import { StoreUnavailable } from "../core/store.ts";
import {
  copyRows,
  type OnProgress,
  type VerifiedTable,
  verifyRows,
  analyzeCopy,
  finishTransfer,
  startTransfer,
  TransferDone,
  type TransferStart,
  openTransferTarget,
  openTransferSource,
  type TransferSource,
} from "../../db/transfer.ts";
import { migratePostgres } from "../../db/postgres/migrate.ts";
import type { Config } from "../config/config.ts";
import { databaseFault, isPostgresUrl } from "../config/values.ts";
import { KEY_FACTS, keyFileFor, loadPresentKey, writeDurably } from "../crypto/master-key.ts";
import type { Clock } from "../core/clock.ts";

interface MigrateDeps {
  readonly clock: Pick<Clock, "now">;
  readonly onStart: (start: Pick<TransferStart, "kind">) => void;
  readonly onProgress: OnProgress;
}

export interface Migrated {
  readonly tables: readonly VerifiedTable[];
  readonly path: string;
  /** The file with the master key, which the nodes need; null: it is the setting SECRET_KEY. */
  readonly keyFile: string | null;
  /** The file by which a service refuses to start on the database file; null: it could not be made. */
  readonly mark: string | null;
}

/**
 * Copies the database file of a stopped service to an empty PostgreSQL database and compares every value. The file is only
 * read. If interrupted, another run continues; until a run has verified everything, no service opens the target. Throws an
 * error for the operator.
 */
export async function migrateToPostgres(
  { database, secretKey }: Config,
  to: string,
  deps: MigrateDeps,
): Promise<Migrated> {
  if (database.kind !== "file") {
    throw new Error(
      "This migrates a database file: set DATABASE_URL to the file (file:<path>), and name PostgreSQL by --to.",
    );
  }
  const { path } = database;
  const target = parseTarget(to);
  const source = await openTransferSource(path);
  try {
    const keyFile = secretKey === null ? keyFileFor(path) : null;
    // A copy that no key opens would look complete.
    const facts = { present: source.fact(KEY_FACTS.present), next: source.fact(KEY_FACTS.next) };
    loadPresentKey({ secretKey, keyFile }, facts);
    const tables = await transfer(source, target, deps).catch((error: unknown) => {
      // The run that completed it may have been killed before it made the mark.
      if (error instanceof TransferDone) markMigrated(path, target, deps.clock.now());
      throw explained(error, target);
    });
    return { tables, path, keyFile, mark: markMigrated(path, target, deps.clock.now()) };
  } finally {
    source.close();
  }
}

async function transfer(
  source: TransferSource,
  { url }: Target,
  { clock, onStart, onProgress }: MigrateDeps,
): Promise<readonly VerifiedTable[]> {
  const pool = await openTransferTarget(url.href, clock.now());
  try {
    const start = await startTransfer(pool, source);
    onStart(start);
    const progress = await copyRows(source, pool, start.progress, onProgress);
    await analyzeCopy(pool);
    const tables = await verifyRows(source, pool, onProgress);
    if (source.hasChanged()) {
      throw new Error(
        "The file was changed while it was copied, as by `outgate new-owner-key`: the copy lacks that. Drop that database, create it " +
          "again, and run this again.",
      );
    }
    // This makes new positions of the timeline come after the copied ones.
    await migratePostgres(pool, clock.now());
    await finishTransfer(pool, progress, clock.now());
    return tables;
  } finally {
    await pool.close();
  }
}

/** The copy is complete by now, so that a mark which can't be made must not fail the migration. */
function markMigrated(path: string, { name }: Target, at: Date): string | null {
  const mark = migratedMark(path);
  try {
    rmSync(mark, { force: true });
    writeDurably(mark, `${name} ${at.toISOString()}\n`);
    return mark;
  } catch {
    return null;
  }
}

interface Target {
  readonly url: URL;
  /** Host, port and database: never the password. */
  readonly name: string;
}

function parseTarget(to: string): Target {
  if (!isPostgresUrl(to)) {
    throw new Error("--to takes the address of a PostgreSQL database: postgres://<user>@<host>:5432/<database>.");
  }
  const fault = databaseFault(to);
  if (fault !== null) throw new Error(`The address behind --to ${fault}.`);
  const url = new URL(to);
  const host = url.host === "" ? (url.searchParams.get("host") ?? "localhost") : url.host;
  return { url, name: `${host}${url.pathname}` };
}

const RESUMES = "What was copied is kept: run the same command again, and it continues.";

function explained(error: unknown, { name }: Target): unknown {
  if (!(error instanceof StoreUnavailable || error instanceof DatabaseFault)) return error;
  return new Error(`PostgreSQL at ${name} can't be used: ${errorReason(error)}. ${RESUMES}`, { cause: error });
}
