import { type Action, isTerminal, TEXT_EXTRAS, withoutTexts, withoutUnknown } from "../core/action.ts";
import { type Actor, kindOfActor, SYSTEM } from "../core/roles.ts";
import type { ActionStore } from "../core/store.ts";
import type { TimelineEntry, TimelineEvent } from "../core/timeline.ts";
import type { Secrets } from "../crypto/secrets.ts";
import { namesRule } from "../core/action-policy.ts";
import {
  RECEIPT_RELOAD_SECONDS_MAX,
  RECEIPT_RELOAD_SECONDS_MIN,
  RECEIPT_ATTEMPTS_MAX,
  RECEIPT_ROWS_MAX,
  TIMELINE_ROWS_MAX,
  RECEIPT_BODY_BYTES_MAX,
} from "../core/limits.ts";
import Type from "typebox";
import { ActionJson } from "../api/action-schemas.ts";
import { cutJson, cutRequestBody } from "./cut-body.ts";
import { constant, plainText, quantity } from "../api/schema-helpers.ts";
import { maskedTimeline } from "./masked-action.ts";
import { type MaskedAction, type SeenAction, seenWith } from "./seen-action.ts";
import { TimelineItemJson } from "../api/list-schemas.ts";
import { actionJson, timelineItem } from "./action-json.ts";

/** A receipt reloads after this fraction (1/20) of the time since the last change, within the bounds of `limits.ts`. */
const RECEIPT_RELOAD_SHARE = 20;

/** The content of a receipt, not yet masked, without the names of those who decided. */
interface Receipt {
  readonly action: Action;
  /** Oldest first. */
  readonly timeline: readonly TimelineEntry[];
}

/** Reads the receipt of a token, the only credential. Null: the token is invalid, or the action was deleted. */
export function createReadReceipt(
  actions: Pick<ActionStore, "findById" | "timeline">,
  secrets: Pick<Secrets, "readReceiptToken">,
) {
  return async (token: string): Promise<Receipt | null> => {
    const id = secrets.readReceiptToken(token);
    const action = id === null ? null : await actions.findById(id);
    if (action === null) return null;
    return withoutNames(action, await actions.timeline(action.accountId, action.id));
  };
}

/** Anyone may have the link, so it shows no texts of rules and no addresses: deciders only by kind, requesters by key name. */
function withoutNames(action: Action, timeline: readonly TimelineEntry[]): Receipt {
  const { createdBy, approvedBy } = action;
  return {
    action: {
      ...action,
      createdBy: shownRequester(createdBy),
      // Safe: whatever approves an action is an actor.
      approvedBy: approvedBy === null ? null : kindOfActor(approvedBy as Actor),
    },
    timeline: timeline.map((entry) => {
      const event = withoutRule(entry.event);
      if (!("actor" in event)) return { ...entry, event };
      const actor = event.type === "created" ? shownRequester(event.actor) : kindOfActor(event.actor);
      return { ...entry, event: { ...event, actor } };
    }),
  };
}

function shownRequester(actor: Actor): Actor {
  const kind = kindOfActor(actor);
  return kind === "key" || kind === "mcp" ? actor : kind;
}

/** Only the account may see what owners wrote in a rule and what the rule compares. */
function withoutRule(event: TimelineEvent): TimelineEvent {
  if (event.type === "held") return { type: "held" };
  if (event.type !== "cancelled" || event.actor !== SYSTEM || !namesRule(event.reason ?? "")) return event;
  return { ...event, reason: "A rule of the account refuses this call." };
}

/** The query parameter for an earlier part of the timeline: 1 for the part before the newest. */
export const EARLIER_PARAMETER = "earlier";

/** The part of a timeline that a receipt shows. */
export interface ReceiptHistory {
  /** Oldest first. */
  readonly entries: readonly TimelineEntry[];
  /** How many parts are newer. */
  readonly part: number;
  readonly hasEarlier: boolean;
  /** The number of attempts in all runs, and of those before `entries`. */
  readonly attempts: number;
  readonly earlierAttempts: number;
  /** Whether the timeline was read only in part, since it is too long. */
  readonly isCut: boolean;
}

/** A part of a timeline: 0 is the newest, each next number the part before. Beyond the oldest part, returns the oldest. */
export function receiptHistory(timeline: readonly TimelineEntry[], part: number): ReceiptHistory {
  let [start, end] = [runStart(timeline, timeline.length), timeline.length];
  let at = 0;
  for (; at < part && start > 0; at += 1) [start, end] = [runStart(timeline, start), start];
  return {
    entries: timeline.slice(start, end),
    part: at,
    hasEarlier: start > 0,
    attempts: attemptsIn(timeline),
    earlierAttempts: attemptsIn(timeline.slice(0, start)),
    isCut: timeline.length >= TIMELINE_ROWS_MAX,
  };
}

/** The part that a query asks for. Anything but a short number means the newest. */
export function partIn(search: string): number {
  const text = new URLSearchParams(search).get(EARLIER_PARAMETER) ?? "";
  return /^\d{1,4}$/.test(text) ? Number(text) : 0;
}

/** Where the part that ends before `end` begins: after an attempt, or when it has the maximum of entries. */
function runStart(timeline: readonly TimelineEntry[], end: number): number {
  let attempts = 0;
  for (let at = end - 1; at >= 0; at -= 1) {
    attempts += Number(timeline[at]?.event.type === "attempt");
    if (attempts > RECEIPT_ATTEMPTS_MAX || end - at > RECEIPT_ROWS_MAX) return at + 1;
  }
  return 0;
}

function attemptsIn(timeline: readonly TimelineEntry[]): number {
  return timeline.filter(({ event }) => event.type === "attempt").length;
}

