import { RETRY_AFTER_MS_MAX, RETRY_AFTER_MS_MIN, RETRY_JITTER } from "./limits.ts";

export const STATUS_CLASSES = ["3xx", "4xx", "5xx"] as const;

/** A status of the target, or a class of them. */
export type StatusPattern = number | (typeof STATUS_CLASSES)[number];

/** How attempts are made and repeated. For a member that is null, the next one decides: host, then account, then server. */
export interface RetrySettings {
  /** One deadline for a whole attempt. */
  readonly timeoutMs: number | null;
  readonly backoff: Backoff | null;
  /** Statuses after which no further attempt follows. */
  readonly giveUpOn: readonly StatusPattern[] | null;
}

/** Settings without null members. */
export type EffectiveRetrySettings = { readonly [Name in keyof RetrySettings]: NonNullable<RetrySettings[Name]> };

export const NO_RETRY_SETTINGS: RetrySettings = { timeoutMs: null, backoff: null, giveUpOn: null };

/** The settings that apply: for each member, the first of `settings` that has it, else the server's. */
export function effectiveRetrySettings(
  server: EffectiveRetrySettings,
  settings: readonly RetrySettings[],
): EffectiveRetrySettings {
  const first = <Name extends keyof RetrySettings>(name: Name): RetrySettings[Name] => {
    return settings.find((one) => one[name] !== null)?.[name] ?? null;
  };
  return {
    timeoutMs: first("timeoutMs") ?? server.timeoutMs,
    backoff: first("backoff") ?? server.backoff,
    giveUpOn: first("giveUpOn") ?? server.giveUpOn,
  };
}

/** Whether a status matches one of the patterns. */
export function isOneOfStatuses(patterns: readonly StatusPattern[], code: number): boolean {
  const ofClass = `${Math.floor(code / 100)}xx`;
  return patterns.some((pattern) => pattern === code || pattern === ofClass);
}

export interface Backoff {
  readonly baseMs: number;
  readonly capMs: number;
}

/**
 * Milliseconds to wait after the n-th failure of a run: `min(cap, base·2^(n-1))`, ±20 % jitter.
 * `chance` is uniform in [0, 1). The result is at least 1 and at most the cap plus jitter.
 */
export function backoffMs(failures: number, { baseMs, capMs }: Backoff, chance: number): number {
  // The bound keeps many failures from overflowing to Infinity; 2^53 ms is above every cap.
  const plain = Math.min(capMs, baseMs * 2 ** Math.min(failures - 1, 53));
  return Math.max(1, jittered(plain, chance));
}

/** Up to 20 % less or more, in whole milliseconds. `chance` is uniform in [0, 1). */
export function jittered(ms: number, chance: number): number {
  return Math.round(ms * (1 + RETRY_JITTER * (2 * chance - 1)));
}

/**
 * Milliseconds that a `Retry-After` header asks for (RFC 9110, 10.2.3: seconds or a date), between 1 s and 24 h; null
 * if there is none or it can't be parsed. No jitter: the retry never comes earlier than the target asked.
 */
export function retryAfterMs(header: string | null, now: Date): number | null {
  if (header === null) return null;
  const text = header.trim();
  // Some targets send decimals, such as "2.0".
  if (/^\d+(\.\d+)?$/.test(text)) return clamp(Math.ceil(Number(text) * 1_000));
  if (!HTTP_DATE.test(text)) return null;
  const at = Date.parse(ZONED.test(text) ? text : `${text} GMT`);
  return Number.isNaN(at) ? null : clamp(at - now.getTime());
}

/** All three HTTP date formats begin with the name of a day. `Date.parse` alone would also accept "2" or "1 May". */
const HTTP_DATE = /^(Mon|Tues?|Wed(nes)?|Thu(rs)?|Fri|Sat(ur)?|Sun)(day)?,? .*\d{2}:\d{2}:\d{2}/;

/** The asctime format names no zone and means UTC; `Date.parse` would read it as local time. */
const ZONED = /([A-Za-z]| [+-]\d{4})$/;

function clamp(delayMs: number): number {
  return Math.min(RETRY_AFTER_MS_MAX, Math.max(RETRY_AFTER_MS_MIN, delayMs));
}
