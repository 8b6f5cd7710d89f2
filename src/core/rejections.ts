import type { ActionRequest, Action, Operation } from "./action.ts";
import { usedBodyMember, formPairs, isJsonMember, sentBody } from "./body.ts";
import { type Actor, type Caller, isWithdrawal, mayDo } from "./roles.ts";
import { REJECTION_WINDOW_MS, REPEATS_PER_REJECTION_MAX } from "./limits.ts";
import { decodeUnreserved, storedTarget } from "./target.ts";
import type { HashText } from "./dedupe.ts";

type IdentifiedRequest = Pick<ActionRequest, "method" | "url" | "body" | "extras">;

/**
 * Identifies a request for the count of rejections: method, URL and body in one spelling, so that the order of members or
 * fields, `5.0` for `5`, `%61` for `a` and base64 for a text make no new request. It leaves out headers, since one header that
 * changes with each call would make every repetition a new request.
 */
function rejectionDigest(request: IdentifiedRequest, hashText: HashText): string {
  const { origin, rest } = storedTarget(request.url);
  return hashText(JSON.stringify([request.method, origin + decodeUnreserved(rest), plainBody(request)]));
}

/**
 * Identifies requests that differ only in query, headers, body, ids and the case of the path: what a requester changes who asks
 * again after a rejection.
 */
function similarDigest({ method, url }: Pick<ActionRequest, "method" | "url">, hashText: HashText): string {
  const { host, pathname } = storedTarget(url);
  return hashText(JSON.stringify([method, host, foldedPath(pathname)]));
}

/** The path without empty segments and parameters of segments (`;a=1`), which most targets ignore. */
function foldedPath(pathname: string): readonly string[] {
  const segments = decodeUnreserved(pathname)
    .split("/")
    .map((segment) => segment.split(";", 1)[0]?.toLowerCase() ?? "");
  return segments.filter((segment) => segment !== "").map((segment) => (mayBeId(segment) ? "" : segment));
}

/** Whether a segment of a path may be an id: it has a digit. */
export function mayBeId(segment: string): boolean {
  return /\d/.test(segment);
}

/** The body in one spelling. A body that isn't JSON becomes a list, so that it equals no JSON text. */
function plainBody(request: IdentifiedRequest): unknown {
  const { body } = request;
  const member = usedBodyMember(request);
  if (body === null || member === null) return null;
  if (isJsonMember(member)) return plainJson(body);
  if (member === "form") return ["form", ...formPairs(body).toSorted(([a], [b]) => (a < b ? -1 : Number(a > b)))];
  return ["bytes", Buffer.from(sentBody(request) ?? "").toString("base64")];
}

/** A JSON text with members ordered by name, and numbers as JavaScript reads them. */
function plainJson(text: string): string {
  try {
    return JSON.stringify(inOrder(JSON.parse(text)));
  } catch {
    return text;
  }
}

/** Orders members by name. A replacer of `JSON.stringify` takes four times as long. */
function inOrder(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(inOrder);
  const ordered = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(ordered.map(([name, member]) => [name, inOrder(member)]));
}

/** What a request, or a decision on a held action, adds to the count of rejections. */
export interface RejectionEntry {
  readonly kind: "asked" | "rejected" | "approved";
  /** `rejectionDigest` and `similarDigest` of the request. */
  readonly digest: string;
  readonly similar: string;
  readonly by: Actor;
  readonly reason: string | null;
}

type CountedRequest = IdentifiedRequest & Pick<ActionRequest, "approve">;

interface RequestedBy {
  readonly caller: Pick<Caller, "role" | "hold" | "actor" | "via" | "clearsUp">;
  readonly reason: string | null;
}

/**
 * Whether requests of this caller count. Not if they may approve, and so repeat freely. For a key with a hold, calls that it
 * may send unheld count, too: otherwise, a rejected call could be sent again without asking.
 */
export function isCounted({ approve }: Pick<ActionRequest, "approve">, { role, hold }: Pick<Caller, "role" | "hold">) {
  return (approve || hold !== "none") && !mayDo(role, "approve");
}

/** The entry of a create or retry; null: it does not count. */
export function entryOfRequest(
  request: CountedRequest,
  { caller, reason }: RequestedBy,
  hashText: HashText,
): RejectionEntry | null {
  if (!isCounted(request, caller)) return null;
  return { kind: "asked", ...requestDigests(request, hashText), by: caller.actor, reason };
}

