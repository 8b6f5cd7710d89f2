import type { Action, Result } from "../domain/action.ts";
import { maskHeaders, maskJsonText, maskResponseText, maskText, maskUrl } from "../domain/mask.ts";
import type { Happening, TimelineEntry } from "../domain/timeline.ts";

/**
 * The action as it is shown to whoever may see it but not use what it carries: approver and reader keys, and pages for
 * people (hostile 6). Everything that a caller or a target wrote is masked; `last_error` is one of our own sentences.
 */
export function maskedAction(action: Action): Action {
  const { url, body, headers, dedupe, idempotencyKey, callback, result } = action;
  return {
    ...action,
    url: maskUrl(url),
    body: body === null ? null : maskJsonText(body),
    headers: headers === null ? null : maskHeaders(headers),
    dedupe: dedupe === null ? null : maskText(dedupe),
    idempotencyKey: idempotencyKey === null ? null : maskText(idempotencyKey),
    callback: callback === null ? null : maskUrl(callback),
    result: result === null ? null : maskedResult(result),
  };
}

function maskedResult(result: Result): Result {
  const { responseBody } = result;
  return responseBody === null ? result : { ...result, responseBody: maskResponseText(responseBody) };
}

/** The same of a row of its timeline: where a redirect points, and why somebody decided. */
export function maskedEntry(entry: TimelineEntry): TimelineEntry {
  return { ...entry, happening: maskedHappening(entry.happening) };
}

function maskedHappening(happening: Happening): Happening {
  if ("location" in happening && happening.location !== null) {
    return { ...happening, location: maskUrl(happening.location) };
  }
  if ("reason" in happening && typeof happening.reason === "string") {
    return { ...happening, reason: maskText(happening.reason) };
  }
  return happening;
}
