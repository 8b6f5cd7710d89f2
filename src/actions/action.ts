import type { Actor } from "../accounts/roles.ts";
import type { Creator } from "../approvals/creator.ts";
import { SMALL_ROW_BYTES_MAX } from "../config/limits.ts";

export const ACTION_STATUSES = ["pending", "active", "awaiting_approval", "completed", "failed", "cancelled"] as const;

export type ActionStatus = (typeof ACTION_STATUSES)[number];

export const HTTP_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

export type HttpMethod = (typeof HTTP_METHODS)[number];

/** What happens after an attempt of which nobody knows whether the target received it (decisions 4). */
export type OnUnknown = "retry" | "stop";

/** Who is to blame for a failed attempt: the target's answer, or the way to it (spec "error object"). */
export type ErrorSource = "target" | "dispatch";

/** What the caller asked for. It never changes after creation: what was approved is what is sent. */
export interface ActionRequest {
  /** The target as the caller wrote it; only its parsed parts are ever used. */
  readonly url: string;
  /** Host name in its ASCII form, lower case, without port and without a trailing dot. */
  readonly hostname: string;
  /** Host name, and the port where it is not the scheme's own. Names the lane that the action waits in. */
  readonly host: string;
  readonly method: HttpMethod;
  /** JSON text, byte for byte what the target gets. */
  readonly body: string | null;
  readonly headers: Readonly<Record<string, string>> | null;
  readonly dedupe: string | null;
  readonly idempotencyKey: string | null;
  /** Attempts allowed in one run. */
  readonly retries: number;
  readonly onUnknown: OnUnknown;
  readonly approve: boolean;
  readonly callback: string | null;
  readonly notifyEmail: string | null;
}

/** How the newest attempt of the run ended. */
export interface Result {
  /** One of the fixed sentences of `outcome.ts`; null after a success. */
  readonly lastError: string | null;
  readonly errorSource: ErrorSource | null;
  readonly responseCode: number | null;
  /** JSON text of the target's answer as it is shown (decisions 4). */
  readonly responseBody: string | null;
  readonly responseTruncated: boolean;
  readonly durationMs: number | null;
}

/** What the state machine moves. Every change of it adds one to `revision`. */
export interface ActionState {
  readonly status: ActionStatus;
  /** Counts from 1; a manual retry begins the next run of the same action. */
  readonly run: number;
  /** Attempts claimed in this run, counted before anything is sent. */
  readonly attempts: number;
  /** When a pending action may be claimed. */
  readonly dueAt: Date | null;
  /** Until when the claimant of an active action may settle it. */
  readonly leaseUntil: Date | null;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
  readonly approvedAt: Date | null;
  readonly approvedBy: string | null;
  /** `requestDigest` of what was approved. */
  readonly approvedDigest: string | null;
  readonly result: Result | null;
}

/** One HTTP request that somebody wants made, and what became of it. */
export interface Action extends ActionRequest, ActionState {
  readonly id: string;
  readonly accountId: string;
  /** The fencing token: a write names the revision that it read, and loses when another came first. */
  readonly revision: number;
  readonly createdAt: Date;
  readonly createdBy: Actor;
  /** Id of the key that created it: with account and host the queue that it waits in. Empty: no key did, or none was kept. */
  readonly keyId: string;
  /** Under which rules that key was when it created it: they bind what leaves of the action from then on. */
  readonly creator: Creator;
  /** What is sealed of it does not open: somebody altered it where it is stored. It is shown without, and never sent. */
  readonly isAltered?: true;
}

/** The state in which an action begins: held for a person, or due at once. */
export function firstState(approve: boolean, now: Date): ActionState {
  return {
    status: approve ? "awaiting_approval" : "pending",
    run: 1,
    attempts: 0,
    dueAt: approve ? null : now,
    leaseUntil: null,
    startedAt: null,
    finishedAt: null,
    approvedAt: null,
    approvedBy: null,
    approvedDigest: null,
    result: null,
  };
}

/** Whether the action has ended; only a manual retry moves it again. */
export function isTerminal(status: ActionStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** When the next attempt is due, if the action waits between two attempts (spec `next_retry_at`). */
export function nextRetryAt(action: ActionState): Date | null {
  return action.status === "pending" && action.attempts > 0 ? action.dueAt : null;
}

/** Bytes of the body and headers of an action, where they are more than `SMALL_ROW_BYTES_MAX`. */
export function largeBytesOf({ body, headers }: Pick<Action, "body" | "headers">): number | undefined {
  let bytes = body === null ? 0 : Buffer.byteLength(body);
  for (const [name, value] of Object.entries(headers ?? {})) bytes += name.length + value.length;
  return bytes > SMALL_ROW_BYTES_MAX ? bytes : undefined;
}

/** Bytes as people say them. */
export function sizeWords(bytes: number): string {
  if (bytes < 1_000) return bytes === 1 ? "1 byte" : `${bytes} bytes`;
  const [size, unit] = bytes < 1_000_000 ? [bytes / 1_000, "kB"] : [bytes / 1_000_000, "MB"];
  return `${size.toFixed(1).replace(/\.0$/, "")} ${unit}`;
}
