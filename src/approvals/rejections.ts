import type { ActionRequest, Action } from "../actions/action.ts";
import { type Actor, type Caller, mayDo } from "../accounts/roles.ts";
import type { Refusal } from "../actions/changes.ts";
import { ASKED_AGAIN_MAX, REJECTION_WINDOW_MS } from "../config/limits.ts";
import { decodeUnreserved, normalTarget } from "../outbound/target.ts";
import type { HashOf } from "../actions/dedupe.ts";
import type { Operation } from "../actions/status.ts";

/**
 * The identity of a request for the count of rejections: method, URL and body in one spelling, so that the order of members,
 * `5.0` for `5` and `%61` for `a` make no new request. Without headers, since one header that changes with each call would
 * make every repetition a new request.
 */
export function rejectionDigest(
  { method, url, body }: Pick<ActionRequest, "method" | "url" | "body">,
  hashOf: HashOf,
): string {
  const target = normalTarget(url);
  const place = target === null ? url : target.origin + decodeUnreserved(target.rest);
  return hashOf(JSON.stringify([method, place, body === null ? null : plainJson(body)]));
}

/** Members in the order of their names, numbers as JavaScript reads them. */
function plainJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), (_name, value: unknown) => {
      if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
      return Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1)));
    });
  } catch {
    return text;
  }
}

/** Whether a reason says anything: it has a letter, digit or sign that can be seen. Some letters of Unicode are blank. */
export function saysWhy(reason: string | null): boolean {
  return reason !== null && /(?![\u115f\u1160\u2800\u3164\uffa0])[\p{L}\p{N}\p{S}]/u.test(reason);
}

/** The row that a create, or a decision on a held action, adds to the count of rejections. */
export interface RejectionNote {
  readonly kind: "asked" | "rejected" | "approved";
  /** `rejectionDigest` of the request. */
  readonly digest: string;
  readonly by: Actor;
  readonly reason: string | null;
}

type Asker = Pick<Caller, "role" | "hold" | "actor" | "via">;

type Asked = Pick<ActionRequest, "approve" | "method" | "url" | "body">;

/** The note of a create or retry; null: neither held nor of a key with a hold, or the caller may approve and so repeat it freely. */
export function noteOfCreate(
  request: Asked,
  { caller, reason }: { readonly caller: Asker; readonly reason: string | null },
  hashOf: HashOf,
): RejectionNote | null {
  // What such a key may send unheld counts too, or a rejected call could be sent again without asking.
  if ((!request.approve && caller.hold === "none") || mayDo(caller.role, "approve")) return null;
  return { kind: "asked", digest: rejectionDigest(request, hashOf), by: caller.actor, reason };
}

/**
 * The note of a decision; null: it does not count. A rejection counts if a person gave it (with a key, page or link that may
 * approve, or by answering a client's question), and not if an agent cancels its own request. An approval by somebody who
 * may approve ends the count.
 */
export function noteOfDecision(
  operation: Operation,
  action: Asked & { readonly status: string },
  { caller, reason }: { readonly caller: Asker; readonly reason: string | null },
  hashOf: HashOf,
): RejectionNote | null {
  if (operation === "retry") return noteOfCreate(action, { caller, reason }, hashOf);
  if (!action.approve) return null;
  const mayApprove = mayDo(caller.role, "approve");
  // Also of what was approved and has not been sent: a person has changed their mind.
  const isRejection = operation === "cancel" && (mayApprove || action.status === "awaiting_approval");
  const counts = isRejection ? mayApprove || caller.via === "elicitation" : operation === "approve" && mayApprove;
  if (!counts) return null;
  const kind = isRejection ? "rejected" : "approved";
  return { kind, digest: rejectionDigest(action, hashOf), by: caller.actor, reason };
}

/** Rejections at this time or earlier no longer count. */
export function rejectionWindowStart(now: Date): Date {
  return new Date(now.getTime() - REJECTION_WINDOW_MS);
}

/** The present count of a request. */
interface RejectionCount {
  /** The newest rejection in the window; null: none. */
  readonly rejectedAt: Date | null;
  /** When it was requested again within the window, newest first, at most `ASKED_AGAIN_MAX`. */
  readonly askedAt: readonly Date[];
  /** The oldest entry of its key if the key has `REJECTIONS_PER_KEY_MAX` of them; else null. */
  readonly fullSince: Date | null;
}

/** Why a request may not be made again now; null: it may. */
export function refusalOfAsking(
  { rejectedAt, askedAt, fullSince }: RejectionCount,
  reason: string | null,
  refused: "forbidden" | "not_retryable",
): Refusal | null {
  if (fullSince !== null) {
    const what = "Too many requests of this key were rejected within 24 hours. It may request approval again";
    return { refused, message: `${what} from ${endOf(fullSince).toISOString()}; ${BY_OWNER}` };
  }
  if (rejectedAt === null) return null;
  const last = askedAt[ASKED_AGAIN_MAX - 1];
  if (last !== undefined) {
    const again = new Date(Math.min(endOf(last).getTime(), endOf(rejectedAt).getTime()));
    const what = `A person rejected this request, and it was requested again ${ASKED_AGAIN_MAX} times within 24 hours.`;
    return { refused, message: `${what} It may be requested again from ${again.toISOString()}; ${BY_OWNER}` };
  }
  if (saysWhy(reason)) return null;
  const why = `Required: a person rejected this request at ${rejectedAt.toISOString()}, so say why you request it again.`;
  return {
    refused: "invalid_request",
    message:
      "A person rejected this request within the last 24 hours. To request it again, say why in the field reason.",
    issues: [{ field: "reason", message: why }],
  };
}

const BY_OWNER = "an owner key, or an owner on the pages, can send it earlier.";

function endOf(at: Date): Date {
  return new Date(at.getTime() + REJECTION_WINDOW_MS);
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
  /** The reason of the present run; null: not given. */
  readonly reason: string | null;
  /** For the same request before that run, oldest first; the newest `EARLIER_REJECTIONS_SHOWN_MAX`. */
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
 * Rejections of the last 24 hours and requests for the same again. Rows (`RejectionNote`) are written in the transaction of
 * their change, and the limit is a condition of that write.
 */
export interface RejectionStore {
  count(request: RejectedRequest, now: Date): Promise<RejectionCount>;
  /** The history of the action's request before its present run, and the reason of that run. */
  earlier(
    action: Pick<Action, "id" | "run" | "accountId" | "keyId">,
    digest: string,
    now: Date,
  ): Promise<RequestHistory>;
  /** Deletes some rows that no longer count; true: there may be more. */
  prune(now: Date): Promise<boolean>;
}
