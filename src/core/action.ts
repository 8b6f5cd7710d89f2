import type { ActionPolicy } from "./action-policy.ts";
import type { StoredCount } from "./account-rules.ts";
import type { Actor, Hold, Role } from "./roles.ts";
import { DATE_MS_MAX, SMALL_ROW_BYTES_MAX } from "./limits.ts";
import type { HttpMethod } from "./target.ts";
import type { Extras, ExtrasSchema } from "./extras-schema.ts";
import { jsonIn } from "./json.ts";
import type { RetrySettings } from "./retry.ts";

export const ACTION_STATUSES = ["pending", "active", "awaiting_approval", "completed", "failed", "cancelled"] as const;

export type ActionStatus = (typeof ACTION_STATUSES)[number];

/** What to do after an attempt that the target may or may not have received. */
type OnUnknown = "retry" | "stop";

/** Where a failed attempt went wrong: the target answered with an error, or no whole answer arrived. */
export type ErrorSource = "target" | "dispatch";

/** What the caller asked for. It never changes after creation, so what was approved is what is sent. */
export interface ActionRequest {
  /** The target as the caller wrote it; code uses only its parsed parts. */
  readonly url: string;
  /** Host name in its ASCII form, lower case, without port and without a trailing dot. */
  readonly hostname: string;
  /** Host name, with the port unless it is the scheme's default. Part of the action's lane. */
  readonly host: string;
  readonly method: HttpMethod;
  /** JSON text, sent to the target byte for byte, unless `extras.bodyKind` says that it is something else. */
  readonly body: string | null;
  readonly headers: Readonly<Record<string, string>> | null;
  readonly dedupe: string | null;
  readonly idempotencyKey: string | null;
  /** Attempts allowed in one run. */
  readonly retries: number;
  readonly onUnknown: OnUnknown;
  readonly approve: boolean;
  readonly callback: string | null;
  readonly notifyEmail: string | null;
  /** What the call does, in the requester's words. */
  readonly title: string | null;
  readonly extras: Extras;
  /** No attempt begins from this time on; null: it never expires. */
  readonly expiresAt: Date | null;
}

/** How the newest attempt of the run ended. */
export interface Result {
  /** One of the fixed sentences of `outcome.ts`; null after a success. */
  readonly lastError: string | null;
  readonly errorSource: ErrorSource | null;
  readonly responseCode: number | null;
  /** JSON text of the target's answer, as `response_body` shows it. */
  readonly responseBody: string | null;
  readonly responseTruncated: boolean;
  readonly durationMs: number | null;
  /** JSON text of the headers of the target's answer, as `keptHeaders` keeps them. */
  readonly responseHeaders: string | null;
}

/** The part of an action that the state machine changes. Every change adds one to `revision`. */
export interface ActionState {
  readonly status: ActionStatus;
  /** Counts from 1; a manual retry begins the next run of the same action. */
  readonly run: number;
  /** Attempts claimed in this run, counted before anything is sent. */
  readonly attempts: number;
  /** When a pending action may be claimed. */
  readonly dueAt: Date | null;
  /** The deadline by which whoever claimed an active action must settle it. */
  readonly leaseUntil: Date | null;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
  readonly approvedAt: Date | null;
  readonly approvedBy: string | null;
  /** `requestDigest` of the request that was approved. */
  readonly approvedDigest: string | null;
  readonly result: Result | null;
  /** What became known of an attempt after it was closed as unknown, and could not become the result; null: nothing. */
  readonly lateResult: LateResult | null;
}

/** Role and hold of an action's creator at the time of creation. A person has the hold `none`. */
export interface Creator {
  readonly role: Role;
  readonly hold: Hold;
}

/** A creator, and whether their key has limits. Those are in the row of the key, and never change. */
export interface LimitedCreator extends Creator {
  readonly isLimited: boolean;
}

