import type { OutcomeKind } from "../domain/outcome.ts";
import type { OwedKind } from "../domain/owed.ts";

/**
 * The numbers that the service keeps of itself; names and labels are fixed here so that they stay few. A duration is null
 * where nobody measured: such an attempt is counted, and no time is made up for it.
 */
export interface Metrics {
  created(kind: "created" | "matched"): void;
  attempted(outcome: OutcomeKind, next: "completed" | "retry" | "failed", durationMs: number | null): void;
  notified(kind: OwedKind, next: "delivered" | "retry" | "given_up" | "dropped", durationMs: number | null): void;
  decided(operation: "approve" | "cancel" | "retry"): void;
  rescued(count: number): void;
  fenced(): void;
  requested(method: string, status: number, durationMs: number): void;
}
