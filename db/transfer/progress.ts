import type { RowKey } from "./tables.ts";

/** The fact that a copy was completed: which file, and when. */
export const TRANSFERRED_FACT = "transferred";

/** How far a copy has come. Written to the target with each batch, in the same commit. */
export interface TransferProgress {
  /** `TransferSource.id`. */
  readonly source: string;
  /** `TransferSource.state`; empty: the rows differ from the file's, so that the next run copies all of them again. */
  readonly state: string;
  /** Rows copied, by table. A table that is not the last of these is complete. */
  readonly copied: Readonly<Record<string, number>>;
  /** The last key copied of the last table; null: none yet. */
  readonly after: RowKey | null;
}

export function beginning(source: string, state: string): TransferProgress {
  return { source, state, copied: {}, after: null };
}

export function textOfProgress(progress: TransferProgress): string {
  return JSON.stringify(progress);
}

export function progressIn(text: string): TransferProgress {
  // Safe: only `textOfProgress` writes this fact.
  return JSON.parse(text) as TransferProgress;
}
