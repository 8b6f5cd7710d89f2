import type { Actor } from "./roles.ts";
import type { ActionStatus } from "./action.ts";
import type { AuditEntry } from "./audit.ts";

export const BULK_OPERATIONS = ["retry", "cancel"] as const;

export type BulkOperation = (typeof BULK_OPERATIONS)[number];

export const BULK_STATUSES = ["running", "finished", "stopped"] as const;

type BulkStatus = (typeof BULK_STATUSES)[number];

/** An operation on the actions that matched a filter when it began. */
export interface BulkJob {
  readonly id: string;
  readonly accountId: string;
  readonly operation: BulkOperation;
  /** JSON of the filter as the API has it. */
  readonly filter: string;
  readonly reason: string | null;
  readonly status: BulkStatus;
  /** How many actions it covers. */
  readonly matching: number;
  readonly done: number;
  readonly failed: number;
  readonly createdAt: Date;
  readonly createdBy: Actor;
  /** The key that began it; empty: a person did. */
  readonly keyId: string;
  readonly personId: string;
  /** The network address that the request came from. */
  readonly client: string;
  readonly finishedAt: Date | null;
  /** Who stopped it; `system`: the key or person that began it may not act any more. */
  readonly stoppedBy: Actor | null;
}

/** An action of a job, in the run that it was in when the job began. */
export interface BulkAction {
  readonly id: string;
  readonly run: number;
}

/** The result for an action. */
export type BulkEnd =
  | { readonly id: string; readonly status: "done"; readonly actionStatus: ActionStatus }
  | { readonly id: string; readonly status: "failed"; readonly code: string; readonly message: string };

/** An action of a job as it is shown. */
export interface BulkResult extends BulkAction {
  readonly status: "waiting" | BulkEnd["status"];
  readonly actionStatus: string | null;
  readonly code: string | null;
  readonly message: string | null;
}

export interface BulkStore {
  /** Writes a job with its actions. False: too many jobs run or are kept, and nothing is written. */
  add(job: BulkJob, actions: readonly BulkAction[], audit: AuditEntry): Promise<boolean>;
  find(accountId: string, id: string): Promise<BulkJob | null>;
  /** Newest first, older than `before`. */
  list(accountId: string, before: string | null, limit: number): Promise<readonly BulkJob[]>;
  /** The newest actions first, older than `before`. */
  results(jobId: string, query: BulkResultFilter): Promise<readonly BulkResult[]>;
  /** Running jobs of all accounts, oldest first. */
  running(limit: number): Promise<readonly BulkJob[]>;
  /** The next actions of a job, newest first. */
  waiting(jobId: string, limit: number): Promise<readonly BulkAction[]>;
  /** Writes the results for actions, once for each. */
  settle(jobId: string, ends: readonly BulkEnd[]): Promise<void>;
  /** Ends a running job. False: it has ended. */
  end(jobId: string, end: BulkJobEnd, audit?: AuditEntry): Promise<boolean>;
  /** Deletes some rows of jobs that ended by then; true: there may be more. */
  prune(until: Date): Promise<boolean>;
}

export interface BulkResultFilter {
  /** Null: any. */
  readonly status: BulkResult["status"] | null;
  readonly before: string | null;
  readonly limit: number;
}

interface BulkJobEnd {
  readonly status: Exclude<BulkStatus, "running">;
  readonly at: Date;
  /** Null: it has ended because every action had its turn. */
  readonly by: Actor | null;
}
