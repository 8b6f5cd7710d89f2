import type { ActionStatus } from "./action.ts";
import type { Actor } from "./actor.ts";
import type { OutcomeKind } from "./outcome.ts";

/** What a person or the system decided, by whom and why. */
interface Decision {
  readonly actor: Actor;
  readonly reason?: string | null;
  /** Set when an MCP client says that it has put the decision to its person. */
  readonly via?: "elicitation";
}

/** How one attempt went; `attempt` counts within the run. */
interface AttemptMade {
  readonly attempt: number;
  readonly outcome: OutcomeKind;
  readonly response_code: number | null;
  readonly error: string | null;
  readonly duration_ms: number | null;
  readonly next_retry_at: string | null;
  readonly location: string | null;
}

/** The fate of one attempt of a notification that an action owed. */
interface Notified {
  readonly event: string;
  readonly delivered: boolean;
  /** Attempts made by then. */
  readonly attempts: number;
  readonly error: string | null;
  /** Null when no attempt follows: it was delivered or given up. */
  readonly next_retry_at: string | null;
}

/** Something that happened to an action, and what is told of it (decisions 12). The members are as users read them. */
export type TimelineEvent =
  | ({ readonly type: "created" | "approved" | "rejected" | "cancelled" | "retried" | "paused" | "resumed" } & Decision)
  | { readonly type: "held" | "started" | "completed" | "failed" }
  /** The attempt that `started` told of never began, and does not count. `reason` is one of our own sentences. */
  | { readonly type: "not_started"; readonly reason: string }
  | ({ readonly type: "attempt" } & AttemptMade)
  | ({ readonly type: "mail" | "callback" } & Notified);

export type TimelineEventType = TimelineEvent["type"];

/** A row of the timeline as the store gives it back. */
export interface TimelineEntry {
  /** Grows over all actions of the service; the position in the event stream. */
  readonly seq: number;
  readonly at: Date;
  readonly run: number;
  /** The action's status after it. */
  readonly status: ActionStatus;
  readonly event: TimelineEvent;
}
