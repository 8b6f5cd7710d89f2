import type { Action } from "../core/action.ts";
import { auditOfSystem } from "../core/audit.ts";
import { type Change, expire, expireUnsent } from "../core/changes.ts";
import { EXPIRE_PARALLEL_MAX, EXPIRE_SCAN_ROWS_MAX, EXPIRED_ROWS_MAX, HOUR_MS } from "../core/limits.ts";
import { type ExpiredAction, type HeldAction, StoreUnavailable } from "../core/store.ts";
import { errorName } from "../observability/log.ts";
import type { Enqueue } from "../receipts/enqueue.ts";
import type { AppContext } from "../runtime/app-context.ts";

/** Cancels what has expired, in steps. The cancellation is a change like any other, with callbacks and events. */
type Expire = (now: Date, stop: AbortSignal) => Promise<void>;

/** Enforces `APPROVAL_TTL_HOURS`. */
export function createExpire(app: AppContext, enqueue: Enqueue, hoursMax: number): Expire {
  const heldBefore = (now: Date) => new Date(now.getTime() - hoursMax * HOUR_MS);
  return expiry<HeldAction>(app, enqueue, {
    event: "approvals.expired",
    pageMax: EXPIRE_SCAN_ROWS_MAX,
    find: (now, after, limit) => app.store.upkeep.held(heldBefore(now), after?.id ?? "", limit),
    isOver: ({ heldAt }, now) => heldAt <= heldBefore(now),
    change: (action, held, now) => expire(action, { ...held, hoursMax }, now),
  });
}

/** Enforces `expires_at` for actions that wait and are not claimed meanwhile. */
export function createExpireUnsent(app: AppContext, enqueue: Enqueue): Expire {
  return expiry<ExpiredAction>(app, enqueue, {
    event: "actions.expired",
    pageMax: EXPIRED_ROWS_MAX,
    find: (now, after, limit) => app.store.upkeep.expired(now, after, limit),
    isOver: () => true,
    change: (action, _row, now) => expireUnsent(action, now),
  });
}

interface Expiry<Row> {
  /** For the log. */
  readonly event: string;
  readonly pageMax: number;
  readonly find: (now: Date, after: Row | null, limit: number) => Promise<readonly Row[]>;
  readonly isOver: (row: Row, now: Date) => boolean;
  /** Null: somebody has decided meanwhile. */
  readonly change: (action: Action, row: Row, now: Date) => Change | null;
}

/** Creates the job that cancels page by page. It ends early if `stop` is aborted. */
function expiry<Row extends Pick<HeldAction, "id" | "accountId">>(
  { store: { actions }, bus, log, metrics }: AppContext,
  enqueue: Enqueue,
  { event, pageMax, find, isOver, change: changeOf }: Expiry<Row>,
): Expire {
  /** False: somebody else decided first, or the row was altered. The next run finds what is left. */
  const end = async (row: Row, now: Date): Promise<boolean> => {
    try {
      const action = await actions.find(row.accountId, row.id);
      const change = action === null ? null : changeOf(action, row, now);
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
      // One action that fails must not stop the others; the next run tries it again.
      log.error("action.not_expired", { action_id: row.id, error: errorName(error) });
      return false;
    }
  };
  return async (now, stop) => {
    let expired = 0;
    for (let after: Row | null = null; !stop.aborted;) {
      const page: readonly Row[] = await find(now, after, pageMax);
      const over = page.filter((row) => isOver(row, now));
      for (let at = 0; at < over.length && !stop.aborted; at += EXPIRE_PARALLEL_MAX) {
        const ended = await Promise.all(over.slice(at, at + EXPIRE_PARALLEL_MAX).map((row) => end(row, now)));
        expired += ended.filter(Boolean).length;
      }
      if (page.length < pageMax) break;
      after = page.at(-1) ?? null;
    }
    if (expired > 0) log.info(event, { count: expired });
  };
}
