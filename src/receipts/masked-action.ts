import type { Action, Result } from "../actions/action.ts";
import { maskHeaders, maskJsonText, maskResponseText, maskText, maskUrl } from "./masking.ts";
import type { Tally } from "./mask-value.ts";
import type { Pause } from "../pauses/pause.ts";
import { type Viewer, viewerOf } from "../accounts/roles.ts";
import type { EarlierRejection } from "../approvals/rejections.ts";
import type { TimelineEvent, TimelineEntry } from "../actions/timeline.ts";
import { MASKED_INLINE_CHARS_MAX } from "../config/limits.ts";
import { type Reader, seesWhole } from "../accounts/scope.ts";

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
interface MaskedAhead {
  readonly action: Action;
  readonly hidden: number;
}

/** The action, of which `maskedAction` gives back `masked`. A copy, so that nothing masked outlives the request. */
function withMasked(action: Action, viewer: Viewer, { action: masked, hidden }: MaskedAhead): Action {
  const ready = { ...action };
  ahead[viewer].set(ready, counted(masked, hidden));
  return ready;
}

/** How many characters of an action masking has to read. */
function charsToMask({ url, body, headers, callback, result }: Action): number {
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

/** What whoever decides is told first, at every place of decision; null: they see everything. */
export function hiddenWords(values: number): string | null {
  if (values === 0) return null;
  return values === 1 ? "1 value hidden" : `${values} values hidden`;
}

/** Actions to mask, as they cross to the thread. */
export interface MaskOrder {
  readonly call: number;
  readonly viewer: Viewer;
  readonly actions: readonly Action[];
}

/** The same actions, masked, as they cross back. */
export interface MaskReply {
  readonly call: number;
  readonly masked: readonly MaskedAhead[];
}

/**
 * The actions as they came, ready for `maskedAction`, which then costs nothing. Masking a megabyte may take 0.2 s, during
 * which the event loop would answer nobody: what is long is masked on another thread. Call it before anything that masks;
 * what was forgotten is masked all the same, but on the event loop.
 */
export async function maskAhead(actions: readonly Action[], viewer: Viewer): Promise<readonly Action[]> {
  const chars = actions.reduce((sum, action) => sum + charsToMask(action), 0);
  if (chars <= MASKED_INLINE_CHARS_MAX) return actions;
  thread ??= new Thread(() => (thread = null));
  const masked = await thread.mask(actions, viewer);
  return actions.map((action, at) => withMasked(action, viewer, masked[at] ?? maskedNow(action, viewer)));
}

/** What crosses from the thread: the count lives beside the action here, and would be lost on the way. */
export function maskedNow(action: Action, viewer: Viewer): MaskedAhead {
  const masked = maskedAction(action, viewer);
  return { action: masked, hidden: hiddenValues(masked) };
}

/** The same of one action. */
export async function maskOneAhead(action: Action, viewer: Viewer): Promise<Action> {
  const [ready = action] = await maskAhead([action], viewer);
  return ready;
}

/** The actions, ready for whoever sees them, each of them whole or masked. */
export async function allReadyFor(reader: Reader, actions: readonly Action[]): Promise<readonly Action[]> {
  const masked = actions.filter((action) => !seesWhole(reader, action));
  if (masked.length === 0) return actions;
  const ready = (await maskAhead(masked, viewerOf(reader.role))).values();
  return actions.map((action) => (seesWhole(reader, action) ? action : (ready.next().value ?? action)));
}

/** The same of one action. */
export async function readyFor(reader: Reader, action: Action): Promise<Action> {
  return seesWhole(reader, action) ? action : maskOneAhead(action, viewerOf(reader.role));
}

/** Begins with the first long text: most services never need it. */
let thread: Thread | null = null;

interface Call {
  resolve(masked: readonly MaskedAhead[]): void;
  reject(error: unknown): void;
}

class Thread {
  readonly #worker = new Worker(new URL("./mask-worker.ts", import.meta.url).href);
  readonly #calls = new Map<number, Call>();
  #last = 0;

  /** `ended` hears when the thread has died; whoever waits for it is refused, and the next call begins another one. */
  constructor(ended: () => void) {
    this.#worker.addEventListener("message", ({ data }: MessageEvent<MaskReply>) => this.#answered(data));
    this.#worker.addEventListener("error", ({ message }) => {
      ended();
      for (const call of this.#calls.values()) call.reject(new Error(`The thread that masks has died: ${message}`));
      this.#calls.clear();
      this.#worker.terminate();
    });
    // It keeps no process alive but while somebody waits for it.
    this.#worker.unref();
  }

  mask(actions: readonly Action[], viewer: Viewer): Promise<readonly MaskedAhead[]> {
    this.#last += 1;
    const order: MaskOrder = { call: this.#last, viewer, actions };
    const { promise, resolve, reject } = Promise.withResolvers<readonly MaskedAhead[]>();
    if (this.#calls.size === 0) this.#worker.ref();
    this.#calls.set(this.#last, { resolve, reject });
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window and has no origin
    this.#worker.postMessage(order);
    return promise;
  }

  #answered({ call, masked }: MaskReply): void {
    this.#calls.get(call)?.resolve(masked);
    this.#calls.delete(call);
    if (this.#calls.size === 0) this.#worker.unref();
  }
}
