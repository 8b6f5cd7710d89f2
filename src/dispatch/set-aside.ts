import { BROKEN_ROWS_MAX } from "../domain/limits.ts";
import type { Log } from "../ports/log.ts";
import { type Queue, StoreUnavailable } from "../ports/store.ts";

export interface SetAsideDeps<Row> {
  /** What the rows are, in the log. */
  readonly name: string;
  readonly log: Pick<Log, "error">;
  readonly queue: Pick<Queue<Row>, "broken">;
  /** Ends the row and writes it down with its id. False: it is not broken any more. */
  readonly end: (row: Row) => Promise<boolean>;
}

/** Rows whose end could not be written are named once; of more than these some are named again. */
const NAMED_MAX = 1_000;

/**
 * Ends rows that were altered where they are stored, but for those that this process has in flight. One that can't be ended
 * is named once and tried again the next time; it holds up no other. Rejects where the store is away.
 */
export function createSetAside<Row extends { readonly id: string }>(deps: SetAsideDeps<Row>) {
  const { name, log, queue, end } = deps;
  const named = new Set<string>();
  const ended = async (row: Row): Promise<void> => {
    try {
      await end(row);
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      if (named.size >= NAMED_MAX) named.clear();
      if (!named.has(row.id)) {
        log.error("row.not_set_aside", {
          of: name,
          id: row.id,
          error: error instanceof Error ? error.name : "unknown",
        });
      }
      named.add(row.id);
    }
  };
  return async (isOurs: (id: string) => boolean): Promise<void> => {
    for (let after = ""; ;) {
      const found = await queue.broken(BROKEN_ROWS_MAX, after);
      const last = found.at(-1);
      if (last === undefined) return;
      after = last.id;
      for (const row of found) if (!isOurs(row.id)) await ended(row);
    }
  };
}