/** One HTTP call: the request, its state and its result. */
export interface Action extends ActionRequest, ActionState {
  readonly id: string;
  readonly accountId: string;
  /** The fencing token: a write names the revision that it read, and fails if another write came first. */
  readonly revision: number;
  readonly createdAt: Date;
  readonly createdBy: Actor;
  /** Id of the key that created it, part of its lane. Empty: a person created it, or no key was stored. */
  readonly keyId: string;
  /** Role and hold of the creator at the create. They limit callbacks and mails, even if the key changes later. */
  readonly creator: Creator;
  /** Why it was held, or which rule or grant let it pass; null: nothing held it, and no rule applies. */
  readonly policy: ActionPolicy | null;
  /** What this run has added to counts of rules. It stays even when that is given back. */
  readonly counted: readonly StoredCount[];
}

/** The initial state: held for approval, or due at once, or at a later time. */
export function firstState(approve: boolean, now: Date, dueAt: Date = now): ActionState {
  return {
    status: approve ? "awaiting_approval" : "pending",
    run: 1,
    attempts: 0,
    dueAt: approve ? null : dueAt,
    leaseUntil: null,
    startedAt: null,
    finishedAt: null,
    approvedAt: null,
    approvedBy: null,
    approvedDigest: null,
    result: null,
    lateResult: null,
  };
}

/** When the first run of an action may begin: now, or at its `run_at`. */
export function firstDueAt({ extras }: Pick<ActionRequest, "extras">, now: Date): Date {
  const runAt = requestedRunAt({ extras });
  return runAt === null || runAt <= now ? now : runAt;
}

/** The time before which the action is not sent; null: none was set. */
export function requestedRunAt({ extras: { runAt } }: Pick<ActionRequest, "extras">): Date | null {
  return runAt === undefined ? null : new Date(runAt);
}

/** Whether the action waits for its `run_at`, which is a wall-clock time, unlike the delay between two attempts. */
export function awaitsRunAt(action: Pick<Action, "status" | "dueAt" | "extras">): boolean {
  return (
    action.status === "pending" && action.extras.runAt !== undefined && action.dueAt?.getTime() === action.extras.runAt
  );
}

/** Whether no attempt of the action may begin any more, or a credential has ended. */
export function isExpired({ expiresAt }: Pick<ActionRequest, "expiresAt">, now: Date): boolean {
  return expiresAt !== null && expiresAt <= now;
}

/** Whether the action has ended; only a manual retry moves it again. */
export function isTerminal(status: ActionStatus): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** When the next attempt is due, if the action waits between two attempts. */
export function nextRetryAt(action: ActionState): Date | null {
  return action.status === "pending" && action.attempts > 0 ? action.dueAt : null;
}

/** Bytes of the body, headers and extras of an action if they exceed `SMALL_ROW_BYTES_MAX`; else undefined. */
export function largeRowBytes(action: Pick<Action, "body" | "headers" | "extras">): number | undefined {
  const { body, headers, extras } = action;
  let bytes = Buffer.byteLength(body ?? "") + Buffer.byteLength(extrasText(extras) ?? "");
  for (const [name, value] of Object.entries(headers ?? {})) bytes += name.length + value.length;
  return bytes > SMALL_ROW_BYTES_MAX ? bytes : undefined;
}

/** A size for people: "1 byte", "1.5 kB", "2 MB". */
export function formatSize(bytes: number): string {
  if (bytes < 1_000) return bytes === 1 ? "1 byte" : `${bytes} bytes`;
  const [size, unit] = bytes < 1_000_000 ? [bytes / 1_000, "kB"] : [bytes / 1_000_000, "MB"];
  return `${size.toFixed(1).replace(/\.0$/, "")} ${unit}`;
}

/** What the target answered to an attempt that had been closed as unknown before the answer was known. */
export interface LateResult extends Pick<
  Result,
  "responseBody" | "responseTruncated" | "responseHeaders" | "durationMs"
> {
  /** The run, and the attempt in it, that it answers. */
  readonly run: number;
  readonly attempt: number;
  readonly responseCode: number;
  /** When it became known here. */
  readonly at: Date;
}

/** Whether the target has done what the action asks for, although the action may say otherwise. */
export function isLateSuccess({ responseCode }: LateResult): boolean {
  return responseCode >= 200 && responseCode <= 299;
}

/** A late success of this run, which completes the action as soon as no attempt is in flight. Null: there is none. */
export function lateSuccessIn(run: number, late: LateResult | null): LateResult | null {
  return late !== null && late.run === run && isLateSuccess(late) ? late : null;
}

