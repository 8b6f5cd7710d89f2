import type { Action } from "./action.ts";
import { type Actor, SYSTEM } from "./actor.ts";
import type { TimelineEvent, TimelineEntry } from "./timeline.ts";

/** How the newest run of an action was decided. */
export interface LatestDecision {
  /** `rejected`: somebody rejected or cancelled it. `unanswered`: nobody decided in time. */
  readonly decision: "approved" | "rejected" | "unanswered";
  readonly by: Actor | null;
  /** What the person wrote: data from outside. */
  readonly reason: string | null;
  /** Set when an MCP client says that it has put the decision to its person. */
  readonly via: "elicitation" | null;
}

/** Whether the timeline of this action has a decision about its newest run. */
export function isDecided({ status, approvedAt }: Action): boolean {
  return status === "cancelled" || (status !== "awaiting_approval" && approvedAt !== null);
}

/**
 * The newest decision about the run that the action is in; null where there is none. The status of the action tells which
 * one to look for, because the timeline may have been read a moment later.
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
