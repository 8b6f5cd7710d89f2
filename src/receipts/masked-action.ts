import type { MaskedTexts } from "../core/search.ts";
import type { Action, Result } from "../core/action.ts";
import type { PastAttempt } from "../core/attempts.ts";
import type { LateResult } from "../core/late-result.ts";
import { type Extras, NO_EXTRAS, unknownExtras } from "../core/extras.ts";
import type { TimelineEvent, TimelineEntry } from "../core/timeline.ts";
import { type Caller, hasScope, type ScopedCaller, seesWhole, type Viewer, viewerOf } from "../core/roles.ts";
import type { EarlierRejection } from "../core/rejections.ts";
import { MASKED_AT_ONCE_CHARS_MAX, MASKED_INLINE_CHARS_MAX } from "../core/limits.ts";
import { bytesOf, maskedBody, type SeenBytes } from "./mask-body.ts";
import { Masking, secretKind } from "./mask-rules.ts";
import { maskHeaders, maskJsonText, maskResponseHeaders, maskResponseText, maskText, maskUrl } from "./masking.ts";
import type { Pause } from "../core/pause.ts";

/** An action as a viewer may see it. */
interface MaskedAction extends Action {
  /** How many values of the request are hidden. */
  readonly hiddenValues: number;
  /** How many of them are in its headers; left out: none. */
  readonly hiddenInHeaders?: number;
  /** What of a body of bytes may be seen. */
  readonly bytes?: SeenBytes;
}

/**
 * The action masked for a viewer: every text that a caller or a target wrote. Returns the result of `premask` if there is
 * one.
 */
export function maskedAction(action: Action, viewer: Viewer): MaskedAction {
  return ahead[viewer].get(action) ?? maskNow(action, viewer);
}

/** The number of hidden values in the request of a masked action; 0 for an unmasked one. */
export function hiddenValues(action: Action | MaskedAction): number {
  return "hiddenValues" in action ? action.hiddenValues : 0;
}

/** How many of them are in the headers, where most requests have one. */
export function hiddenInHeaders(action: Action | MaskedAction): number {
  return "hiddenInHeaders" in action ? (action.hiddenInHeaders ?? 0) : 0;
}

/** The number of hidden values in words, for approvers; null: none. */
export function hiddenValuesText(values: number): string | null {
  if (values === 0) return null;
  return values === 1 ? "1 value hidden" : `${values} values hidden`;
}

function maskNow(action: Action, viewer: Viewer): MaskedAction {
  const { url, headers, dedupe, idempotencyKey, callback, createdBy, approvedBy, notifyEmail, result, title } = action;
  const masking = new Masking(viewer);
  const text = (written: string) => maskText(written, masking);
  const shownHeaders = headers === null ? null : maskHeaders(headers, masking);
  const { hidden: inHeaders } = masking;
  const masked = {
    ...action,
    url: maskUrl(url, masking),
    ...maskedBody(action, masking),
    headers: shownHeaders,
    dedupe: unlessNull(dedupe, text),
    idempotencyKey: unlessNull(idempotencyKey, text),
    callback: unlessNull(callback, (target) => maskUrl(target, masking)),
    createdBy: maskedActor(createdBy, masking),
    approvedBy: unlessNull(approvedBy, (actor) => maskedActor(actor, viewer)),
    notifyEmail: unlessNull(notifyEmail, text),
    title: unlessNull(title, text),
    extras: maskedExtras(action.extras, masking),
    result: result === null ? null : maskedResult(result, viewer),
    lateResult: action.lateResult === null ? null : maskedLate(action.lateResult, viewer),
  };
  const hiddenAmong = inHeaders === 0 ? {} : { hiddenInHeaders: inHeaders };
  return { ...masked, hiddenValues: masking.hidden, ...hiddenAmong };
}

function maskedExtras(extras: Extras, masking: Masking): Extras {
  const { reason, metadata } = extras;
  const unknown = unknownExtras(extras);
  if (reason === undefined && metadata === undefined && unknown === null) return extras;
  return {
    ...extras,
    // Safe: masking keeps JSON an object with the same names.
    ...(unknown === null ? {} : (JSON.parse(maskJsonText(JSON.stringify(unknown), masking)) as object)),
    ...(reason === undefined ? {} : { reason: maskText(reason, masking) }),
    ...(metadata === undefined ? {} : { metadata: maskedMetadata(metadata, masking) }),
  };
}

export function maskedTexts(viewer: Viewer): MaskedTexts {
  return {
    url: (url) => maskUrl(url, viewer),
    text: (text) => maskText(text, viewer),
    showsMetadata: (name, value) => maskedMetadata({ [name]: value }, new Masking(viewer))[name] === value,
  };
}

