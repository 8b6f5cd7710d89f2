import { ECHOES_MAX, LOCATION_CHARS_MAX } from "../core/limits.ts";
import type { MaskedTexts } from "../core/search.ts";
import { type Action, type LateResult, type Result, NO_EXTRAS, unknownExtras } from "../core/action.ts";
import type { TimelineEvent, TimelineEntry } from "../core/timeline.ts";
import { type Caller, hasScope, type Viewer, roleViewer } from "../core/roles.ts";
import type { EarlierRejection } from "../core/rejections.ts";
import { sentUrl } from "../core/target.ts";
import { bodyBytes, maskedBody } from "./mask-body.ts";
import { MASK, Masking, secretKind } from "./mask-rules.ts";
import {
  hideEchoes,
  maskHeaders,
  maskJsonText,
  maskPair,
  maskResponseHeaders,
  maskResponseText,
  maskText,
  maskUrl,
  withoutCutEnd,
} from "./masking.ts";
import {
  type MaskedAction,
  markMasked,
  type SeenAction,
  type SeenBytes,
  seenWith,
  storedAction,
} from "./seen-action.ts";
import type { Pause } from "../core/pause.ts";
import type { Extras } from "../core/extras-schema.ts";

/** The number of hidden values in words, for approvers; null: none. */
export function hiddenValuesText(values: number): string | null {
  if (values === 0) return null;
  return values === 1 ? "1 value hidden" : `${values} values hidden`;
}

/** For members that hold no text of a caller, a target or a person. */
const AS_IS = "as it is";

/**
 * How each member of a value is shown: `AS_IS`, or masked by a function, which never gets null. Code with a new member does not
 * compile until the member is listed here.
 */
type Shown<Whole, Counts extends Masking = Masking> = {
  readonly [Name in keyof Whole]-?:
    | typeof AS_IS
    | ((value: NonNullable<Whole[Name]>, masking: Counts, whole: Whole) => Whole[Name]);
};

/** Makes a function that masks values by a table. Members that are null or absent stay so. */
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

/** Masking of an action, with what it reports besides the members. */
class ActionMasking extends Masking {
  hiddenInHeaders = 0;
  bytes: SeenBytes | undefined;
  /** What was hidden in the request, except values of headers. */
  readonly #secrets = new Set<string>();

