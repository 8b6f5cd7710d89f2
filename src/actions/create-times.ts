import type { Issue } from "../core/domain-error.ts";
import { DELAY_SECONDS_MAX, EXPIRES_AHEAD_MS_MAX, RUN_AT_AHEAD_MS_MAX } from "../core/limits.ts";

/** When a create lets its action be sent, and what is wrong with what it says about that. */
export interface CreateTimes {
  /** Not before this time; null: at once. It may be past. */
  readonly runAt: Date | null;
  /** Not from this time on; null: whenever. */
  readonly expiresAt: Date | null;
  readonly issues: readonly Issue[];
}

/** Reads `run_at`, `delay_seconds` and `expires_at` where they have the right type; the schema reports the others. */
export function readTimes(given: Readonly<Record<string, unknown>>, now: Date): CreateTimes {
  const [runAtText, delay, expiresText] = [given["run_at"], given["delay_seconds"], given["expires_at"]];
  if (runAtText === undefined && delay === undefined && expiresText === undefined) return NO_TIMES;
  const issues: Issue[] = [];
  const note = (field: string, message: string) => void issues.push({ field, message });
  const nowMs = now.getTime();

  const asked = timeIn(runAtText);
  if (asked === "invalid") note("run_at", "Is not a date and time.");
  const runAtGiven = asked === "invalid" ? null : asked;
  if (runAtGiven !== null && runAtGiven.getTime() > nowMs + RUN_AT_AHEAD_MS_MAX)
    note("run_at", "Must be within a year.");
  if (runAtText !== undefined && delay !== undefined) note("delay_seconds", "Can't go with run_at.");
  const isDelay = typeof delay === "number" && Number.isInteger(delay) && delay >= 1 && delay <= DELAY_SECONDS_MAX;
  const runAt = runAtGiven ?? (isDelay ? new Date(nowMs + delay * 1_000) : null);

  const expiresAt = timeIn(expiresText);
  if (expiresAt === "invalid") note("expires_at", "Is not a date and time.");
  if (expiresAt === "invalid" || expiresAt === null) return { runAt, expiresAt: null, issues };
  if (expiresAt.getTime() <= nowMs) note("expires_at", "Must be in the future.");
  else if (runAt !== null && expiresAt <= runAt)
    note("expires_at", "Must be after the time before which it is not sent.");
  else if (expiresAt.getTime() > nowMs + EXPIRES_AHEAD_MS_MAX) note("expires_at", "Must be within two years.");
  return { runAt, expiresAt, issues };
}

const NO_TIMES: CreateTimes = { runAt: null, expiresAt: null, issues: [] };

/** Null: it is no text. */
function timeIn(text: unknown): Date | "invalid" | null {
  if (typeof text !== "string") return null;
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? "invalid" : at;
}
