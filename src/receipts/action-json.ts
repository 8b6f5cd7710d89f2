import { retrySettingsJson } from "../api/retry-settings.ts";
import { type Action, nextRetryAt, NO_EXTRAS, ownRetrySettings, textsIn, unknownExtras } from "../core/action.ts";
import { type PastAttempt, allowedOperations } from "../core/changes.ts";
import { bodyMemberJson } from "../core/body.ts";
import type { Clock } from "../core/clock.ts";
import type { Pause, FindPause } from "../core/pause.ts";
import { type Caller, roleViewer, callerView } from "../core/roles.ts";
import type { TimelineEntry } from "../core/timeline.ts";
import { MASK } from "./mask-rules.ts";
import { maskedEvent, maskedPause } from "./masked-action.ts";
import { readHeaders } from "./response-headers.ts";
import { seeHistory } from "./see.ts";
import type { SeenAction } from "./seen-action.ts";

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
  /** Leaves out the bodies of the request and of its answers. */
  readonly omitsBodies?: boolean;
}

/**
 * An action as JSON text. It is no object, because `body` and `response_body` are inserted as stored: parsing would change
 * numbers like 12345678901234567890 and 1.0. Written member by member, since every answer needs it and a loop over a table of
 * members took six times as long.
 */
export function actionJson(action: SeenAction, options: ViewOptions): string {
  const { now, receiptUrl, differs, omitsBodies = false, hidesHeaderValues } = options;
  const { result, hiddenValues = 0 } = action;
  const next = nextRetryAt(action);
  return (
    `{"id":"${action.id}","status":"${action.status}","url":${json(action.url)},"method":"${action.method}"` +
    (omitsBodies ? "" : bodyMembers(action)) +
    `,"headers":${headersJson(action, options)},"dedupe":${json(action.dedupe)}` +
    `,"run":${action.run},"attempts":${action.attempts},"retries":${action.retries}` +
    `,"created_at":${time(action.createdAt)},"created_by":${creatorJson(action)},"started_at":${time(action.startedAt)}` +
    `,"finished_at":${time(action.finishedAt)},"next_retry_at":${time(next)}` +
    `,"last_error":${json(result?.lastError ?? null)},"response_code":${result?.responseCode ?? "null"}` +
    (omitsBodies ? "" : `,"response_body":${result?.responseBody ?? "null"}`) +
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
    `,"actions":${JSON.stringify(allowedOperations(action, now))}${errorMember(action, options)},"receipt_url":${json(receiptUrl)}` +
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
function lateMember({ lateResult }: Action, { omitsBodies }: ViewOptions): string {
  if (lateResult === null) return "";
  const { run, attempt, responseCode, responseBody, at } = lateResult;
  const body = omitsBodies === true ? "" : `,"response_body":${responseBody ?? "null"}`;
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
function errorMember({ status, result }: Action, { omitsBodies }: ViewOptions): string {
  if (status !== "failed" || result === null) return "";
  const { errorSource, lastError, responseCode, responseBody } = result;
  return (
    `,"error":{"source":${json(errorSource)},"message":${json(lastError)}` +
    `,"response_code":${responseCode ?? "null"}` +
    (omitsBodies === true ? "}" : `,"response_body":${responseBody ?? "null"}}`)
  );
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
  findPause: FindPause,
): ActionSerializer {
  return (caller, action, differs) => {
    const pause = readsReasons(caller) ? findPause(action) : maskedPause(findPause(action), roleViewer(caller.role));
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
  const isWhole = callerView(caller, action) === "whole";
  const viewer = roleViewer(caller.role);
  const shown = entries.map((entry) => {
    const isShown = isWhole && (entry.event.type !== "paused" || readsReasons(caller));
    return isShown ? entry : { ...entry, event: maskedEvent(entry.event, viewer, action) };
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

/** The attempts as JSON text, masked as far as the caller requires. */
export async function serializeAttempts(
  caller: Caller,
  action: Action,
  attempts: readonly PastAttempt[],
): Promise<string> {
  const view = callerView(caller, action);
  const request = { ...action, result: null, lateResult: null };
  const shown = view === "whole" ? attempts : (await seeHistory(request, attempts, view)).attempts;
  return `{"data":[${shown.map(attemptJson).join(",")}]}`;
}

/** The body is inserted as it is stored: parsing would change numbers. */
function attemptJson({ run, attempt, at, made: event, ...response }: PastAttempt): string {
  const members = JSON.stringify({
    run,
    attempt,
    at: at.toISOString(),
    outcome: event.outcome,
    response_code: event.response_code,
    error: event.error,
    duration_ms: event.duration_ms,
    location: event.location,
    response_headers: readHeaders(response.responseHeaders).map(([name, value]) => ({ name, value })),
  });
  const truncated = response.responseTruncated ? `,"response_truncated":true` : "";
  return `${members.slice(0, -1)},"response_body":${response.responseBody ?? "null"}${truncated}}`;
}
