import type { AuditEntry, AuditKind } from "../domain/audit.ts";

/** An entry as it is kept. */
export interface AuditRow extends AuditEntry {
  /** Grows with every entry of the store. */
  readonly seq: number;
}

export interface AuditQuery {
  readonly accountId: string;
  /** Empty: any. */
  readonly kinds: readonly AuditKind[];
  readonly actor: string | null;
  /** At this time or later. */
  readonly since: Date | null;
  /** Before this time. */
  readonly until: Date | null;
  /** Only entries older than this number. */
  readonly before: number | null;
  readonly limit: number;
}

export interface AuditPage {
  /** Newest first. */
  readonly rows: readonly AuditRow[];
  /** Where the next page begins; null when there is none. A page may hold fewer than `limit` and still go on. */
  readonly before: number | null;
}

/** Who did what to an account. Entries are added, with the change that they tell of, and never changed. */
export interface AuditStore {
  /** An entry of something that changes nothing else. It is durable when this resolves. */
  record(entry: AuditEntry): Promise<void>;
  page(query: AuditQuery): Promise<AuditPage>;
  /** Forgets entries of this time or before, some at a time; true when there may be more. */
  prune(until: Date): Promise<boolean>;
}
