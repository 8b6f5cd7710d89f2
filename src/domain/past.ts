import { type Action, type ActionState, isTerminal, type Result } from "./action.ts";
import type { TimelineEvent, TimelineEntry } from "./timeline.ts";

/** What a timeline tells of an action's state; status, run and end are those of its last entry. */
type Told = Omit<ActionState, "status" | "run" | "finishedAt" | "leaseUntil" | "approvedDigest">;

const BEGINNING: Told = {
  attempts: 0,
  dueAt: null,
  startedAt: null,
  approvedAt: null,
  approvedBy: null,
  result: null,
};

/**
 * An action as it was after a change that others have overtaken: so the event stream tells of it what was true then. The
 * entries are those of the change's run up to the change itself, oldest first. Only the body of an answer that a later
 * attempt has replaced is gone: nobody keeps it.
 */
export function pastOf(action: Action, entries: readonly TimelineEntry[]): Action {
  const last = entries.at(-1);
  if (last === undefined) return action;
  const { status, run, at } = last;
  const told = entries.reduce(stepped, BEGINNING);
  return { ...action, ...told, status, run, leaseUntil: null, finishedAt: isTerminal(status) ? at : null };
}

function stepped(before: Told, { at, event }: TimelineEntry): Told {
  const { type } = event;
  if (type === "created" || type === "retried") return { ...BEGINNING, dueAt: at };
  if (type === "approved") return { ...before, dueAt: at, approvedAt: at, approvedBy: event.actor };
  if (type === "started") return { ...before, attempts: before.attempts + 1, startedAt: before.startedAt ?? at };
  if (type === "not_started") return stateBeforeClaim(before, at);
  if (type === "attempt") return { ...before, dueAt: dateOf(event.next_retry_at), result: resultBefore(event) };
  // The rest says only what the status says, or speaks of notifications.
  return before;
}

function stateBeforeClaim(before: Told, at: Date): Told {
  const attempts = Math.max(0, before.attempts - 1);
  return { ...before, attempts, dueAt: at, startedAt: attempts === 0 ? null : before.startedAt };
}

function resultBefore(made: Extract<TimelineEvent, { readonly type: "attempt" }>): Result {
  const { error, outcome, response_code: code, duration_ms: durationMs } = made;
  const isRefusal = outcome === "answered" && code !== null && (code < 200 || code > 299);
  const errorSource = isRefusal ? "target" : "dispatch";
  return {
    lastError: error,
    errorSource: error === null ? null : errorSource,
    // As in `settle`: an answer that broke off counts as none.
    responseCode: error === null || isRefusal ? code : null,
    responseBody: null,
    responseTruncated: false,
    durationMs,
  };
}

function dateOf(text: string | null): Date | null {
  return text === null ? null : new Date(text);
}
