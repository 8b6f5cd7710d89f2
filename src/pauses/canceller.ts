import { auditOfSystem } from "../core/audit.ts";
import type { Decide } from "../core/changes.ts";
import { DomainError } from "../core/domain-error.ts";
import { CANCEL_BATCH_MAX } from "../core/limits.ts";
import { type Pause, resumed } from "../core/pause.ts";
import { type Caller, SYSTEM } from "../core/roles.ts";
import { StoreUnavailable } from "../core/store.ts";
import type { AppContext } from "../runtime/app-context.ts";
import type { ActivePauses } from "./active-pauses.ts";

/**
 * Cancels the unfinished actions of revoked keys in batches. The key stays paused until none is left, so that an action
 * whose attempt fails meanwhile is not sent again, and until no other node takes the key any more. It goes on after a restart.
 */
export function createCanceller(
  app: AppContext,
  paused: Pick<ActivePauses, "refresh">,
  cancel: Decide,
  takenElsewhereMs: number,
) {
  const { clock, log } = app;
  const { accounts, pauses } = app.store;
  const stopped = new AbortController();
  let last = Promise.resolve();

  /** Cancels a batch. True: there may be more. False also if nothing could be cancelled, since the next step would be the same. */
  const step = async (pause: Pause): Promise<boolean> => {
    const { id: pauseId, accountId, subject, createdBy: actor } = pause;
    const { ids, isSending } = await pauses.unfinished(accountId, subject, CANCEL_BATCH_MAX);
    if (ids.length === 0 && !isSending) {
      const at = clock.now();
      // It may have been paused long before.
      const revokedAt = (await accounts.findKey(accountId, subject))?.revokedAt ?? pause.createdAt;
      const leftMs = revokedAt.getTime() + takenElsewhereMs - at.getTime();
      if (leftMs > 0) {
        clock.after(leftMs, () => void run());
        return false;
      }
      await pauses.end(accountId, pauseId, { at, by: SYSTEM, audit: auditOfSystem(accountId, resumed(pause), at) });
      await paused.refresh(accountId);
    }
    const caller: Caller = {
      accountId,
      keyId: null,
      keyName: actor,
      role: "owner",
      hold: "none",
      actor,
      clearsUp: true,
    };
    // Concurrently, so that they share commits.
    const cancelled = await Promise.all(
      ids.map((id) => cancel(caller, id, "The key that created it was revoked.").then(() => true, falseIfRefused)),
    );
    return cancelled.includes(true);
  };

  const cancelAll = async (): Promise<void> => {
    if (stopped.signal.aborted) return;
    for (const pause of await pauses.inForce(null)) {
      while (pause.cancels && !stopped.signal.aborted && (await step(pause)));
    }
  };

  /** Cancels as much as possible now, after earlier runs. Never rejects. */
  const run = (): Promise<void> => {
    last = last.then(cancelAll).catch((error: unknown) => {
      // `Outage` reports that the store is unavailable; `reconcile` continues when it is back.
      if (error instanceof StoreUnavailable) return;
      log.error("pauses.cancel_failed", { error: error instanceof Error ? error.name : "unknown" });
    });
    return last;
  };

  return {
    run,
    /** Starts nothing more. Resolves when the present run has ended. */
    async stop(): Promise<void> {
      stopped.abort();
      await last;
    },
  };
}

/** False if the cancel was refused, because the action has ended or is being sent; rethrows other errors. */
function falseIfRefused(error: unknown): false {
  if (error instanceof DomainError) return false;
  throw error;
}
