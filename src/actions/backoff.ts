import { RETRY_AFTER_MS_MAX, RETRY_AFTER_MS_MIN, RETRY_JITTER } from "../config/limits.ts";

export interface Backoff {
  readonly baseMs: number;
  readonly capMs: number;
}

/**
 * Milliseconds to wait after the n-th failure of a run: `min(cap, base·2^(n-1))`, ±20 % jitter (decisions 4).
 * `chance` is uniform in [0, 1). Never above the cap's own jitter, never below 1.
 */
export function backoffMs(failures: number, { baseMs, capMs }: Backoff, chance: number): number {
  // 2^53 is past every cap: the exponent is bounded so that a hundred failures do not end in Infinity.
  const plain = Math.min(capMs, baseMs * 2 ** Math.min(failures - 1, 53));
  return Math.max(1, Math.round(plain * (1 + RETRY_JITTER * (2 * chance - 1))));
}

/**
 * Milliseconds that a `Retry-After` header asks for (RFC 9110, 10.2.3: seconds or a date), between 1 s and 24 h; null
 * when there is none or it can't be read. Obeyed exactly: never earlier than the target asked.
 */
export function retryAfterMs(header: string | null, now: Date): number | null {
  if (header === null) return null;
  const text = header.trim();
  if (/^\d+$/.test(text)) return clamp(Number(text) * 1_000);
  if (!HTTP_DATE.test(text)) return null;
  const at = Date.parse(ZONED.test(text) ? text : `${text} GMT`);
  return Number.isNaN(at) ? null : clamp(at - now.getTime());
}

/** The three spellings of an HTTP date begin with a day's name; `Date.parse` alone would take "2" or "1 May" too. */
const HTTP_DATE = /^(Mon|Tues?|Wed(nes)?|Thu(rs)?|Fri|Sat(ur)?|Sun)(day)?,? .*\d{2}:\d{2}:\d{2}/;

/** Of the three spellings asctime's names no zone and means UTC as the others do; `Date.parse` takes it for local time. */
const ZONED = /([A-Za-z]| [+-]\d{4})$/;

function clamp(delayMs: number): number {
  return Math.min(RETRY_AFTER_MS_MAX, Math.max(RETRY_AFTER_MS_MIN, delayMs));
}