/** The query parameter that says that a decision in a mail came too late to count. */
export const LATE_PARAMETER = "late";

/** The query parameter with which a reader turns the reloading of a receipt off or on. */
export const RELOAD_PARAMETER = "reload";

/** How the page of a receipt that may still change is kept current. */
export interface ReceiptReload {
  readonly seconds: number;
  /** Whether the browser reloads it; false: its reader has stopped that. */
  readonly isOn: boolean;
}

/**
 * How to reload a receipt, by the query of its request; null: the action has ended. Other parameters and values are ignored,
 * since mail programs add their own to links.
 */
export function receiptReload(
  action: Pick<Action, "status" | "dueAt">,
  times: { readonly since: Date; readonly now: Date },
  search: string,
): ReceiptReload | null {
  const seconds = receiptReloadSeconds(action, times.since, times.now);
  if (seconds === null) return null;
  return { seconds, isOn: new URLSearchParams(search).get(RELOAD_PARAMETER) !== "off" };
}

/**
 * After how many seconds a browser reloads a receipt; null: the action has ended. The longer nothing has happened, the longer
 * it waits, but never beyond the next attempt that is due. `since`: when the action last changed.
 */
export function receiptReloadSeconds(action: Pick<Action, "status" | "dueAt">, since: Date, now: Date): number | null {
  if (isTerminal(action.status)) return null;
  const waited = secondsBetween(since, now) / RECEIPT_RELOAD_SHARE;
  const dueIn =
    action.dueAt === null || action.dueAt <= now ? Number.POSITIVE_INFINITY : secondsBetween(now, action.dueAt) + 1;
  const seconds = Math.min(Math.max(waited, RECEIPT_RELOAD_SECONDS_MIN), dueIn, RECEIPT_RELOAD_SECONDS_MAX);
  return Math.max(Math.ceil(seconds), RECEIPT_RELOAD_SECONDS_MIN);
}

function secondsBetween(from: Date, to: Date): number {
  return Math.max(0, to.getTime() - from.getTime()) / 1_000;
}

const { body } = ActionJson.properties;

const { properties: members } = Type.Omit(ActionJson, [
  "body",
  "response_truncated",
  "deduplicated",
  "differs",
  "extras",
  ...TEXT_EXTRAS,
]);

const { seq: _place, ...happened } = TimelineItemJson.properties;

export const ReceiptToken = plainText(
  "The part after `/r/` of `receipt_url`. It is the only credential: no key is needed.",
  "4dQm0cJ1s9XwVtYk2hZbLqPnRfGeUaBi",
);

/** A receipt as JSON. `receiptJson` writes it. */
export const ReceiptJson = Type.Object(
  {
    ...members,
    body: Type.Union([...body.anyOf, plainText("The beginning of a long body.", '{"rows":[')], {
      description: "The body sent to the target. Of a long one, its beginning as a text.",
      examples: [{ amount: 7 }],
    }),
    body_truncated: Type.Optional(
      constant(true, `Only the first ${RECEIPT_BODY_BYTES_MAX} bytes of the body are shown.`),
    ),
    response_truncated: Type.Optional(constant(true, "The target's answer was longer than the part that is shown.")),
    timeline: Type.Array(
      Type.Object(happened, { title: "ReceiptItem", description: "One thing that happened to the action." }),
      {
        description: `What happened, oldest first: the newest ${RECEIPT_ATTEMPTS_MAX} attempts and what came with them.`,
      },
    ),
    earlier_attempts: quantity("How many attempts of all runs came before those in the timeline.", 0),
  },
  {
    title: "Receipt",
    description:
      "An action and its timeline, masked, without values of headers and metadata; `callback`, `receipt_url` and the id in `created_by` are null here, and `policy` is absent. `approved_by` and `actor` are a kind (email, user, key, mcp or system) without a name.",
  },
);

/**
 * A receipt as a JSON text: the action as the public sees it, without header values, and its masked `timeline`. Anyone with the
 * link can read it, so callback, metadata, receipt URL, key ids and positions in the event stream are left out.
 */
export function receiptJson(action: MaskedAction, timeline: readonly TimelineEntry[], now: Date): string {
  const { entries, earlierAttempts } = receiptHistory(timeline, 0);
  const extras = withoutTexts(withoutUnknown(action.extras));
  const { action: cut, isCut } = cutBodies(seenWith(action, { callback: null, keyId: "", policy: null, extras }));
  const json = actionJson(cut, { now, receiptUrl: null, hidesHeaderValues: true });
  const items = maskedTimeline(entries, action).map((entry) => {
    const { seq: _position, ...item } = timelineItem(entry);
    return item;
  });
  const truncated = isCut ? `,"body_truncated":true` : "";
  return `${json.slice(0, -1)}${truncated},"timeline":${JSON.stringify(items)},"earlier_attempts":${earlierAttempts}}`;
}

/** The action with the beginning of its bodies. `isCut`: the request's body is cut. */
function cutBodies(action: SeenAction) {
  const { result, lateResult } = action;
  const cut = (json: string | null | undefined) =>
    json === null || json === undefined ? null : cutJson(json, RECEIPT_BODY_BYTES_MAX);
  const sent = cutRequestBody(action, RECEIPT_BODY_BYTES_MAX);
  const answer = cut(result?.responseBody);
  const isTruncated = result?.responseTruncated === true || (answer !== null && answer.bytes !== null);
  return {
    isCut: sent !== null && sent.bytes !== null,
    action: seenWith(action, {
      body: sent?.text ?? null,
      result:
        result === null ? null : { ...result, responseBody: answer?.text ?? null, responseTruncated: isTruncated },
      lateResult:
        lateResult === null ? null : { ...lateResult, responseBody: cut(lateResult.responseBody)?.text ?? null },
    }),
  };
}