/** The stored text: status, space, JSON. The status comes first for conditions (`LATE_SUCCESS` in `db/tables.ts`). */
export function lateResultText(late: LateResult | null): string | null {
  if (late === null) return null;
  const { responseCode, at, ...rest } = late;
  return `${responseCode} ${JSON.stringify({ ...rest, at: at.getTime() })}`;
}

/** Null: it can't be read. */
export function parseLateResult(text: string): LateResult | null {
  const responseCode = Number(text.slice(0, CODE_CHARS));
  // Safe: `lateResultText` wrote it, or a member below is no number.
  const stored = jsonIn(text.slice(CODE_CHARS)) as
    | (Omit<LateResult, "at" | "responseCode"> & { readonly at: number })
    | undefined
    | null;
  if (stored === undefined || stored === null) return null;
  const { run, attempt, at } = stored;
  const isSound = [responseCode, run, attempt, at].every(Number.isSafeInteger) && Math.abs(at) <= DATE_MS_MAX;
  return isSound ? { ...stored, responseCode, at: new Date(at) } : null;
}

const CODE_CHARS = 3;

/**
 * The triggers of the state machine. `hold` is the retry of an action that needs approval; `unclaim` gives back a claim whose
 * attempt never began; `withhold` and `refuse` come from rules that became stricter before the attempt began. An attempt ends
 * with `succeed`, `reschedule` or `fail`; late, its action may wait for the next one already.
 */
type Trigger =
  | "approve"
  | "cancel"
  | "claim"
  | "unclaim"
  | "withhold"
  | "refuse"
  | "succeed"
  | "reschedule"
  | "fail"
  | "retry"
  | "hold";

const ENDS_OF_ATTEMPT = { succeed: "completed", reschedule: "pending", fail: "failed" } as const;

/** The state machine: every allowed transition. */
const TRANSITIONS: Readonly<Record<ActionStatus, Partial<Record<Trigger, ActionStatus>>>> = {
  awaiting_approval: { approve: "pending", cancel: "cancelled" },
  pending: { claim: "active", cancel: "cancelled", ...ENDS_OF_ATTEMPT },
  active: {
    unclaim: "pending",
    withhold: "awaiting_approval",
    refuse: "cancelled",
    ...ENDS_OF_ATTEMPT,
  },
  failed: { retry: "pending", hold: "awaiting_approval" },
  cancelled: { retry: "pending", hold: "awaiting_approval" },
  completed: {},
};

/** The status after a trigger; null: the trigger is not allowed in this status. */
export function nextStatus(status: ActionStatus, trigger: Trigger): ActionStatus | null {
  return TRANSITIONS[status][trigger] ?? null;
}

/** The status after a trigger. Throws if it is not allowed in this status. */
export function statusAfter(
  action: { readonly id: string; readonly status: ActionStatus },
  trigger: Trigger,
): ActionStatus {
  const status = nextStatus(action.status, trigger);
  if (status === null)
    throw new Error(`Action ${action.id} is ${action.status}, in which "${trigger}" is not allowed.`);
  return status;
}

export function sources(trigger: Trigger): readonly ActionStatus[] {
  return ACTION_STATUSES.filter((status) => nextStatus(status, trigger) !== null);
}

export const OPERATIONS = ["approve", "cancel", "retry"] as const;

export type Operation = (typeof OPERATIONS)[number];

/** The operations that a status allows: the `actions` field. */
export function operationsIn(status: ActionStatus): readonly Operation[] {
  return OPERATIONS.filter((operation) => nextStatus(status, operation) !== null);
}

/** The decisions on a held action. */
export const DECISIONS = ["approve", "reject"] as const;

export type Decision = (typeof DECISIONS)[number];

/** One of the two links of an approval mail. Both open the same page, except with `APPROVAL_LINKS=one_click`. */
export interface ApprovalLink {
  readonly actionId: string;
  /** A link decides on this run only. After a retry, the links of the earlier run have no effect. */
  readonly run: number;
  readonly decision: Decision;
}

