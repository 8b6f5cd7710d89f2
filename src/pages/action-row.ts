import { type Action, awaitsRunAt, isTerminal, nextRetryAt } from "../core/action.ts";
import { TARGET_MESSAGE_BODY_CHARS_MAX } from "../core/limits.ts";
import { lateText } from "../ui/text.ts";
import type { SeenAction } from "../receipts/seen-action.ts";
import { targetMessage } from "../actions/target-message.ts";

/** What the last column says: what comes next, or what went wrong. */
type RowNote =
  | { readonly kind: "none" }
  | { readonly kind: "retries" | "starts" | "expires"; readonly at: Date }
  | { readonly kind: "error"; readonly text: string };

/** The parts that a row reads: masking the bodies of a page of actions would take long. */
export function forRow(action: Action): Action {
  const { result, lateResult } = action;
  const answer = result?.responseBody ?? null;
  const isShown = answer !== null && answer.length <= TARGET_MESSAGE_BODY_CHARS_MAX && result?.errorSource === "target";
  return {
    ...action,
    body: null,
    headers: null,
    extras: action.extras.runAt === undefined ? {} : { runAt: action.extras.runAt },
    callback: null,
    result: result === null ? null : { ...result, responseBody: isShown ? answer : null },
    lateResult: lateResult === null ? null : { ...lateResult, responseBody: null, responseHeaders: null },
  };
}

export function noteOf(action: SeenAction): RowNote {
  const { status, dueAt, expiresAt, result } = action;
  if (status === "awaiting_approval") return expiresAt === null ? NO_NOTE : { kind: "expires", at: expiresAt };
  const retryAt = nextRetryAt(action);
  if (retryAt !== null) return { kind: "retries", at: retryAt };
  if (awaitsRunAt(action) && dueAt !== null) return { kind: "starts", at: dueAt };
  const late = isTerminal(status) ? lateText(action) : null;
  if (late !== null) return { kind: "error", text: late };
  if (status !== "failed" || result === null) return NO_NOTE;
  const text = targetMessage(result.responseBody) ?? result.lastError;
  return text === null ? NO_NOTE : { kind: "error", text };
}

const NO_NOTE: RowNote = { kind: "none" };