/**
 * How a search of the caller sees actions; null: whole. For an agent that sees only its own actions whole, all of them are
 * searched as it sees those of others.
 */
export function searchedAs(caller: Pick<Caller, "role" | "scope">): MaskedTexts | null {
  if (caller.role === "owner" || (hasScope(caller.role) && caller.scope === "account")) return null;
  return maskedTexts(viewerOf(caller.role));
}

function maskedMetadata(metadata: Readonly<Record<string, string>>, masking: Masking) {
  const entries = Object.entries(metadata).map(([name, value]) => {
    const kind = secretKind(name);
    const isHidden = kind !== null && masking.hidesNamed(value);
    return [maskText(name, masking), isHidden ? masking.hide(value, kind) : maskText(value, masking)] as const;
  });
  return Object.fromEntries(entries);
}

/** What of the bytes of an action may be seen: all of it where the action is not masked. */
export function seenBytes(action: Action | MaskedAction): SeenBytes {
  return "bytes" in action && action.bytes !== undefined ? action.bytes : bytesOf(action);
}

function maskedResult(result: Result, viewer: Viewer): Result {
  const { lastError, responseBody, responseHeaders } = result;
  return {
    ...result,
    responseHeaders: unlessNull(responseHeaders, (json) => maskResponseHeaders(json, viewer)),
    lastError: unlessNull(lastError, (text) => maskText(text, viewer)),
    responseBody: unlessNull(responseBody, (json) => maskResponseText(json, viewer)),
  };
}

function maskedLate(late: LateResult, viewer: Viewer): LateResult {
  const { responseBody, responseHeaders } = late;
  return {
    ...late,
    responseHeaders: unlessNull(responseHeaders, (json) => maskResponseHeaders(json, viewer)),
    responseBody: unlessNull(responseBody, (json) => maskResponseText(json, viewer)),
  };
}

/** A pause with its reason masked. */
export function maskedPause(pause: Pause | null, viewer: Viewer): Pause | null {
  return pause === null || pause.reason === null ? pause : { ...pause, reason: maskText(pause.reason, viewer) };
}

/** Earlier rejections with names and reasons masked. */
export function maskedEarlier(entries: readonly EarlierRejection[], viewer: Viewer): readonly EarlierRejection[] {
  return entries.map((entry) => ({
    ...entry,
    by: maskedActor(entry.by, viewer),
    reason: unlessNull(entry.reason, (reason) => maskText(reason, viewer)),
  }));
}

/** Attempts with what came back of them masked, on another thread where that is long. */
export async function maskedAttempts(
  action: Action,
  attempts: readonly PastAttempt[],
  viewer: Viewer,
): Promise<readonly PastAttempt[]> {
  const results = attempts.map(({ responseHeaders, responseBody, responseTruncated }) => {
    const result = { ...NO_RESULT, responseHeaders, responseBody, responseTruncated };
    return { ...action, body: null, headers: null, extras: NO_EXTRAS, result };
  });
  const ready = await premaskAll(results, viewer);
  return attempts.map((attempt, at) => {
    const masked = ready[at] === undefined ? null : maskedAction(ready[at], viewer).result;
    return { ...attempt, ...responseOf(masked ?? NO_RESULT), made: maskedMade(attempt.made, viewer) };
  });
}

const NO_RESULT: Result = {
  lastError: null,
  errorSource: null,
  responseCode: null,
  responseBody: null,
  responseTruncated: false,
  durationMs: null,
  responseHeaders: null,
};

function responseOf({ responseHeaders, responseBody, responseTruncated }: Result) {
  return { responseHeaders, responseBody, responseTruncated };
}

/** A timeline entry, with each text masked by the rules of its origin. */
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
  if ("attempt" in event) return maskedMade(event, viewer);
  if ("delivered" in event) {
    const { channel } = event;
    const named = channel === undefined ? {} : { channel: text(channel) };
    return { ...event, error: unlessNull(event.error, text), ...named };
  }
  return event;
}

function maskedMade(made: PastAttempt["made"], viewer: Viewer): PastAttempt["made"] {
  const text = (written: string) => maskText(written, viewer);
  const { error, location } = made;
  // The target wrote it: it should be a URL but may be any text.
  const place = unlessNull(location, (target) => maskUrl(text(target), viewer));
  return { ...made, error: unlessNull(error, text), location: place };
}

/** Masks the name of an actor, which is untrusted text after the first colon. */
export function maskedActor<Name extends string>(actor: Name, viewer: Viewer | Masking): Name {
  const name = actor.indexOf(":") + 1;
  // Safe: the part before the colon, the only one that the type fixes, is unchanged.
  return (actor.slice(0, name) + maskText(actor.slice(name), viewer)) as Name;
}

