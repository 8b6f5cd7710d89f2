import { type Action, isTerminal } from "../core/action.ts";
import { RECEIPT_RELOAD_SECONDS_MAX, RECEIPT_RELOAD_SECONDS_MIN, RECEIPT_RELOAD_SHARE } from "../core/limits.ts";

/** The query parameter by which a reader stops the reloading of a receipt, or lets it go on. */
export const RELOAD_PARAMETER = "reload";

/** How the page of a receipt that may still change is kept current. */
export interface ReceiptReload {
  readonly seconds: number;
  /** Whether the browser loads it again by itself; else its reader stopped that. */
  readonly isOn: boolean;
}

/**
 * The reload that a request asks for by its query; null: the action has ended. Other values and parameters mean nothing:
 * mail programs add their own to a link.
 */
export function receiptReload(
  action: Pick<Action, "status" | "dueAt">,
  times: { readonly since: Date; readonly now: Date },
  search: string,
): ReceiptReload | null {
  const seconds = receiptReloadSeconds(action, times.since, times.now);
  if (seconds === null) return null;
  return { seconds, isOn: new URLSearchParams(search).get(RELOAD_PARAMETER) !== "off" };
}

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
