import type { Action } from "../domain/action.ts";
import type { Fault } from "../domain/outcome.ts";
import { type HashOf, isAsApproved } from "../domain/request-digest.ts";
import type { Clock } from "../ports/clock.ts";
import type { OutboundRequest, Sender } from "../ports/sender.ts";
import { UnreadableSecret } from "../ports/secrets.ts";
import { StoreUnavailable } from "../ports/store.ts";
import type { Attempt } from "./flights.ts";
import type { Settle } from "./settlement.ts";

export interface AttemptDeps {
  readonly sender: Sender;
  readonly clock: Clock;
  readonly requestOf: (action: Action, now: Date) => Promise<OutboundRequest>;
  readonly settle: Settle;
  readonly hashOf: HashOf;
  readonly attemptTimeoutMs: number;
}

/** Prepare, send, settle. The claim is on disk before this begins; the end is on disk before this resolves. */
export function createAttempt(deps: AttemptDeps): Attempt<Action> {
  const { sender, clock, requestOf, settle, hashOf, attemptTimeoutMs } = deps;
  const refuse = (action: Action, fault: Fault) =>
    settle(action, { outcome: { kind: "not_sent", fault }, durationMs: 0 });

  return async (action, { stop, landed }) => {
    // After a pause as long as the lease somebody else may have taken the action over; the rescue ends what is left.
    if (action.leaseUntil === null || clock.now() >= action.leaseUntil) return;
    if (!isAsApproved(action, hashOf)) {
      landed();
      return refuse(action, "altered");
    }
    const request = await requestOf(action, clock.now()).catch(async (error: unknown) => {
      landed();
      // Somebody can mend it while attempts remain, by a rotation; or the store is away, and nothing has left.
      const isPassing = error instanceof UnreadableSecret || error instanceof StoreUnavailable;
      // Else a row by hand: a URL that is none, an account that is gone. It would be no better at the next attempt.
      await refuse(action, isPassing ? "unsignable" : "altered");
      if (error instanceof UnreadableSecret) return null;
      throw error;
    });
    if (request === null) return;
    const startedMs = clock.monotonicMs();
    const outcome = await sender.send(request, { timeoutMs: attemptTimeoutMs, stop });
    const durationMs = Math.round(clock.monotonicMs() - startedMs);
    landed();
    await settle(action, { outcome, durationMs });
  };
}
