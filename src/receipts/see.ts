import {
  type Action,
  extrasText,
  nextRetryAt,
  NO_EXTRAS,
  ownRetrySettings,
  type Result,
  textsIn,
  unknownExtras,
} from "../core/action.ts";
import type { PastAttempt } from "../core/attempts.ts";
import { MASKED_AT_ONCE_CHARS_MAX, MASKED_INLINE_CHARS_MAX } from "../core/limits.ts";
import { type Caller, type ScopedCaller, type Viewer, viewerOf, viewOf } from "../core/roles.ts";
import { maskAction, maskedEvent, maskedPause } from "./masked-action.ts";
import { markMasked, type MaskedAction, type MaskedMembers, type SeenAction, seeWhole } from "./seen-action.ts";
import type { Pause, PauseOf } from "../core/pause.ts";
import type { Clock } from "../core/clock.ts";
import { isTooLate, type TimelineEntry, type TimelineEvent } from "../core/timeline.ts";
import { bodyMemberJson } from "../core/body.ts";
import { MASK } from "./mask-rules.ts";
import { hideEchoes } from "./masking.ts";
import { retrySettingsJson } from "../api/retry-settings.ts";
import { operationsOf } from "../core/changes.ts";
import { asksFor, type Channel } from "../core/channel.ts";
import { notificationsFor } from "../core/notification.ts";
import type { Ids } from "../core/ids.ts";
import type { OutboxRow } from "../core/store.ts";
import { type CallbackEvent, hostOf, type NewNotification } from "../core/notification-events.ts";

/** The action as a caller may see it, whole or masked; or masked for a viewer. */
export function see(action: Action, reader: Viewer): Promise<MaskedAction>;
export function see(action: Action, reader: ScopedCaller): Promise<SeenAction>;
export async function see(action: Action, reader: Viewer | ScopedCaller): Promise<SeenAction> {
  const view = viewFor(reader, action);
  if (view === "whole") return seeWhole(action);
  const [masked = maskAction(action, view)] = await maskAll([action], view);
  return masked;
}

/** The same for several actions, in their order. */
export function seeAll(actions: readonly Action[], reader: Viewer): Promise<readonly MaskedAction[]>;
export function seeAll(actions: readonly Action[], reader: ScopedCaller): Promise<readonly SeenAction[]>;
export async function seeAll(
  actions: readonly Action[],
  reader: Viewer | ScopedCaller,
): Promise<readonly SeenAction[]> {
  const viewer = typeof reader === "string" ? reader : viewerOf(reader.role);
  const isWhole = (action: Action) => viewFor(reader, action) === "whole";
  const toMask = actions.filter((action) => !isWhole(action));
  const masked = (await maskAll(toMask, viewer)).values();
  return actions.map((action) =>
    isWhole(action) ? seeWhole(action) : (masked.next().value ?? maskAction(action, viewer)),
  );
}

/** An action and its attempts as a viewer may see them. */
interface SeenHistory {
  readonly action: MaskedAction;
  readonly attempts: readonly PastAttempt[];
}

