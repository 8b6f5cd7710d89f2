import { auditOfSystem } from "../domain/audit.ts";
import { expire } from "../domain/expire.ts";
import { EXPIRE_AT_ONCE_MAX, EXPIRE_SCAN_ROWS_MAX } from "../domain/limits.ts";
import type { Bus } from "../ports/bus.ts";
import type { Log } from "../ports/log.ts";
import type { Metrics } from "../ports/metrics.ts";
import { type ActionStore, StoreUnavailable } from "../ports/store.ts";
import type { HeldAction, UpkeepStore } from "../ports/upkeep.ts";
import type { Enqueue } from "./owe.ts";

export interface ExpireDeps {
  readonly actions: Pick<ActionStore, "find" | "apply">;
  readonly upkeep: Pick<UpkeepStore, "held">;
  readonly bus: Pick<Bus, "publish">;
  readonly log: Pick<Log, "info" | "error">;
  readonly metrics: Pick<Metrics, "decided">;
  readonly enqueue: Enqueue;
}

/** Walks over what waits for a person and cancels what has waited too long; ends early when it is to stop. */
export type Expire = (now: Date, stop: AbortSignal) => Promise<void>;

const HOUR_MS = 3_600_000;

/**
 * `APPROVAL_TTL_HOURS`. The cancel is a change like any other: callbacks go out, streams hear of it, and whoever approves at
 * the same moment wins or is told that it is cancelled.
 */
export function createExpire(deps: ExpireDeps, hoursMax: number): Expire {
  const { upkeep, log } = deps;
  return async (now, stop) => {
    const until = new Date(now.getTime() - hoursMax * HOUR_MS);
    let expired = 0;
    for (let after = ""; !stop.aborted;) {
      const page = await upkeep.held(until, after, EXPIRE_SCAN_ROWS_MAX);
      const late = page.filter(({ heldAt }) => heldAt <= until);
      for (let at = 0; at < late.length && !stop.aborted; at += EXPIRE_AT_ONCE_MAX) {
        const some = late.slice(at, at + EXPIRE_AT_ONCE_MAX);
        const ended = await Promise.all(some.map((held) => expireOne(deps, { ...held, hoursMax }, now)));
        expired += ended.filter(Boolean).length;
      }
      if (page.length < EXPIRE_SCAN_ROWS_MAX) break;
      after = page.at(-1)?.id ?? "";
    }
    if (expired > 0) log.info("approvals.expired", { count: expired });
  };
}

/** False: somebody decided before or does in this moment, or its row was altered. What is still held then is found by the next walk. */
async function expireOne(
  { actions, bus, log, metrics, enqueue }: ExpireDeps,
  held: HeldAction & { readonly hoursMax: number },
  now: Date,
): Promise<boolean> {
  try {
    const action = await actions.find(held.accountId, held.id);
    const change = action === null ? null : expire(action, held, now);
    if (change === null) return false;
    const outbox = enqueue(change.after, now, change.events);
    const { id, accountId, method, host, run } = change.after;
    const audited = { kind: "cancelled", subject: id, detail: { method, host, run } } as const;
    const audit = auditOfSystem(accountId, audited, now);
    if (!(await actions.apply({ change, at: now, outbox, audit }))) return false;
    metrics.decided("cancel");
    bus.publish(change.after);
    return true;
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    // It holds up no other, and is tried again by the next walk.
    log.error("approval.not_expired", { action_id: held.id, error: error instanceof Error ? error.name : "unknown" });
    return false;
  }
}