  override hide(secret: string, kind: string): string {
    if (kind !== "header" && !secret.includes(MASK) && this.#secrets.size < ECHOES_MAX) this.#secrets.add(secret);
    return super.hide(secret, kind);
  }

  /** Hides in a JSON text of the target what was hidden so far, and the secrets of these headers. */
  hideEchoes(json: string, headers: Action["headers"]): string {
    return hideEchoes(json, headers, [...this.#secrets]);
  }

  /** Hides secrets that a target repeats in its answer, such as `Invalid key: …`. */
  withoutEchoes<Answer extends Result | LateResult>(answer: Answer, headers: Action["headers"]): Answer {
    const hide = (json: string | null) => json && this.hideEchoes(json, headers);
    return { ...answer, responseBody: hide(answer.responseBody), responseHeaders: hide(answer.responseHeaders) };
  }

  /** Masks an answer after the request. What is hidden in it doesn't count. */
  answer(result: Result, { headers }: Action): Result {
    return maskResult(this.withoutEchoes(result, headers), new Masking(this.viewer));
  }
}

const maskMembers = masksBy<Action, ActionMasking>({
  id: AS_IS,
  accountId: AS_IS,
  revision: AS_IS,
  createdAt: AS_IS,
  createdBy: maskedActor,
  keyId: AS_IS,
  creator: AS_IS,
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
  // Not counted, since only what is hidden in the request counts.
  approvedBy: (actor, { viewer }) => maskedActor(actor, viewer),
  approvedDigest: AS_IS,
  // Written by an owner and by us.
  policy: AS_IS,
  counted: AS_IS,
  result: (result, masking, action) => masking.answer(result, action),
  lateResult: (late, masking, { headers }) =>
    maskLate(masking.withoutEchoes(late, headers), new Masking(masking.viewer)),
});

const ANSWER = {
  responseCode: AS_IS,
  responseBody: (json: string, masking: Masking, { responseTruncated }: Pick<Result, "responseTruncated">) =>
    maskResponseText(json, masking, responseTruncated),
  responseTruncated: AS_IS,
  durationMs: AS_IS,
  responseHeaders: maskResponseHeaders,
} as const;

const maskResult = masksBy<Result>({ ...ANSWER, lastError: maskText, errorSource: AS_IS });

const maskLate = masksBy<LateResult>({ ...ANSWER, run: AS_IS, attempt: AS_IS, at: AS_IS });

const maskKnownExtras = masksBy<Extras>({
  bodyKind: AS_IS,
  reason: maskText,
  metadata: maskedMetadata,
  timeoutMs: AS_IS,
  backoff: AS_IS,
  giveUpOn: AS_IS,
  runAt: AS_IS,
  delaySeconds: AS_IS,
  // The hint is a part of the secret, so the public doesn't see it.
  credential: ({ hint, ...credential }, { viewer }) =>
    viewer === "public" || hint === undefined ? credential : { ...credential, hint },
});

/**
 * Masks every text of an action that a caller or a target wrote, and more answers to its request. Call `see` or `seeHistory`,
 * which call this.
 */
export function maskAction(action: Action, viewer: Viewer, answers: readonly Result[] = []): MaskedAction {
  const masking = new ActionMasking(viewer);
  const masked = {
    ...maskMembers(action, masking),
    viewer,
    hiddenValues: masking.hidden,
    ...(masking.hiddenInHeaders > 0 && { hiddenInHeaders: masking.hiddenInHeaders }),
    ...(masking.bytes !== undefined && { bytes: masking.bytes }),
    ...(answers.length > 0 && { answers: answers.map((answer) => masking.answer(answer, action)) }),
  };
  return markMasked(masked, action);
}

/** The same action with the URL as it is sent, for people. */
export function asSent(seen: MaskedAction): MaskedAction {
  return seenWith(seen, { url: maskUrl(sentUrl(storedAction(seen).url), seen.viewer) });
}

/** The request of a seen action as the public sees it, masked on this thread. Null: its body is longer than `bodyCharsMax`. */
export function publicRequest(seen: SeenAction, bodyCharsMax: number): MaskedAction | null {
  const stored = storedAction(seen);
  return (stored.body?.length ?? 0) > bodyCharsMax ? null : maskAction({ ...stored, result: null }, "public");
}

function maskedExtras(extras: Extras, masking: Masking): Extras {
  if (extras === NO_EXTRAS) return extras;
  const unknown = unknownExtras(extras);
  const known = maskKnownExtras(extras, masking);
  if (unknown === null) return known;
  // Safe: masking keeps JSON an object with the same names.
  return { ...known, ...(JSON.parse(maskJsonText(JSON.stringify(unknown), masking)) as object) };
}

/**
 * How a search by the caller sees actions; null: whole. If an agent sees only its own actions whole, it searches all actions as
 * it sees those of others.
 */
export function searchedAs(caller: Pick<Caller, "role" | "scope" | "personId">): MaskedTexts | null {
  const isOfAll = caller.role === "owner" || (hasScope(caller.role) && caller.scope === "account");
  if (isOfAll && caller.personId === undefined) return null;
  const viewer = roleViewer(caller.role);
  return {
    url: (url) => maskUrl(url, viewer),
    text: (text) => maskText(text, viewer),
    showsMetadata: (name, value) => maskedMetadata({ [name]: value }, new Masking(viewer))[name] === value,
  };
}

function maskedMetadata(metadata: Readonly<Record<string, string>>, masking: Masking) {
  return Object.fromEntries(Object.entries(metadata).map((pair) => maskPair(pair, secretKind(pair[0]), masking)));
}

/** The visible part of an action's bytes: all of them if the action is not masked. */
export function seenBytes(action: SeenAction): SeenBytes {
  return action.bytes ?? bodyBytes(action);
}

export function maskedPause(pause: Pause | null, viewer: Viewer): Pause | null {
  return pause === null || pause.reason === null ? pause : { ...pause, reason: maskText(pause.reason, viewer) };
}

export function maskedEarlier(entries: readonly EarlierRejection[], viewer: Viewer): readonly EarlierRejection[] {
  return entries.map((entry) => ({
    ...entry,
    by: maskedActor(entry.by, viewer),
    reason: entry.reason === null ? null : maskText(entry.reason, viewer),
  }));
}

/** The timeline of a seen action, each text masked by the rules for its author. */
export function maskedTimeline(timeline: readonly TimelineEntry[], seen: MaskedAction): readonly TimelineEntry[] {
  return timeline.map((entry) => ({ ...entry, event: maskedEvent(entry.event, seen.viewer, storedAction(seen)) }));
}

type NamesIn<Union> = Union extends unknown ? keyof Union : never;

type ValueIn<Union, Name> = Union extends unknown ? (Name extends keyof Union ? Union[Name] : never) : never;

type EventMembers = { readonly [Name in NamesIn<TimelineEvent>]?: ValueIn<TimelineEvent, Name> };

const maskEvent = masksBy<EventMembers>({
  type: AS_IS,
  actor: maskedActor,
  // Without an actor, the reason is one of our own sentences.
  reason: (reason, masking, { actor }) => (actor === undefined ? reason : maskText(reason, masking)),
  via: AS_IS,
  attempt: AS_IS,
  outcome: AS_IS,
  response_code: AS_IS,
  error: maskText,
  duration_ms: AS_IS,
  next_retry_at: AS_IS,
  // The target wrote it. It should be a URL, but may be any text.
  location(target, masking) {
    const shown = maskUrl(maskText(target, masking), masking);
    return target.length < LOCATION_CHARS_MAX ? shown : withoutCutEnd(shown);
  },
  late: AS_IS,
  run: AS_IS,
  event: AS_IS,
  delivered: AS_IS,
  attempts: AS_IS,
  channel: maskText,
});

/** Masks an event of an action with this URL and these headers, whose secrets the target may repeat in its `location`. */
export function maskedEvent<Event extends TimelineEvent>(
  event: Event,
  viewer: Viewer,
  { url, headers }: Pick<Action, "url" | "headers">,
): Event {
  const masked: EventMembers = maskEvent(event, new Masking(viewer));
  const { location = null } = masked;
  // Safe: it has the members of the event, and what is hidden leaves a JSON text one.
  if (location === null) return masked as Event;
  const request = new ActionMasking(viewer);
  maskUrl(url, request);
  const hidden = request.hideEchoes(JSON.stringify(location), headers);
  return { ...masked, location: JSON.parse(hidden) as string } as Event;
}

/** Masks the name of an actor, which is untrusted text after the first colon. */
export function maskedActor<Name extends string>(actor: Name, viewer: Viewer | Masking): Name {
  const name = actor.indexOf(":") + 1;
  // Safe: the part before the colon, the only one that the type fixes, is unchanged.
  return (actor.slice(0, name) + maskText(actor.slice(name), viewer)) as Name;
}