/** Masks an action with the responses of its attempts, which may repeat secrets of its request. */
export async function seeHistory(
  action: Action,
  attempts: readonly PastAttempt[],
  viewer: Viewer,
): Promise<SeenHistory> {
  const answers = attempts.map(({ responseHeaders, responseBody, responseTruncated }) => {
    return { ...NO_RESULT, responseHeaders, responseBody, responseTruncated };
  });
  const [masked = maskAction(action, viewer, answers)] = await maskAll([action], viewer, answers);
  const shown = attempts.map((attempt, at) => {
    const { responseHeaders, responseBody, responseTruncated } = masked.answers?.[at] ?? NO_RESULT;
    const made = maskedEvent(attempt.made, viewer, action.headers);
    return { ...attempt, responseHeaders, responseBody, responseTruncated, made };
  });
  return { action: masked, attempts: shown };
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

function viewFor(reader: Viewer | ScopedCaller, action: Action): "whole" | Viewer {
  return typeof reader === "string" ? reader : viewOf(reader, action);
}

/** Masks long actions on a worker thread, since masking a megabyte would block the event loop for 0.1 s. */
async function maskAll(
  actions: readonly Action[],
  viewer: Viewer,
  answers: readonly Result[] = [],
): Promise<readonly MaskedAction[]> {
  const ofActions = actions.reduce((sum, action) => sum + charsToMask(action), 0);
  const chars = answers.reduce((sum, { responseBody }) => sum + (responseBody?.length ?? 0), ofActions);
  if (chars <= MASKED_INLINE_CHARS_MAX) return actions.map((action) => maskAction(action, viewer, answers));
  const masked: MaskedMembers[] = [];
  for (const batch of batchesOf(actions)) {
    thread ??= new MaskThread(() => (thread = null));
    masked.push(...(await thread.mask({ actions: batch, viewer, answers })));
  }
  return actions.map((action, at) => {
    const members = masked[at];
    return members === undefined ? maskAction(action, viewer, answers) : markMasked(members, action);
  });
}

/** Splits actions into batches: copying a dozen long bodies to the other thread at once would block the event loop. */
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

/** The number of characters that masking has to read. */
function charsToMask({ url, body, headers, callback, result, lateResult, extras }: Action): number {
  let chars = url.length;
  const texts = [body, callback, result?.responseBody, lateResult?.responseBody, extrasText(extras)];
  for (const text of texts) chars += text?.length ?? 0;
  for (const text of Object.values(headers ?? {})) chars += text.length;
  return chars;
}

/** Started for the first long text; most services never need it. */
let thread: MaskThread | null = null;

/** A message to the worker, which answers in order with the masked actions. */
export interface MaskOrder {
  readonly actions: readonly Action[];
  readonly viewer: Viewer;
  /** More answers to the request, of attempts. */
  readonly answers: readonly Result[];
}

class MaskThread {
  readonly #worker = new Worker(new URL("./mask-worker.ts", import.meta.url).href);
  #calls: PromiseWithResolvers<readonly MaskedMembers[]>[] = [];

  /** If the worker fails, waiting calls are rejected, and `ended` lets the next call start a new one. */
  constructor(ended: () => void) {
    this.#worker.addEventListener("message", ({ data }: MessageEvent<readonly MaskedMembers[]>) => {
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

  mask(order: MaskOrder): Promise<readonly MaskedMembers[]> {
    const call = Promise.withResolvers<readonly MaskedMembers[]>();
    this.#calls.push(call);
    this.#worker.ref();
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window and has no origin
    this.#worker.postMessage(order);
    return call.promise;
  }
}

export interface ViewOptions {
  readonly now: Date;
  /** URL or path of the receipt page; null on the receipt itself. */
  readonly receiptUrl: string | null;
  /** Set if a create returned this older action: the fields in which the new request differs. */
  readonly differs?: readonly string[];
  /** Masks all header values and doesn't count what is hidden, for callbacks and receipts. */
  readonly hidesHeaderValues?: boolean;
  /** The pause that keeps a pending action from being sent; null or absent: none. */
  readonly pause?: Pause | null;
  /**
   * Which bodies to print; absent: all. `once`: leaves the response body out of `error`. `none`: neither the request's nor the
   * response's body.
   */
  readonly bodies?: "once" | "none";
}

/**
 * An action as JSON text. It is no object, because `body` and `response_body` are inserted as stored: parsing would change
 * numbers like 12345678901234567890 and 1.0. Written member by member, since every answer needs it and a loop over a table of
 * members took six times as long.
 */
export function actionJson(action: SeenAction, options: ViewOptions): string {
  const { now, receiptUrl, differs, bodies, hidesHeaderValues } = options;
  const { result, hiddenValues = 0 } = action;
  const next = nextRetryAt(action);
  return (
    `{"id":"${action.id}","status":"${action.status}","url":${json(action.url)},"method":"${action.method}"` +
    (bodies === "none" ? "" : bodyMembers(action)) +
    `,"headers":${headersJson(action, options)},"dedupe":${json(action.dedupe)}` +
    `,"run":${action.run},"attempts":${action.attempts},"retries":${action.retries}` +
    `,"created_at":${time(action.createdAt)},"created_by":${creatorJson(action)},"started_at":${time(action.startedAt)}` +
    `,"finished_at":${time(action.finishedAt)},"next_retry_at":${time(next)}` +
    `,"last_error":${json(result?.lastError ?? null)},"response_code":${result?.responseCode ?? "null"}` +
    (bodies === "none" ? "" : `,"response_body":${result?.responseBody ?? "null"}`) +
    (result?.responseTruncated === true ? `,"response_truncated":true` : "") +
    lateMember(action, options) +
    `,"duration_ms":${result?.durationMs ?? "null"},"approve":${action.approve}` +
    `,"approved_at":${time(action.approvedAt)},"approved_by":${json(action.approvedBy)}` +
    (action.policy === null ? "" : `,"policy":${JSON.stringify(action.policy)}`) +
    `,"callback":${json(action.callback)},"idempotency_key":${json(action.idempotencyKey)}` +
    membersOfCreate(action) +
    (action.onUnknown === "stop" ? `,"on_unknown":"stop"` : "") +
    retriesRemaining(action) +
    (next === null
      ? ""
      : `,"next_retry_in_seconds":${Math.max(0, Math.ceil((next.getTime() - now.getTime()) / 1_000))}`) +
    pauseMembers(action, options) +
    (hiddenValues === 0 || hidesHeaderValues === true ? "" : `,"hidden_values":${hiddenValues}`) +
    `,"actions":${JSON.stringify(operationsOf(action, now))}${errorMember(action, options)},"receipt_url":${json(receiptUrl)}` +
    (differs === undefined ? "}" : `,"deduplicated":true,"differs":${JSON.stringify(differs)}}`)
  );
}

/** `body` is null if another member, such as `form`, has the body. */
function bodyMembers(action: Action): string {
  const { body, extras } = action;
  if (body === null || extras.bodyKind === undefined) return `,"body":${body ?? "null"}`;
  return `,"body":null,"${extras.bodyKind}":${bodyMemberJson(action)}`;
}

/** Present only if the target answered an attempt too late to settle the action. */
function lateMember({ lateResult }: Action, { bodies }: ViewOptions): string {
  if (lateResult === null) return "";
  const { run, attempt, responseCode, responseBody, at } = lateResult;
  const body = bodies === "none" ? "" : `,"response_body":${responseBody ?? "null"}`;
  return `,"late_result":{"run":${run},"attempt":${attempt},"response_code":${responseCode}${body},"at":${time(at)}}`;
}

/** Optional members of the create; each is absent if the create left it out. */
function membersOfCreate({ title, extras, expiresAt }: Action): string {
  if (title === null && expiresAt === null && extras === NO_EXTRAS) return "";
  const { runAt, credential } = extras;
  const retrySettings = ownRetrySettings(extras);
  const members = {
    title: title ?? undefined,
    ...textsIn(extras),
    run_at: runAt === undefined ? undefined : new Date(runAt),
    expires_at: expiresAt ?? undefined,
    ...(retrySettings === null ? {} : retrySettingsJson(retrySettings)),
    // Only its name and kind: nothing of the secret.
    credential: credential && { name: credential.name, kind: credential.kind },
    // What another version stored and this one doesn't know.
    extras: unknownExtras(extras) ?? undefined,
  };
  const text = JSON.stringify(members);
  return text === "{}" ? "" : `,${text.slice(1, -1)}`;
}

/** `name`: the name that the key had then, or the address of a person. */
function creatorJson({ keyId, createdBy }: Action): string {
  return `{"id":${json(keyId === "" ? null : keyId)},"name":${json(createdBy.slice(createdBy.indexOf(":") + 1))}}`;
}

function pauseMembers({ status }: Action, { pause = null }: ViewOptions): string {
  if (pause === null || status !== "pending") return "";
  const { id, kind, reason, createdAt } = pause;
  const members = `"id":"${id}","kind":"${kind}","reason":${json(reason)},"created_at":${time(createdAt)}`;
  return `,"paused":true,"pause":{${members}}`;
}

function json(text: string | null): string {
  return text === null ? "null" : JSON.stringify(text);
}

function time(at: Date | null): string {
  return at === null ? "null" : `"${at.toISOString()}"`;
}

function headersJson({ headers }: Action, { hidesHeaderValues }: ViewOptions): string {
  if (headers === null || hidesHeaderValues !== true) return JSON.stringify(headers);
  return JSON.stringify(Object.fromEntries(Object.keys(headers).map((name) => [name, MASK])));
}

/** Present between the first attempt and the end of the action, and at the beginning of a later run. */
function retriesRemaining({ status, run, attempts, retries }: Action): string {
  const isUnderWay = status === "pending" || status === "active";
  return isUnderWay && (attempts > 0 || run > 1) ? `,"retries_remaining":${retries - attempts}` : "";
}

/** Present only if the action failed. */
function errorMember({ status, result }: Action, { bodies }: ViewOptions): string {
  if (status !== "failed" || result === null) return "";
  const { errorSource, lastError, responseCode, responseBody } = result;
  return (
    `,"error":{"source":${json(errorSource)},"message":${json(lastError)}` +
    `,"response_code":${responseCode ?? "null"}` +
    (bodies === undefined ? `,"response_body":${responseBody ?? "null"}}` : "}")
  );
}

/** The body of a callback, which goes where the creator said: the whole action, but with header values masked. */
export function callbackJson(event: CallbackEvent, action: Action, at: Date, receiptUrl: string): string {
  const { headers, result, lateResult } = action;
  const whole = { ...action, result: withoutEchoes(result, headers), lateResult: withoutEchoes(lateResult, headers) };
  return eventJson(event, at, actionJson(seeWhole(whole), { now: at, receiptUrl, hidesHeaderValues: true }));
}

/** Hides secrets that a target repeats in its answer, such as `Invalid key: …`. */
function withoutEchoes<Answer extends Pick<Result, "responseBody">>(answer: Answer | null, headers: Action["headers"]) {
  if (answer === null || answer.responseBody === null) return answer;
  return { ...answer, responseBody: hideEchoes(answer.responseBody, headers) };
}

/** The outbox rows (callbacks, mails and messages to channels) for a change of an action with these events. */
export type Enqueue = (action: Action, at: Date, events: readonly TimelineEvent[]) => readonly OutboxRow[];

interface EnqueueDeps {
  readonly ids: Pick<Ids, "row">;
  readonly receiptUrl: (actionId: string) => string;
  readonly channelsOf: (accountId: string) => readonly Channel[];
}

/** Creates the outbox rows. A callback's body is rendered at the change; a mail or message when it is sent. */
export function createEnqueue({ ids, receiptUrl, channelsOf }: EnqueueDeps): Enqueue {
  return (action, at, events) => {
    const rowOf = (message: NewNotification): OutboxRow => ({
      id: ids.row(at),
      message,
      host: hostOf(message),
      payload: message.kind === "callback" ? callbackJson(message.event, action, at, receiptUrl(action.id)) : null,
    });
    const rows = notificationsFor(action, events).map(rowOf);
    if (action.status !== "awaiting_approval" || events.some(isTooLate)) return rows;
    const asks = asksFor(action, channelsOf(action.accountId)).map(({ message, afterMs }) => ({
      ...rowOf(message),
      ...(afterMs > 0 && { dueAt: new Date(at.getTime() + afterMs) }),
    }));
    return [...rows, ...asks];
  };
}

/** The JSON text of an event, for callbacks and the event stream. `data` is an action as JSON text. */
export function eventJson(type: string, at: Date, data: string): string {
  return `{"type":"${type}","timestamp":"${at.toISOString()}","data":${data}}`;
}

/** Serializes an action that the caller sees to JSON text. `differs`: see `ViewOptions`. */
export type ActionSerializer = (caller: Caller, action: SeenAction, differs?: readonly string[]) => string;

export function createActionSerializer(
  clock: Clock,
  receiptUrl: (actionId: string) => string,
  pauseOf: PauseOf,
): ActionSerializer {
  return (caller, action, differs) => {
    const pause = readsReasons(caller) ? pauseOf(action) : maskedPause(pauseOf(action), viewerOf(caller.role));
    const options = { now: clock.now(), receiptUrl: receiptUrl(action.id), pause };
    return actionJson(action, differs === undefined ? options : { ...options, differs });
  };
}

/** Whether the caller sees reasons of pauses unmasked. Owners write them for people, so no agent does. */
function readsReasons({ role }: Caller): boolean {
  return role === "owner";
}

/** Serializes the timeline of an action to JSON text, masked as far as the caller requires. */
export function serializeTimeline(caller: Caller, action: Action, entries: readonly TimelineEntry[]): string {
  const isWhole = viewOf(caller, action) === "whole";
  const viewer = viewerOf(caller.role);
  const shown = entries.map((entry) => {
    const isShown = isWhole && (entry.event.type !== "paused" || readsReasons(caller));
    return isShown ? entry : { ...entry, event: maskedEvent(entry.event, viewer, action.headers) };
  });
  return timelineJson(shown);
}

export function timelineJson(entries: readonly TimelineEntry[]): string {
  return JSON.stringify({ data: entries.map(timelineItem) });
}

/** An entry of a timeline as an object of the API. */
export function timelineItem({ seq, at, run, status, event }: TimelineEntry) {
  const isLate = event.type === "attempt" && event.late !== undefined;
  const { type, ...details } = isLate ? { ...event, late: true } : event;
  return { seq, at: at.toISOString(), run, type, status, ...details };
}
