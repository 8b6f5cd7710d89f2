import type { Action, Result } from "../domain/action.ts";
import { maskHeaders, maskJsonText, maskResponseText, maskText, maskUrl } from "../domain/mask.ts";
import type { Tally } from "../domain/mask-secret.ts";
import type { Pause } from "../domain/pause.ts";
import type { Viewer } from "../domain/roles.ts";
import type { EarlierRejection } from "../domain/rejections.ts";
import type { TimelineEvent, TimelineEntry } from "../domain/timeline.ts";

/**
 * The action as it is shown to whoever may see it but not use what it carries: approver and reader keys, and pages for
 * people. Everything that a caller or a target wrote is masked, as far as this viewer may not see it.
 */
export function maskedAction(action: Action, viewer: Viewer): Action {
  return ahead[viewer].get(action) ?? maskNow(action, viewer);
}

/** How many values were hidden in a masked action, its answer aside; 0 of one that is whole. */
export function hiddenValues(masked: Action): number {
  return counts.get(masked) ?? 0;
}

/** The same masked action with other fields: what was hidden in it stays counted. */
export function maskedWith(masked: Action, fields: Partial<Action>): Action {
  return counted({ ...masked, ...fields }, hiddenValues(masked));
}

/** How many values were hidden, by the masked action. */
const counts = new WeakMap<Action, number>();

function counted(masked: Action, hidden: number): Action {
  counts.set(masked, hidden);
  return masked;
}

/** What was masked before it is asked for, as long as somebody holds the action. */
const ahead: Readonly<Record<Viewer, WeakMap<Action, Action>>> = { public: new WeakMap(), decider: new WeakMap() };

/** A masked action as it crosses from the thread. */
export interface MaskedAhead {
  readonly action: Action;
  readonly hidden: number;
}

/** The action, of which `maskedAction` gives back `masked`. A copy, so that nothing masked outlives the request. */
export function withMasked(action: Action, viewer: Viewer, { action: masked, hidden }: MaskedAhead): Action {
  const ready = { ...action };
  ahead[viewer].set(ready, counted(masked, hidden));
  return ready;
}

/** How many characters of an action masking has to read. */
export function charsToMask({ url, body, headers, callback, result }: Action): number {
  const fields = [url, body, callback, result?.responseBody, ...Object.values(headers ?? {})];
  return fields.reduce((sum, text) => sum + (text?.length ?? 0), 0);
}

function maskNow(action: Action, viewer: Viewer): Action {
  const { url, body, headers, dedupe, idempotencyKey, callback, createdBy, approvedBy, notifyEmail, result } = action;
  const tally: Tally = { hidden: 0 };
  const text = (written: string) => maskText(written, viewer, tally);
  const masked = {
    ...action,
    url: maskUrl(url, viewer, tally),
    body: unlessNull(body, (json) => maskJsonText(json, viewer, tally)),
    headers: headers === null ? null : maskHeaders(headers, viewer, tally),
    dedupe: unlessNull(dedupe, text),
    idempotencyKey: unlessNull(idempotencyKey, text),
    callback: unlessNull(callback, (target) => maskUrl(target, viewer, tally)),
    createdBy: maskedActor(createdBy, viewer, tally),
    approvedBy: unlessNull(approvedBy, (actor) => maskedActor(actor, viewer)),
    notifyEmail: unlessNull(notifyEmail, text),
    result: result === null ? null : maskedResult(result, viewer),
  };
  return counted(masked, tally.hidden);
}

function maskedResult(result: Result, viewer: Viewer): Result {
  const { lastError, responseBody } = result;
  return {
    ...result,
    lastError: unlessNull(lastError, (text) => maskText(text, viewer)),
    responseBody: unlessNull(responseBody, (json) => maskResponseText(json, viewer)),
  };
}

/** The same of the pause that keeps it from being sent: why somebody paused it. */
export function maskedPause(pause: Pause | null, viewer: Viewer): Pause | null {
  return pause === null || pause.reason === null ? pause : { ...pause, reason: maskText(pause.reason, viewer) };
}

/** The same of what was said about a request before. */
export function maskedEarlier(entries: readonly EarlierRejection[], viewer: Viewer): readonly EarlierRejection[] {
  return entries.map((entry) => ({
    ...entry,
    by: maskedActor(entry.by, viewer),
    reason: unlessNull(entry.reason, (reason) => maskText(reason, viewer)),
  }));
}

/** A row of the timeline, masked by the rules of the place that each text came from. */
export function maskedEntry(entry: TimelineEntry, viewer: Viewer): TimelineEntry {
  return { ...entry, event: maskedEvent(entry.event, viewer) };
}

function maskedEvent(event: TimelineEvent, viewer: Viewer): TimelineEvent {
  const text = (written: string) => maskText(written, viewer);
  if ("actor" in event) {
    const { reason } = event;
    const masked = { ...event, actor: maskedActor(event.actor, viewer) };
    return reason === undefined ? masked : { ...masked, reason: unlessNull(reason, text) };
  }
  if ("attempt" in event) {
    const { error, location } = event;
    // A target's own text where a URL belongs: it may be anything else as well.
    const place = unlessNull(location, (target) => maskUrl(text(target), viewer));
    return { ...event, error: unlessNull(error, text), location: place };
  }
  if ("delivered" in event) return { ...event, error: unlessNull(event.error, text) };
  return event;
}

/** How somebody came in stands before the first colon, and behind it a name that somebody chose. */
export function maskedActor<Name extends string>(actor: Name, viewer: Viewer, tally?: Tally): Name {
  const name = actor.indexOf(":") + 1;
  // Safe: what stands before the colon, which is all that the type says, stays as it was.
  return (actor.slice(0, name) + maskText(actor.slice(name), viewer, tally)) as Name;
}

function unlessNull(text: string | null, mask: (text: string) => string): string | null {
  return text === null ? null : mask(text);
}
