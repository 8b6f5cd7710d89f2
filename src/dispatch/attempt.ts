import type { Action } from "../domain/action.ts";
import type { NotStarted } from "../domain/dispatch.ts";
import { attemptMs } from "../domain/lease.ts";
import type { Fault } from "../domain/outcome.ts";
import { type HashOf, isAsApproved } from "../domain/request-digest.ts";
import type { Clock } from "../ports/clock.ts";
import type { OutboundRequest, Sender } from "../ports/sender.ts";
import { UnreadableSecret } from "../ports/secrets.ts";
import { StoreUnavailable } from "../ports/store.ts";
import type { Attempt } from "./flights.ts";
import type { Settlement } from "./settlement.ts";

export interface AttemptDeps {
  readonly sender: Sender;
  readonly clock: Clock;
  readonly requestOf: (action: Action, now: Date) => Promise<OutboundRequest>;
  readonly settlement: Pick<Settlement, "settle" | "unclaim">;
  readonly hashOf: HashOf;
  readonly attemptTimeoutMs: number;
}

/**
 * Prepare, send, settle. The claim is on disk before this begins; the end is on disk before this resolves. Where no byte can
 * have left the claim is given back.
 */
export function createAttempt(deps: AttemptDeps): Attempt<Action> {
  const { sender, clock, requestOf, settlement, hashOf, attemptTimeoutMs } = deps;

  return async (action, { stop, releaseSlot }) => {
    const refuse = (fault: Fault, cause?: unknown) => {
      releaseSlot();
      return settlement.settle(action, { outcome: { kind: "not_sent", fault }, durationMs: 0, cause });
    };
    const giveBack = (why: NotStarted) => {
      releaseSlot();
      return settlement.unclaim(action, why);
    };
    if (!isAsApproved(action, hashOf)) return refuse("altered");
    const request = await requestOf(action, clock.now()).catch(async (error: unknown) => {
      if (error instanceof StoreUnavailable) {
        await giveBack("store_away");
        throw error;
      }
      // The one can be mended while attempts remain, by a rotation. Else it is a row by hand, with a URL that is none or an
      // account that is gone: it would be no better at the next attempt.
      await refuse(error instanceof UnreadableSecret ? "unsignable" : "altered", error);
      return null;
    });
    if (request === null) return;
    const timeoutMs = attemptMs(action, clock.now(), attemptTimeoutMs);
    if (timeoutMs === 0) return giveBack("late");
    const startedMs = clock.monotonicMs();
    const outcome = await sender.send(request, { timeoutMs, stop });
    const durationMs = Math.round(clock.monotonicMs() - startedMs);
    if (outcome.kind === "stopped") return giveBack("stopping");
    releaseSlot();
    await settlement.settle(action, { outcome, durationMs, timeoutMs });
  };
}
