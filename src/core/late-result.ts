import type { Result } from "./action.ts";

/** What the target answered to an attempt that had been closed as unknown before the answer was known. */
export interface LateResult extends Pick<
  Result,
  "responseBody" | "responseTruncated" | "responseHeaders" | "durationMs"
> {
  /** The run and the attempt of that run which it answers. */
  readonly run: number;
  readonly attempt: number;
  readonly responseCode: number;
  /** When it became known here. */
  readonly at: Date;
}

/** Whether the target has done what the action asks for, although the action may say otherwise. */
export function isLateSuccess({ responseCode }: LateResult): boolean {
  return responseCode >= 200 && responseCode <= 299;
}

/** A late success of this run: it completes the action as soon as no attempt is under way. */
export function lateSuccessIn(run: number, late: LateResult | null): LateResult | null {
  return late !== null && late.run === run && isLateSuccess(late) ? late : null;
}

/** As it is stored: the status first, so that a condition can tell a success (`LATE_SUCCESS`), a space, and the rest as JSON. */
export function lateResultText(late: LateResult | null): string | null {
  if (late === null) return null;
  const { responseCode, at, ...rest } = late;
  return `${responseCode} ${JSON.stringify({ ...rest, at: at.getTime() })}`;
}

/** Matches the stored text (SQL LIKE) of a late result with a 2xx status. */
export const LATE_SUCCESS = "2__ %";

/** Null: there is none, or it was altered in the database. */
export function parseLateResult(text: string | null): LateResult | null {
  if (text === null) return null;
  try {
    const responseCode = Number(text.slice(0, CODE_CHARS));
    // Safe: `lateResultText` wrote it, or a member below is missing.
    const stored = JSON.parse(text.slice(CODE_CHARS)) as Omit<LateResult, "at" | "responseCode"> & { at: number };
    const { run, attempt, responseBody, responseTruncated, responseHeaders, durationMs, at } = stored;
    const isSound = [responseCode, run, attempt, at].every(Number.isSafeInteger);
    if (!isSound) return null;
    const response = { responseCode, responseBody, responseTruncated, responseHeaders, durationMs };
    return { run, attempt, ...response, at: new Date(at) };
  } catch {
    return null;
  }
}

const CODE_CHARS = 3;