/**
 * The labels of members that are texts of the requester; null: a setting. A text has the same name in the API. It is never
 * sent, nobody without an account sees it, and requests that look alike may differ in it.
 */
const MEMBERS = {
  bodyKind: null,
  reason: "Reason",
  metadata: "Requester notes",
  timeoutMs: null,
  backoff: null,
  giveUpOn: null,
  runAt: null,
  delaySeconds: null,
  credential: null,
} as const satisfies Record<keyof (typeof ExtrasSchema)["properties"], string | null>;

type TextName = {
  [Name in keyof typeof MEMBERS]: (typeof MEMBERS)[Name] extends null ? never : Name;
}[keyof typeof MEMBERS];

const KNOWN: ReadonlySet<string> = new Set(Object.keys(MEMBERS));

const LABELS = Object.fromEntries(Object.entries(MEMBERS).filter(([, label]) => label !== null)) as Readonly<
  Record<TextName, string>
>;

/** The members that are texts, in the order in which people see them. */
export const TEXT_EXTRAS = Object.keys(LABELS) as readonly TextName[];

export const NO_EXTRAS: Extras = Object.freeze({});

/** The members that only another version of Outgate knows; null: none. They are kept and shown, but have no effect here. */
export function unknownExtras(extras: Extras): Readonly<Record<string, unknown>> | null {
  const members = extras === NO_EXTRAS ? [] : Object.entries(extras).filter(([name]) => !KNOWN.has(name));
  return members.length === 0 ? null : Object.fromEntries<unknown>(members);
}

/** The extras without members that only another version knows. */
export function withoutUnknown(extras: Extras): Extras {
  return Object.fromEntries(Object.entries(extras).filter(([name]) => KNOWN.has(name)));
}

export type RequesterTextName = "title" | TextName;

/** The texts of a requester about an action, in the order in which people see them. */
export const REQUESTER_TEXTS: readonly RequesterTextName[] = ["title", ...TEXT_EXTRAS];

export const REQUESTER_LABELS: Readonly<Record<RequesterTextName, string>> = { title: "Requester says", ...LABELS };

/** A text in the requester's own words: untrusted and never sent. */
interface RequesterText {
  readonly name: RequesterTextName;
  /** The name of a note; empty: it has none. */
  readonly note: string;
  /** Null: nothing was said. */
  readonly text: string | null;
}

type Said = { readonly [Name in RequesterTextName]?: string | Readonly<Record<string, string>> | null };

/** What a requester says about an action. `reason`: why its current run was requested. */
export function requesterTexts(
  { title, extras }: { readonly title: string | null; readonly extras: Extras },
  reason: string | null,
): readonly RequesterText[] {
  const said: Said = { ...extras, title, reason, metadata: extras.metadata ?? {} };
  return REQUESTER_TEXTS.flatMap((name): readonly RequesterText[] => {
    const text = said[name] ?? null;
    if (text === null || typeof text === "string") return [{ name, note: "", text }];
    return Object.entries(text).map(([note, value]) => ({ name, note, text: value }));
  });
}

/** The texts alone, of extras or of the members of a create. */
export function textsIn(members: Pick<Extras, TextName>): Pick<Extras, TextName> {
  const texts: Record<string, unknown> = {};
  for (const name of TEXT_EXTRAS) if (members[name] !== undefined) texts[name] = members[name];
  return texts;
}

export function withoutTexts(extras: Extras): Extras {
  return Object.fromEntries(Object.entries(extras).filter(([name]) => !Object.hasOwn(LABELS, name)));
}

/** How attempts of an action are made and repeated, as far as its create says; null: it says nothing. */
export function ownRetrySettings({ timeoutMs, backoff, giveUpOn }: Extras): RetrySettings | null {
  if (timeoutMs === undefined && backoff === undefined && giveUpOn === undefined) return null;
  return { timeoutMs: timeoutMs ?? null, backoff: backoff ?? null, giveUpOn: giveUpOn ?? null };
}

/** The text of extras as it is stored. */
export function extrasText(extras: Extras): string | null {
  const text = extras === NO_EXTRAS ? "{}" : JSON.stringify(extras);
  return text === "{}" ? null : text;
}
