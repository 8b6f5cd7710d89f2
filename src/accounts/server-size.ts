import type { DatabaseSize, FileStore } from "../core/store.ts";
import { formatSize } from "../core/action.ts";
import { DAY_MS } from "../core/limits.ts";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { Caller } from "../core/roles.ts";

/** Retention for which the size is estimated if none is set. */
const SIZE_DAYS_DEFAULT = 30;

/** The size of the database file, and the retention for which `deletableBytes` is estimated. */
export interface ServerSize extends DatabaseSize {
  readonly days: number;
  /** Whether RETENTION_DAYS is set; else it is an example. */
  readonly isSet: boolean;
}

/** Null for callers of other accounts than the first, and if the database is no file. */
export type ReadServerSize = (caller: Caller) => Promise<ServerSize | null>;

interface ServerSizeApp {
  readonly clock: Pick<Clock, "now">;
  readonly config: Pick<Config, "retentionDays">;
  readonly store: { readonly file: Pick<FileStore, "size"> | null };
}

export function createServerSize(
  { clock, config: { retentionDays }, store: { file } }: ServerSizeApp,
  isOperator: (caller: Caller) => Promise<boolean>,
): ReadServerSize {
  return async (caller) => {
    if (file === null || !(await isOperator(caller))) return null;
    return serverSize((until) => file.size(until), clock.now(), retentionDays);
  };
}

/** The size with the retention in force, or with an example of one. */
export async function serverSize(
  read: (finishedUntil: Date) => Promise<DatabaseSize>,
  now: Date,
  retentionDays: number | null,
): Promise<ServerSize> {
  const days = retentionDays ?? SIZE_DAYS_DEFAULT;
  const size = await read(new Date(now.getTime() - days * DAY_MS));
  return { ...size, days, isSet: retentionDays !== null };
}

/** "About 12 MB (RETENTION_DAYS=30, which is not set)."; "Nothing yet" if no finished action is that old. */
export function deletableText({ deletableBytes, days, isSet }: ServerSize): string {
  const size = deletableBytes === 0 ? "Nothing yet" : `About ${formatSize(deletableBytes)}`;
  return `${size} (RETENTION_DAYS=${days}${isSet ? ", which runs every hour" : ", which is not set"}).`;
}

/** What the operator can do about a file that doesn't get smaller; null: it can. */
export function shrinkAdvice({ canShrink }: DatabaseSize): string | null {
  if (canShrink) return null;
  return "An older version made this file, and it doesn't get smaller: free pages are only used again. To change that, stop the service, run `outgate backup` and restore the backup (docs/operations.md, Back up and restore).";
}
