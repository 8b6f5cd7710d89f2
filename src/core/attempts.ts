import { ATTEMPT_BODY_BYTES_MAX, ATTEMPTS_KEPT } from "./limits.ts";
import type { Action, Result } from "./action.ts";
import { BASE64_START } from "./body.ts";
import type { Change, KeptResponse } from "./changes.ts";
import type { TimelineEntry, TimelineEvent } from "./timeline.ts";

/** One attempt that has ended. */
export interface PastAttempt extends KeptResponse {
  readonly at: Date;
  readonly made: Extract<TimelineEvent, { readonly type: "attempt" }>;
}

/**
 * The response that this change stores outside the action's row, which has only the last one: of an attempt that ends and will
 * be followed by another, of a run's last attempt when the next run begins, or of a late result. Null: none, as for nearly all
 * actions.
 */
export function responseToKeep({ before, after, kept }: Omit<Change, "events">): KeptResponse | null {
  if (kept !== undefined) return unlessEmpty(kept);
  if (after.run !== before.run) return before.result === null ? null : keptResponse(before, before.result);
  if (after.result === null || after.result === before.result || after.status !== "pending") return null;
  return keptResponse(after, after.result);
}

function keptResponse({ run, attempts }: Action, result: Result): KeptResponse | null {
  const { responseHeaders, responseBody, responseTruncated } = result;
  return unlessEmpty({ run, attempt: attempts, responseHeaders, responseBody, responseTruncated });
}

function unlessEmpty(response: KeptResponse): KeptResponse | null {
  if (response.responseHeaders === null && response.responseBody === null) return null;
  return { ...response, ...shortened(response) };
}

/** Whether an action may have more stored responses than are shown, so that the oldest must be deleted. */
export function mayHaveTooMany({ run, attempt }: Pick<KeptResponse, "run" | "attempt">): boolean {
  return run > 1 || attempt > ATTEMPTS_KEPT;
}

/**
 * The newest ended attempts of an action, oldest first, each with its own response. `action` must not be older than `entries`
 * and `kept`: then, at worst, a response is missing, but it is never another attempt's.
 */
export function pastAttempts(
  action: Action,
  entries: readonly TimelineEntry[],
  kept: readonly KeptResponse[],
): readonly PastAttempt[] {
  const made = entries.flatMap(({ run, at, event }) => (event.type === "attempt" ? [{ run, at, made: event }] : []));
  return made.slice(-ATTEMPTS_KEPT).map((past) => {
    const { attempt } = past.made;
    const own = kept.find((one) => one.run === past.run && one.attempt === attempt);
    return { ...(responseTo(action, past, own) ?? NO_RESPONSE), ...past, attempt };
  });
}

/** The response to an attempt. If it was closed as unknown, a later entry may have it. */
function responseTo(
  action: Action,
  { run, made }: Pick<PastAttempt, "run" | "made">,
  kept: KeptResponse | undefined,
): KeptResponse | null {
  const { result } = action;
  if (made.outcome !== "answered") return null;
  return result !== null && isOfResult(action, { run, made }) ? keptResponse(action, result) : (kept ?? null);
}

/**
 * Whether the action's result is from this attempt. A claim keeps the result of the attempt before, and a late answer may not
 * have become the result.
 */
function isOfResult({ status, run, attempts, result }: Action, of: Pick<PastAttempt, "run" | "made">): boolean {
  const isNewest = of.run === run && of.made.attempt === (status === "active" ? attempts - 1 : attempts);
  return isNewest && result?.responseCode === of.made.response_code;
}

/** The attempt with its whole response, if the action has it. Of other responses, only a part is stored. */
export function wholeAttempt(action: Action, past: PastAttempt): PastAttempt {
  const { lateResult } = action;
  const isLate = past.made.late === "result" && lateResult?.run === past.run && lateResult.attempt === past.attempt;
  const result = isOfResult(action, past) ? action.result : null;
  const whole = isLate ? lateResult : result;
  if (whole === null) return past;
  return { ...past, responseBody: whole.responseBody, responseTruncated: whole.responseTruncated };
}

const NO_RESPONSE = { responseHeaders: null, responseBody: null, responseTruncated: false };

type Body = Pick<Result, "responseBody" | "responseTruncated">;

/** Cuts a body to the bound. A cut body is a text or bytes, so that it is never taken for a JSON value. */
function shortened({ responseBody: json, responseTruncated }: Body): Body {
  if (json === null || Buffer.byteLength(json) <= ATTEMPT_BODY_BYTES_MAX)
    return { responseBody: json, responseTruncated };
  if (json.startsWith(BASE64_START)) {
    const data = json.slice(BASE64_START.length, ATTEMPT_BODY_BYTES_MAX);
    // Keep whole groups of four base64 characters.
    return {
      responseBody: `${BASE64_START}${data.slice(0, data.length - (data.length % 4))}"}`,
      responseTruncated: true,
    };
  }
  let text = (json.startsWith('"') ? String(JSON.parse(json)) : json).slice(0, ATTEMPT_BODY_BYTES_MAX);
  // Escapes and multi-byte characters can make it up to six times as long.
  while (Buffer.byteLength(JSON.stringify(text)) > ATTEMPT_BODY_BYTES_MAX) {
    text = text.slice(0, Math.floor(text.length * SHRINK));
  }
  return { responseBody: JSON.stringify(text.toWellFormed()), responseTruncated: true };
}

/** The share of a text that each step keeps while it is too long. */
const SHRINK = 0.8;