/**
 * The entry of a decision; null: it does not count. A rejection by a person counts (with a key, page or link that may approve,
 * or as the answer to a client's question); a withdrawal doesn't. An approval by somebody who may approve ends the count.
 */
export function entryOfDecision(
  operation: Operation,
  action: CountedRequest & { readonly status: string },
  { caller, reason }: RequestedBy,
  hashText: HashText,
): RejectionEntry | null {
  if (operation === "retry") return entryOfRequest(action, { caller, reason }, hashText);
  if (!action.approve) return null;
  const mayApprove = mayDo(caller.role, "approve");
  // Also for an approved action that was not sent yet: a person has changed their mind.
  const isRejection = operation === "cancel" && (mayApprove || action.status === "awaiting_approval");
  const counts = isRejection ? !isWithdrawal(caller) : operation === "approve" && mayApprove;
  if (!counts) return null;
  const kind = isRejection ? "rejected" : "approved";
  return { kind, ...requestDigests(action, hashText), by: caller.actor, reason };
}

/** The digests that identify a request among rejected ones. */
export function requestDigests(
  request: IdentifiedRequest,
  hashText: HashText,
): Pick<RejectionEntry, "digest" | "similar"> {
  return { digest: rejectionDigest(request, hashText), similar: similarDigest(request, hashText) };
}

/** An earlier rejection of a request, or an earlier repetition of it after one. */
export interface EarlierRejection {
  readonly kind: "rejected" | "asked";
  readonly at: Date;
  readonly by: Actor;
  /** Untrusted text. */
  readonly reason: string | null;
}

/** What the store knows about earlier requests for the same call. */
export interface RequestHistory {
  /** The reason of the current run; null: not given. */
  readonly reason: string | null;
  /** Rejections of the same request before that run, oldest first; the newest `EARLIER_REJECTIONS_SHOWN_MAX`. */
  readonly rejections: readonly EarlierRejection[];
}

/** A request of one key of an account. */
export interface RejectedRequest {
  readonly accountId: string;
  /** Of the key that created it. */
  readonly keyId: string;
  /** `rejectionDigest` of it. */
  readonly digest: string;
}

/**
 * Rejections of the last 24 hours and repeated requests. Rows (`RejectionEntry`) are written in the transaction of their
 * change, which also checks the limit.
 */
export interface RejectionStore {
  count(request: RejectedRequest, now: Date): Promise<RejectionCount>;
  /** The history of the action's request before its current run, and the reason of that run. */
  earlier(
    action: Pick<Action, "id" | "run" | "accountId" | "keyId">,
    digest: string,
    now: Date,
  ): Promise<RequestHistory>;
  /** How many similar, but not equal, requests of the key were rejected, up to `SIMILAR_REJECTIONS_COUNTED_MAX`. */
  similar(request: RejectedRequest & Pick<RejectionEntry, "similar">, now: Date): Promise<number>;
  /** Deletes some rows that no longer count; true: there may be more. */
  prune(now: Date): Promise<boolean>;
}

/** Whether a reason has any visible letter, digit or sign. Some Unicode letters are blank. */
export function saysWhy(reason: string | null): boolean {
  return reason !== null && /(?![\u115f\u1160\u2800\u3164\uffa0\ufffc])[\p{L}\p{N}\p{S}]/u.test(reason);
}

/** Rejections at this time or earlier no longer count. */
export function rejectionWindowStart(now: Date): Date {
  return new Date(now.getTime() - REJECTION_WINDOW_MS);
}

/** The present count of a request. */
export interface RejectionCount {
  /** The newest rejection in the window; null: none. */
  readonly rejectedAt: Date | null;
  /** When it was requested again within the window, newest first, at most `REPEATS_PER_REJECTION_MAX`. */
  readonly repeatedAt: readonly Date[];
  /** The oldest entry of its key if the key has `REJECTIONS_PER_KEY_MAX` of them; else null. */
  readonly fullSince: Date | null;
}

/** Whether a request may be made now. `hasReason`: its reason says anything. */
export function mayRepeat({ rejectedAt, repeatedAt, fullSince }: RejectionCount, hasReason: boolean): boolean {
  if (fullSince !== null) return false;
  return rejectedAt === null || (repeatedAt.length < REPEATS_PER_REJECTION_MAX && hasReason);
}
