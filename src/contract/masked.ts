import type { Action, Result } from "../domain/action.ts";
import { maskHeaders, maskJsonText, maskResponseText, maskText, maskUrl } from "../domain/mask.ts";
import type { Pause } from "../domain/pause.ts";
import type { EarlierRejection } from "../domain/rejections.ts";
import type { Happening, TimelineEntry } from "../domain/timeline.ts";

/**
 * The action as it is shown to whoever may see it but not use what it carries: approver and reader keys, and pages for
 * people. Everything that a caller or a target wrote is masked.
 */
export function maskedAction(action: Action): Action {
  return ahead.get(action) ?? maskNow(action);
}

/** What was masked before it is asked for, as long as somebody holds the action. */
const ahead = new WeakMap<Action, Action>();

/** The action, of which `maskedAction` gives back `masked`. A copy, so that nothing masked outlives the request. */
export function withMasked(action: Action, masked: Action): Action {
  const ready = { ...action };
  ahead.set(ready, masked);
  return ready;
}

/** How many characters of an action masking has to read. */
export function charsToMask({ url, body, headers, callback, result }: Action): number {
  const fields = [url, body, callback, result?.responseBody, ...Object.values(headers ?? {})];
  return fields.reduce((sum, text) => sum + (text?.length ?? 0), 0);
}

function maskNow(action: Action): Action {
  const { url, body, headers, dedupe, idempotencyKey, callback, createdBy, approvedBy, notifyEmail, result } = action;
  return {
    ...action,
    url: maskUrl(url),
    body: unlessNull(body, maskJsonText),
    headers: headers === null ? null : maskHeaders(headers),
    dedupe: unlessNull(dedupe, maskText),
    idempotencyKey: unlessNull(idempotencyKey, maskText),
    callback: unlessNull(callback, maskUrl),
    createdBy: maskedActor(createdBy),
    approvedBy: unlessNull(approvedBy, maskedActor),
    notifyEmail: unlessNull(notifyEmail, maskText),
    result: result === null ? null : maskedResult(result),
  };
}

function maskedResult(result: Result): Result {
  const { lastError, responseBody } = result;
  return {
    ...result,
    lastError: unlessNull(lastError, maskText),
    responseBody: unlessNull(responseBody, maskResponseText),
  };
}

/** The same of the pause that keeps it from being sent: why somebody paused it. */
export function maskedPause(pause: Pause | null): Pause | null {
  return pause === null || pause.reason === null ? pause : { ...pause, reason: maskText(pause.reason) };
}

/** The same of what was said about a request before. */
export function maskedEarlier(entries: readonly EarlierRejection[]): readonly EarlierRejection[] {
  return entries.map((entry) => ({
    ...entry,
    by: maskedActor(entry.by),
    reason: unlessNull(entry.reason, maskText),
  }));
}

/** A row of the timeline, masked by the rules of the place that each text came from. */
export function maskedEntry(entry: TimelineEntry): TimelineEntry {
  return { ...entry, happening: maskedHappening(entry.happening) };
}

function maskedHappening(happening: Happening): Happening {
  if ("actor" in happening) {
    const { reason } = happening;
    const masked = { ...happening, actor: maskedActor(happening.actor) };
    return reason === undefined ? masked : { ...masked, reason: unlessNull(reason, maskText) };
  }
  if ("attempt" in happening) {
    const { error, location } = happening;
    return { ...happening, error: unlessNull(error, maskText), location: unlessNull(location, maskLocation) };
  }
  if ("delivered" in happening) return { ...happening, error: unlessNull(happening.error, maskText) };
  return happening;
}

/** A target's own text where a URL belongs: it may be anything else as well. */
function maskLocation(location: string): string {
  return maskUrl(maskText(location));
}

/** How somebody came in stands before the first colon, and behind it a name that somebody chose. */
export function maskedActor<Name extends string>(actor: Name): Name {
  const name = actor.indexOf(":") + 1;
  // Safe: what stands before the colon, which is all that the type says, stays as it was.
  return (actor.slice(0, name) + maskText(actor.slice(name))) as Name;
}

function unlessNull(text: string | null, mask: (text: string) => string): string | null {
  return text === null ? null : mask(text);
}