function unlessNull(text: string | null, mask: (text: string) => string): string | null {
  return text === null ? null : mask(text);
}

/**
 * Masks long actions on a worker thread, since masking a megabyte would block the event loop for 0.1 s. Returns the actions
 * (unmasked) for which `maskedAction` then returns the result at once. Call it before any masking; without it the result is
 * the same, but the event loop does the work.
 */
export async function premaskAll(actions: readonly Action[], viewer: Viewer): Promise<readonly Action[]> {
  const chars = actions.reduce((sum, action) => sum + charsToMask(action), 0);
  if (chars <= MASKED_INLINE_CHARS_MAX) return actions;
  const masked: MaskedAction[] = [];
  for (const some of batchesOf(actions)) {
    thread ??= new MaskThread(() => (thread = null));
    masked.push(...(await thread.mask({ actions: some, viewer })));
  }
  return actions.map((action, at) => {
    // A copy, so that the masked action is freed with the request.
    const ready = { ...action };
    ahead[viewer].set(ready, masked[at] ?? maskNow(action, viewer));
    return ready;
  });
}

/** Some at a time: copying a dozen long bodies from thread to thread at once would hold the event loop. */
function* batchesOf(actions: readonly Action[]): Generator<readonly Action[]> {
  let batch: Action[] = [];
  let chars = 0;
  for (const action of actions) {
    const more = charsToMask(action);
    if (batch.length > 0 && chars + more > MASKED_AT_ONCE_CHARS_MAX) {
      yield batch;
      batch = [];
      chars = 0;
    }
    batch.push(action);
    chars += more;
  }
  if (batch.length > 0) yield batch;
}

/** `premaskAll` for one action. */
export async function premask(action: Action, viewer: Viewer): Promise<Action> {
  const [ready = action] = await premaskAll([action], viewer);
  return ready;
}

/** Calls `premaskAll` for those of the actions that the reader sees masked. */
export async function premaskAllFor(reader: ScopedCaller, actions: readonly Action[]): Promise<readonly Action[]> {
  const masked = actions.filter((action) => !seesWhole(reader, action));
  if (masked.length === 0) return actions;
  const ready = (await premaskAll(masked, viewerOf(reader.role))).values();
  return actions.map((action) => (seesWhole(reader, action) ? action : (ready.next().value ?? action)));
}

/** `premaskAllFor` for one action. */
export async function premaskFor(reader: ScopedCaller, action: Action): Promise<Action> {
  return seesWhole(reader, action) ? action : premask(action, viewerOf(reader.role));
}

/** The number of characters that masking has to read. */
function charsToMask({ url, body, headers, callback, result, lateResult, extras }: Action): number {
  const unknown = unknownExtras(extras);
  const said = [extras.reason, ...Object.values(extras.metadata ?? {}), unknown && JSON.stringify(unknown)];
  const fields = [
    url,
    body,
    callback,
    result?.responseBody,
    lateResult?.responseBody,
    ...Object.values(headers ?? {}),
    ...said,
  ];
  return fields.reduce((sum, text) => sum + (text?.length ?? 0), 0);
}

/** Results of `premaskAll`, by the action that it returned. */
const ahead: Readonly<Record<Viewer, WeakMap<Action, MaskedAction>>> = {
  public: new WeakMap(),
  mail: new WeakMap(),
  decider: new WeakMap(),
};

/** Created for the first long text; most services never need it. */
let thread: MaskThread | null = null;

/** The message to the worker, which answers each in order with the masked actions. */
export interface MaskOrder {
  readonly actions: readonly Action[];
  readonly viewer: Viewer;
}

class MaskThread {
  readonly #worker = new Worker(new URL("./mask-worker.ts", import.meta.url).href);
  #calls: PromiseWithResolvers<readonly MaskedAction[]>[] = [];

  /** `ended` is called if the worker fails: waiting calls are rejected, and the next call starts a new worker. */
  constructor(ended: () => void) {
    this.#worker.addEventListener("message", ({ data }: MessageEvent<readonly MaskedAction[]>) => {
      this.#calls.shift()?.resolve(data);
      // An idle worker must not keep the process alive.
      if (this.#calls.length === 0) this.#worker.unref();
    });
    this.#worker.addEventListener("error", ({ message }) => {
      ended();
      for (const call of this.#calls) call.reject(new Error(`The masking worker failed: ${message}`));
      this.#calls = [];
      this.#worker.terminate();
    });
  }

  mask(order: MaskOrder): Promise<readonly MaskedAction[]> {
    const call = Promise.withResolvers<readonly MaskedAction[]>();
    this.#calls.push(call);
    this.#worker.ref();
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window and has no origin
    this.#worker.postMessage(order);
    return call.promise;
  }
}
