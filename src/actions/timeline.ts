import type { ActionStatus, Action } from "./action.ts";
import { type Actor, SYSTEM } from "../accounts/roles.ts";
import type { OutcomeKind } from "./outcome.ts";

interface Decision {
  readonly actor: Actor;
  readonly reason?: string | null;
  /** Set when an MCP client says that it asked its person for the decision. */
  readonly via?: "elicitation";
}

/** The result of one attempt; `attempt` counts within the run. */
interface AttemptMade {
  readonly attempt: number;
  readonly outcome: OutcomeKind;
  readonly response_code: number | null;
  readonly error: string | null;
  readonly duration_ms: number | null;
  readonly next_retry_at: string | null;
  readonly location: string | null;
}

/** The result of one attempt to deliver a notification. */
interface Notified {
  readonly event: string;
  readonly delivered: boolean;
  /** Attempts made by then. */
  readonly attempts: number;
  readonly error: string | null;
  /** Null when no attempt follows: it was delivered or given up. */
  readonly next_retry_at: string | null;
}

/** One event of an action. Members are named as in the API. */
export type TimelineEvent =
  | ({ readonly type: "created" | "approved" | "rejected" | "cancelled" | "retried" | "paused" | "resumed" } & Decision)
  | { readonly type: "held" | "started" | "completed" | "failed" }
  /** The attempt of the last `started` never began and does not count. `reason`: see `describeNotStarted`. */
  | { readonly type: "not_started"; readonly reason: string }
  | ({ readonly type: "attempt" } & AttemptMade)
  | ({ readonly type: "mail" | "callback" } & Notified);

export type TimelineEventType = TimelineEvent["type"];

/** A row of the timeline as the store gives it back. */
export interface TimelineEntry {
  /** Increases over all actions of the service; the position in the event stream. */
  readonly seq: number;
  readonly at: Date;
  readonly run: number;
  /** The action's status after it. */
  readonly status: ActionStatus;
  readonly event: TimelineEvent;
}

/** How the newest run of an action was decided. */
export interface LatestDecision {
  /** `rejected`: somebody rejected or cancelled it. `unanswered`: nobody decided in time. */
  readonly decision: "approved" | "rejected" | "unanswered";
  readonly by: Actor | null;
  /** Untrusted text of the person. */
  readonly reason: string | null;
  /** Set when an MCP client says that it asked its person for the decision. */
  readonly via: "elicitation" | null;
}

/** Whether the timeline of this action has a decision about its newest run. */
export function isDecided({ status, approvedAt }: Action): boolean {
  return status === "cancelled" || (status !== "awaiting_approval" && approvedAt !== null);
}

/**
 * The newest decision about the present run; null: none. The status of the action decides which one to look for, because
 * `entries` may have been read a moment later.
 */
export function latestDecision(action: Action, entries: readonly TimelineEntry[]): LatestDecision | null {
  if (!isDecided(action)) return null;
  const ofRun = entries.filter(({ run }) => run === action.run).map(({ event }) => event);
  if (action.status === "cancelled") return endingIn(ofRun);
  const approval = ofRun.findLast(isApproval);
  // Safe: whatever approves an action is an actor.
  const by = approval?.actor ?? (action.approvedBy as Actor | null);
  return { decision: "approved", by, reason: approval?.reason ?? null, via: approval?.via ?? null };
}

function endingIn(events: readonly TimelineEvent[]): LatestDecision | null {
  const ending = events.findLast(isEnding);
  if (ending === undefined) return null;
  const { actor: by, reason = null, via = null } = ending;
  return { decision: by === SYSTEM ? "unanswered" : "rejected", by, reason, via };
}

type Decided = Extract<TimelineEvent, { readonly actor: Actor }>;

function isApproval(event: TimelineEvent): event is Decided {
  return event.type === "approved";
}

function isEnding(event: TimelineEvent): event is Decided {
  return event.type === "rejected" || event.type === "cancelled";
}
