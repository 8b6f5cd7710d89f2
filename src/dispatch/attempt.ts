import type { Action } from "../domain/action.ts";
import type { Clock } from "../ports/clock.ts";
import type { OutboundRequest, Sender } from "../ports/sender.ts";
import type { Settle } from "./settlement.ts";

export interface AttemptDeps {
  readonly sender: Sender;
  readonly clock: Clock;
  readonly requestOf: (action: Action, now: Date) => Promise<OutboundRequest>;
  readonly settle: Settle;
  readonly attemptTimeoutMs: number;
}

/** One attempt of an action that was claimed for it. `stop` ends it early, as interrupted. */
export type Attempt = (action: Action, stop: AbortSignal) => Promise<void>;

/** Prepare, send, settle. The claim is on disk before this begins; the end is on disk before this resolves. */
export function createAttempt({ sender, clock, requestOf, settle, attemptTimeoutMs }: AttemptDeps): Attempt {
  return async (action, stop) => {
    const request = await requestOf(action, clock.now());
    const startedMs = clock.monotonicMs();
    const outcome = await sender.send(request, { timeoutMs: attemptTimeoutMs, stop });
    await settle(action, { outcome, durationMs: Math.round(clock.monotonicMs() - startedMs) });
  };
}
