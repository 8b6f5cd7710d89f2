import type { Action } from "../../core/action.ts";
import { ROW_BODY_CHARS_MAX, TARGET_MESSAGE_BODY_CHARS_MAX } from "../../core/limits.ts";

/** An action without its bodies, for lists: masking a whole page of bodies would take long. */
export function forRow(action: Action): Action {
  const { result, lateResult, extras } = action;
  const late = lateResult === null ? null : { ...lateResult, responseBody: null, responseHeaders: null };
  const row = { ...action, callback: null, lateResult: late };
  // With the request, since a target repeats what it refuses.
  if (showsMessage(action)) return row;
  return {
    ...row,
    body: null,
    headers: null,
    extras: extras.runAt === undefined ? {} : { runAt: extras.runAt },
    result: result === null ? null : { ...result, responseBody: null },
  };
}

function showsMessage({ status, body, result }: Action): boolean {
  if (status !== "failed" || result === null || result.errorSource !== "target" || result.responseBody === null)
    return false;
  const chars = body?.length ?? 0;
  return chars <= ROW_BODY_CHARS_MAX && result.responseBody.length <= TARGET_MESSAGE_BODY_CHARS_MAX;
}
