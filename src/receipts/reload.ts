import { type Action, isTerminal } from "../actions/action.ts";
import { RECEIPT_RELOAD_SECONDS_MAX, RECEIPT_RELOAD_SECONDS_MIN, RECEIPT_RELOAD_SHARE } from "../config/limits.ts";

/**
 * After how many seconds a browser loads a receipt again; null: the action has ended, so that nothing more comes. The longer
 * nothing has happened, the rarer; right after an attempt that is due. `since`: when the action last changed.
 */
export function receiptReloadSeconds(action: Pick<Action, "status" | "dueAt">, since: Date, now: Date): number | null {
  if (isTerminal(action.status)) return null;
  const waited = secondsBetween(since, now) / RECEIPT_RELOAD_SHARE;
  const dueIn =
    action.dueAt === null || action.dueAt <= now ? Number.POSITIVE_INFINITY : secondsBetween(now, action.dueAt) + 1;
  const seconds = Math.min(Math.max(waited, RECEIPT_RELOAD_SECONDS_MIN), dueIn, RECEIPT_RELOAD_SECONDS_MAX);
  return Math.max(Math.ceil(seconds), RECEIPT_RELOAD_SECONDS_MIN);
}

function secondsBetween(from: Date, to: Date): number {
  return Math.max(0, to.getTime() - from.getTime()) / 1_000;
}
