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

/** Of a member whose values hold no text of a caller, a target or a person. */
const AS_IS = "as it is";

/**
 * How each member of a value is shown. A new member does not compile until it stands here: `AS_IS`, or a function that masks
 * it. `value` is never null.
 */
type Shown<Whole, Counts extends Masking = Masking> = {
  readonly [Name in keyof Whole]-?:
    | typeof AS_IS
    | ((value: NonNullable<Whole[Name]>, masking: Counts, whole: Whole) => Whole[Name]);
};

/** A function that masks values as a table says. Members that are null or absent stay so. */
function masksBy<Whole extends object, Counts extends Masking = Masking>(table: Shown<Whole, Counts>) {
  // Safe: the names and functions of the table are those of the value's members.
  const masks = Object.entries(table).filter(([, mask]) => mask !== AS_IS) as [
    keyof Whole,
    (value: unknown, masking: Counts, whole: Whole) => Whole[keyof Whole],
  ][];
  return (whole: Whole, masking: Counts): Whole => {
    const shown = { ...whole };
    for (const [name, mask] of masks) {
      const value = whole[name];
      if (value !== null && value !== undefined) shown[name] = mask(value, masking, whole);
    }
    return shown;
  };
}

/** What is told of an action beside its members. */
class ActionMasking extends Masking {
  hiddenInHeaders = 0;
  bytes: SeenBytes | undefined;
}

const maskAction = masksBy<Action, ActionMasking>({
  id: AS_IS,
  accountId: AS_IS,
  revision: AS_IS,
  createdAt: AS_IS,
  createdBy: maskedActor,
  keyId: AS_IS,
  creator: AS_IS,
  isAltered: AS_IS,
  url: maskUrl,
  hostname: AS_IS,
  host: AS_IS,
  method: AS_IS,
  body(_json, masking, action) {
    const { body, bytes } = maskedBody(action, masking);
    masking.bytes = bytes;
    return body;
  },
  headers(headers, masking) {
    const before = masking.hidden;
    const shown = maskHeaders(headers, masking);
    masking.hiddenInHeaders = masking.hidden - before;
    return shown;
  },
  dedupe: maskText,
  idempotencyKey: maskText,
  retries: AS_IS,
  onUnknown: AS_IS,
  approve: AS_IS,
  callback: maskUrl,
  notifyEmail: maskText,
  title: maskText,
  extras: maskedExtras,
  expiresAt: AS_IS,
  status: AS_IS,
  run: AS_IS,
  attempts: AS_IS,
  dueAt: AS_IS,
  leaseUntil: AS_IS,
  startedAt: AS_IS,
  finishedAt: AS_IS,
  approvedAt: AS_IS,
  // Only what is hidden in the request counts.
  approvedBy: (actor, { viewer }) => maskedActor(actor, viewer),
  approvedDigest: AS_IS,
  result: (result, { viewer }) => maskResult(result, new Masking(viewer)),
  lateResult: (late, { viewer }) => maskLate(late, new Masking(viewer)),
});

const maskResult = masksBy<Result>({
  lastError: maskText,
  errorSource: AS_IS,
  responseCode: AS_IS,
  responseBody: maskResponseText,
  responseTruncated: AS_IS,
  durationMs: AS_IS,
  responseHeaders: maskResponseHeaders,
});

const maskLate = masksBy<LateResult>({
  run: AS_IS,
  attempt: AS_IS,
  at: AS_IS,
  responseCode: AS_IS,
  responseBody: maskResponseText,
  responseTruncated: AS_IS,
  durationMs: AS_IS,
  responseHeaders: maskResponseHeaders,
});

const maskKnownExtras = masksBy<Extras>({
  bodyKind: AS_IS,
  reason: maskText,
  metadata: maskedMetadata,
  timeoutMs: AS_IS,
  backoff: AS_IS,
  giveUpOn: AS_IS,
  runAt: AS_IS,
  delaySeconds: AS_IS,
});

function maskNow(action: Action, viewer: Viewer): MaskedAction {
  const masking = new ActionMasking(viewer);
  const shown = maskAction(action, masking);
  return {
    ...shown,
    hiddenValues: masking.hidden,
    ...(masking.hiddenInHeaders > 0 && { hiddenInHeaders: masking.hiddenInHeaders }),
    ...(masking.bytes !== undefined && { bytes: masking.bytes }),
  };
}

function maskedExtras(extras: Extras, masking: Masking): Extras {
  const { reason, metadata } = extras;
  const unknown = unknownExtras(extras);
  if (reason === undefined && metadata === undefined && unknown === null) return extras;
  const known = maskKnownExtras(extras, masking);
  if (unknown === null) return known;
  // Safe: masking keeps JSON an object with the same names.
  return { ...known, ...(JSON.parse(maskJsonText(JSON.stringify(unknown), masking)) as object) };
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
    return { ...attempt, ...responseOf(masked ?? NO_RESULT), made: maskedEvent(attempt.made, viewer) };
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

type NamesIn<Union> = Union extends unknown ? keyof Union : never;

type ValueIn<Union, Name> = Union extends unknown ? (Name extends keyof Union ? Union[Name] : never) : never;

/** The members of events of any type. */
type EventMembers = { readonly [Name in NamesIn<TimelineEvent>]?: ValueIn<TimelineEvent, Name> };

const maskEvent = masksBy<EventMembers>({
  type: AS_IS,
  actor: maskedActor,
  // That of the service itself is one of its own sentences.
  reason: (reason, masking, { actor }) => (actor === undefined ? reason : maskText(reason, masking)),
  via: AS_IS,
  attempt: AS_IS,
  outcome: AS_IS,
  response_code: AS_IS,
  error: maskText,
  duration_ms: AS_IS,
  next_retry_at: AS_IS,
  // The target wrote it: it should be a URL but may be any text.
  location: (target, masking) => maskUrl(maskText(target, masking), masking),
  late: AS_IS,
  run: AS_IS,
  event: AS_IS,
  delivered: AS_IS,
  attempts: AS_IS,
  channel: maskText,
});

function maskedEvent<Event extends TimelineEvent>(event: Event, viewer: Viewer): Event {
  // Safe: it has the members of the event.
  return maskEvent(event, new Masking(viewer)) as Event;
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
