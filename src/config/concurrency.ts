import { CALLBACKS_IN_FLIGHT_MAX, MAILS_IN_FLIGHT_MAX } from "../domain/limits.ts";
import type { Texts } from "./read-settings.ts";
import type { Settings } from "./settings.ts";

/** What Bun takes when BUN_CONFIG_MAX_HTTP_REQUESTS is unset or unreadable. */
const BUN_FETCHES_DEFAULT = 256;
const BUN_FETCHES_MAX = 65_535;
/** One call for callbacks and one for mails. */
const NOTIFICATIONS_MIN = 2;

/**
 * Calls that Bun makes at a time. One more waits inside Bun while its deadline runs, so that slow targets would make
 * healthy ones time out (measured: 2.4 s and more behind 256 slow ones). Bun reads the variable at its start only.
 */
export function fetchesMaxOf(text: string | undefined): number {
  const count = /^\d{1,5}$/.test(text ?? "") ? Number(text) : 0;
  return count >= 1 && count <= BUN_FETCHES_MAX ? count : BUN_FETCHES_DEFAULT;
}

/** Attempts under way at a time. Unless it was set, it leaves a quarter of Bun's calls to mails and callbacks. */
export function concurrencyOf(settings: Settings, texts: Texts, fetchesMax: number): number {
  if (texts.DISPATCH_CONCURRENCY !== undefined) return settings.DISPATCH_CONCURRENCY;
  return Math.min(settings.DISPATCH_CONCURRENCY, Math.max(1, Math.floor(fetchesMax * 0.75)));
}

/** Callbacks and mails under way at a time: out of what attempts leave of Bun's calls, and one of each at least. */
export function notificationsOf(dispatchConcurrency: number, fetchesMax: number) {
  const left = fetchesMax - dispatchConcurrency;
  const mailConcurrency = Math.max(1, Math.min(MAILS_IN_FLIGHT_MAX, Math.floor(left / 8)));
  const callbackConcurrency = Math.max(1, Math.min(CALLBACKS_IN_FLIGHT_MAX, left - mailConcurrency));
  return { callbackConcurrency, mailConcurrency };
}

export function concurrencyProblems(texts: Texts, fetchesMax: number): readonly string[] {
  const most = fetchesMax - NOTIFICATIONS_MIN;
  // Written so that a text that is no number, which has a problem of its own, has not this one too.
  const isTooMany = Number(texts.DISPATCH_CONCURRENCY) > most;
  if (!isTooMany) return [];
  return [
    `DISPATCH_CONCURRENCY is above ${most}: of the ${fetchesMax} calls that Bun makes at a time, callbacks and mails need ` +
      `${NOTIFICATIONS_MIN}. Lower it, or start with a higher BUN_CONFIG_MAX_HTTP_REQUESTS in the environment (npm ` +
      "start sets 1024).",
  ];
}

export function concurrencyWarnings(settings: Settings, concurrency: number, fetchesMax: number): readonly string[] {
  if (concurrency === settings.DISPATCH_CONCURRENCY) return [];
  return [
    `Bun makes ${fetchesMax} calls at a time, so DISPATCH_CONCURRENCY is ${concurrency} instead of ` +
      `${settings.DISPATCH_CONCURRENCY}. Start with a higher BUN_CONFIG_MAX_HTTP_REQUESTS (npm start sets 1024).`,
  ];
}
