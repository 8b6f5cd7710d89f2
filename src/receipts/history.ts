import { type Action, isTerminal } from "../core/action.ts";
import {
  RECEIPT_RELOAD_SECONDS_MAX,
  RECEIPT_RELOAD_SECONDS_MIN,
  RECEIPT_RELOAD_SHARE,
  RECEIPT_ATTEMPTS_MAX,
  RECEIPT_ROWS_MAX,
  TIMELINE_ROWS_MAX,
} from "../core/limits.ts";
import type { TimelineEntry } from "../core/timeline.ts";

/** The query parameter for an earlier part of the timeline: 1 for the part before the newest. */
export const EARLIER_PARAMETER = "earlier";

/** The part of a timeline that a receipt shows. */
export interface ReceiptHistory {
  /** Oldest first. */
  readonly entries: readonly TimelineEntry[];
  /** How many parts are newer. */
  readonly part: number;
  readonly hasEarlier: boolean;
  /** The number of attempts in all runs, and of those before `entries`. */
  readonly attempts: number;
  readonly earlierAttempts: number;
  /** Whether the timeline was read only in part, since it is too long. */
  readonly isCut: boolean;
}

/** A part of a timeline: 0 is the newest, each next number the part before. Beyond the oldest part, returns the oldest. */
export function receiptHistory(timeline: readonly TimelineEntry[], part: number): ReceiptHistory {
  let [start, end] = [startOf(timeline, timeline.length), timeline.length];
  let at = 0;
  for (; at < part && start > 0; at += 1) [start, end] = [startOf(timeline, start), start];
  return {
    entries: timeline.slice(start, end),
    part: at,
    hasEarlier: start > 0,
    attempts: attemptsIn(timeline),
    earlierAttempts: attemptsIn(timeline.slice(0, start)),
    isCut: timeline.length >= TIMELINE_ROWS_MAX,
  };
}

/** The part that a query asks for. Anything but a short number means the newest. */
export function partIn(search: string): number {
  const text = new URLSearchParams(search).get(EARLIER_PARAMETER) ?? "";
  return /^\d{1,4}$/.test(text) ? Number(text) : 0;
}

/** Where the part that ends before `end` begins: after an attempt, or when it has the maximum of entries. */
function startOf(timeline: readonly TimelineEntry[], end: number): number {
  let attempts = 0;
  for (let at = end - 1; at >= 0; at -= 1) {
    attempts += Number(timeline[at]?.event.type === "attempt");
    if (attempts > RECEIPT_ATTEMPTS_MAX || end - at > RECEIPT_ROWS_MAX) return at + 1;
  }
  return 0;
}

function attemptsIn(timeline: readonly TimelineEntry[]): number {
  return timeline.filter(({ event }) => event.type === "attempt").length;
}

/** The query parameter that says that a decision in a mail came too late to count. */
export const LATE_PARAMETER = "late";

/** The query parameter with which a reader turns the reloading of a receipt off or on. */
export const RELOAD_PARAMETER = "reload";

/** How the page of a receipt that may still change is kept current. */
export interface ReceiptReload {
  readonly seconds: number;
  /** Whether the browser reloads it; false: its reader has stopped that. */
  readonly isOn: boolean;
}

/**
 * How to reload a receipt, by the query of its request; null: the action has ended. Other parameters and values are ignored,
 * since mail programs add their own to links.
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
 * After how many seconds a browser reloads a receipt; null: the action has ended. The longer nothing has happened, the longer
 * it waits, but never beyond the next attempt that is due. `since`: when the action last changed.
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
