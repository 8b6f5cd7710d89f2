import type { Action } from "./action.ts";

/** Something that the overview counts, in whatever order it hears of it. */
export type Happened =
  | { readonly kind: "created"; readonly accountId: string; readonly at: Date }
  | {
      readonly kind: "attempted";
      readonly accountId: string;
      readonly at: Date;
      readonly host: string;
      /** What became of the action: a retry follows, or it has ended. */
      readonly next: "completed" | "failed" | "retry";
      readonly durationMs: number | null;
      /** One of the fixed sentences; null after a success. */
      readonly error: string | null;
    };

/** What a change of an action adds to the overview; null: nothing. `at` is when it was heard of. */
export function countedOf(action: Action, at: Date): Happened | null {
  const { accountId, host, status, revision, result, attempts } = action;
  const isAtRest = status === "completed" || status === "failed" || status === "pending";
  if (revision === 1) return { kind: "created", accountId, at };
  // Of what is pending only an attempt that failed leaves a result: every other way there clears it.
  if (!isAtRest || result === null || attempts === 0) return null;
  const { durationMs, lastError: error } = result;
  return { kind: "attempted", accountId, at, host, next: status === "pending" ? "retry" : status, durationMs, error };
}

/** A piece of the time that the overview shows. */
export interface OverviewSlot {
  readonly at: Date;
  readonly created: number;
  /** Actions that ended in it. */
  readonly completed: number;
  readonly failed: number;
  readonly attempts: number;
  /** Of attempts, in milliseconds; null: there was none. */
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

/** A host that attempts failed at, since its first failure that is remembered. */
export interface FailingHost {
  readonly host: string;
  readonly failed: number;
  readonly attempts: number;
  readonly lastError: string;
  readonly lastFailedAt: Date;
}

/** What went through an account lately. */
export interface Overview {
  /** Nothing that was before is counted. */
  readonly since: Date;
  /** Older things are still being read. */
  readonly isReading: boolean;
  /** Oldest first, the last one not over yet; none is left out. */
  readonly slots: readonly OverviewSlot[];
  readonly slotMs: number;
  /** Of all attempts; null: there was none. */
  readonly latency: { readonly p50Ms: number; readonly p95Ms: number; readonly p99Ms: number } | null;
  /** Most failures first. */
  readonly hosts: readonly FailingHost[];
}

/** The retries of an account that wait for their time. */
export interface ScheduledRetry {
  readonly count: number;
  /** Pending, and due: they wait for a free slot. */
  readonly due: number;
  /** There are more than were looked at. */
  readonly isCut: boolean;
  /** The hosts whose next retry comes first. */
  readonly hosts: readonly { readonly host: string; readonly count: number; readonly nextAt: Date }[];
}
