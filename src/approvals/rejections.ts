import type { ActionRequest, Action } from "../actions/action.ts";
import { type Actor, type Caller, mayDo } from "../accounts/roles.ts";
import type { Refusal } from "../actions/changes.ts";
import { ASKED_AGAIN_MAX, REJECTION_WINDOW_MS } from "../config/limits.ts";
import { normalTarget } from "../outbound/normal-target.ts";
import type { HashOf } from "../actions/dedupe.ts";
import type { Operation } from "../actions/status.ts";

/**
 * Names a request for which a rejection counts: method, URL in its normal form and body. Headers do not count: one of them
 * that changes from call to call, or that is put in for this alone, would make every repeat another request.
 */
export function rejectionDigest(
  { method, url, body }: Pick<ActionRequest, "method" | "url" | "body">,
  hashOf: HashOf,
): string {
  const target = normalTarget(url);
  return hashOf(JSON.stringify([method, target === null ? url : target.origin + target.rest, body]));
}

/** What a create or a decision on a held action means for the count of rejections. */
export interface RejectionNote {
  readonly kind: "asked" | "rejected" | "approved";
  /** `rejectionDigest` of the request. */
  readonly digest: string;
  readonly by: Actor;
  readonly reason: string | null;
}

type Asker = Pick<Caller, "role" | "actor" | "via">;

type Asked = Pick<ActionRequest, "approve" | "method" | "url" | "body">;

/** The note of a create or retry; null for what is not held. Whoever may approve a request may ask for it as often as they like. */
export function noteOfCreate(
  request: Asked,
  { caller, reason }: { readonly caller: Asker; readonly reason: string | null },
  hashOf: HashOf,
): RejectionNote | null {
  if (!request.approve || mayDo(caller.role, "approve")) return null;
  return { kind: "asked", digest: rejectionDigest(request, hashOf), by: caller.actor, reason };
}

/**
 * The note of a decision; null where it means nothing. A rejection counts when a person has given it: by a key, page or link
 * that may approve, or by an answer to a client's question; not when an agent takes back what it asked for. An approval by
 * somebody who may approve ends the count: the last word counts.
 */
export function noteOfDecision(
  operation: Operation,
  action: Asked & { readonly status: string },
  { caller, reason }: { readonly caller: Asker; readonly reason: string | null },
  hashOf: HashOf,
): RejectionNote | null {
  if (!action.approve) return null;
  if (operation === "retry") return noteOfCreate(action, { caller, reason }, hashOf);
  const mayApprove = mayDo(caller.role, "approve");
  const isRejection = operation === "cancel" && action.status === "awaiting_approval";
  const counts = isRejection ? mayApprove || caller.via === "elicitation" : operation === "approve" && mayApprove;
  if (!counts) return null;
  const kind = isRejection ? "rejected" : "approved";
  return { kind, digest: rejectionDigest(action, hashOf), by: caller.actor, reason };
}

/** When rejections at this time or before count no more. */
export function rejectionWindowStart(now: Date): Date {
  return new Date(now.getTime() - REJECTION_WINDOW_MS);
}

/** What counts of a request now. */
interface RejectionCount {
  /** The newest rejection of the window; null: there is none. */
  readonly rejectedAt: Date | null;
  /** When it was asked for again within the window, newest first, at most `ASKED_AGAIN_MAX`. */
  readonly askedAt: readonly Date[];
  /** The oldest entry of its key, where that has as many as are kept of one; else null. */
  readonly fullSince: Date | null;
}

/** Why a request may not be asked for again now; null: it may. */
export function refusalOfAsking(
  { rejectedAt, askedAt, fullSince }: RejectionCount,
  reason: string | null,
  refused: "forbidden" | "not_retryable",
): Refusal | null {
  if (fullSince !== null) {
    const what = "More requests of this key were rejected within 24 hours than are counted. It may ask again";
    return { refused, message: `${what} from ${endOf(fullSince).toISOString()}; ${BY_OWNER}` };
  }
  if (rejectedAt === null) return null;
  const last = askedAt[ASKED_AGAIN_MAX - 1];
  if (last !== undefined) {
    const again = new Date(Math.min(endOf(last).getTime(), endOf(rejectedAt).getTime()));
    const what = `A person rejected this request, and it was asked for again ${ASKED_AGAIN_MAX} times within 24 hours.`;
    return { refused, message: `${what} It may be asked for again from ${again.toISOString()}; ${BY_OWNER}` };
  }
  if (reason !== null && reason.trim() !== "") return null;
  const why = `Required: a person rejected this request at ${rejectedAt.toISOString()}, so say why it is asked for again.`;
  return {
    refused: "invalid_request",
    message: "A person has rejected this request within 24 hours: to ask for it again, say why in the field reason.",
    issues: [{ field: "reason", message: why }],
  };
}

const BY_OWNER = "a key of an owner, or an owner on the pages, can send it before.";

function endOf(at: Date): Date {
  return new Date(at.getTime() + REJECTION_WINDOW_MS);
}

/** What was said about a request before: that a person rejected it, or why it was asked for again. */
export interface EarlierRejection {
  readonly kind: "rejected" | "asked";
  readonly at: Date;
  readonly by: Actor;
  /** Data from outside. */
  readonly reason: string | null;
}

/** What the store knows of how often a request was asked for. */
export interface RequestHistory {
  /** Why its present run is asked for; null: its requester did not say. */
  readonly reason: string | null;
  /** Of the same request, before that run: oldest first, of more than `EARLIER_REJECTIONS_SHOWN_MAX` the newest. */
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
 * What people have rejected within the last 24 hours, and how often that was asked for again. Rows are written with the
 * change that they tell of (`RejectionNote`), and the limit is a condition of that write.
 */
export interface RejectionStore {
  /** What counts of a request now. */
  count(request: RejectedRequest, now: Date): Promise<RejectionCount>;
  /** What was said about the request of an action before its present run, and why that is asked for. */
  earlier(
    action: Pick<Action, "id" | "run" | "accountId" | "keyId">,
    digest: string,
    now: Date,
  ): Promise<RequestHistory>;
  /** Forgets some of what counts no more; true when there is more. */
  prune(now: Date): Promise<boolean>;
}
