import type { OutcomeKind } from "../domain/outcome.ts";
import type { NotificationKind } from "../domain/owed.ts";

/** What the time to an answer was spent on: on work of the service, on a wait that was asked for, or on beginning a stream. */
export type RequestKind = "work" | "wait" | "stream";

/** A request that was answered. */
export interface RequestSeen {
  readonly method: string;
  /** The pattern of its route, never its path; null: there is none. */
  readonly route: string | null;
  readonly status: number;
  readonly kind: RequestKind;
}

/** How a call of a tool ended: done, ended with a question to a person, refused with one of our codes, or by a bug. */
export type ToolOutcome = "ok" | "asked" | "refused" | "failed";

/**
 * The numbers that the service keeps of itself; names and labels are fixed here so that they stay few. A duration is null
 * where nobody measured: such an attempt is counted, and no time is made up for it.
 */
export interface Metrics {
  created(kind: "created" | "matched"): void;
  attempted(outcome: OutcomeKind, next: "completed" | "retry" | "failed", durationMs: number | null): void;
  notified(
    kind: NotificationKind,
    next: "delivered" | "retry" | "given_up" | "dropped",
    durationMs: number | null,
  ): void;
  decided(operation: "approve" | "cancel" | "retry"): void;
  rescued(count: number): void;
  fenced(): void;
  /** A claim was given back, because its attempt never began. */
  unclaimed(of: "action" | NotificationKind): void;
  /** A row that was altered where it is stored was ended. */
  setAside(of: "action" | NotificationKind): void;
  /** A periodic task ran into an error that nobody expected; it runs again. */
  taskFailed(task: string): void;
  requested(request: RequestSeen, durationMs: number): void;
  toolCalled(tool: string, outcome: ToolOutcome): void;
}
