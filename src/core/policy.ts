import type { Action, ActionRequest, Creator, LimitedCreator } from "./action.ts";
import {
  type ActionPolicy,
  policyOfHold,
  policyOfRuling,
  policySource,
  refusedBy,
  type Ruling,
} from "./action-policy.ts";
import { type Grant, policyOfGrant } from "./grant.ts";
import { budgetSpent, limitRefusal } from "./key-limits.ts";
import { type Caller, type Hold, isHeld, mayDo } from "./roles.ts";
import { DomainError, invalidField, invalidFields, type Issue, TooEarly } from "./domain-error.ts";
import { HELD_PER_KEY_MAX, REJECTION_WINDOW_MS, REPEATS_PER_REJECTION_MAX } from "./limits.ts";
import { namedMethods, type SentRequest } from "./method-overrides.ts";
import { urlOrigin, normalTarget } from "./target.ts";
import { isCounted, mayRepeat, type RejectionCount, saysWhy } from "./rejections.ts";
import type { RuleCount } from "./account-rules.ts";
import type { CreateRefusal } from "./store.ts";
import { retryAfterMs } from "./retry.ts";

/** The decision on a request: it is sent, it waits for a person, or it is refused. */
export type PolicyDecision =
  | { readonly kind: "allow" | "hold"; readonly policy: ActionPolicy | null }
  | { readonly kind: "refuse"; readonly error: DomainError };

interface CreateFacts {
  readonly operation: "create";
  readonly request: SentRequest & Pick<ActionRequest, "approve" | "callback" | "notifyEmail">;
  readonly caller: Pick<Caller, "role" | "hold" | "limits">;
  /** The creator whose role, hold and limits restrict callback and mail. */
  readonly creator: LimitedCreator;
  readonly recipients: RecipientFacts;
  /** The caller waits for the end of the action. Together with `approve`, that was refused before. */
  readonly sync: boolean;
  /** What the account's rules say. A refusal counts last, since the request may match an older action. */
  readonly ruling: Ruling | null;
  /** The grant that allows calls like this. It lifts the hold of a key or of a rule, and nothing else. */
  readonly grant: Grant | null;
}

/** A retry of an action, or a waiting action that is sent now. */
interface RetryFacts {
  readonly operation: "retry" | "sendNow";
  readonly request: Action;
  readonly caller: Pick<Caller, "role" | "hold" | "limits">;
  /** Hosts listed for callbacks. Null: they need not be checked here. */
  readonly callbackHosts: readonly string[] | null;
  /** The `Retry-After` of the last answer, if there is one, and when that attempt ended. */
  readonly retryAfter: string | null;
  readonly endedAt: Date;
  readonly counts: RetryCounts;
  /** Why the retry is requested; null: not given. */
  readonly reason: string | null;
  readonly now: Date;
  readonly ruling: Ruling | null;
  /** What the operation adds to counts of rules. */
  readonly added: readonly RuleCount[];
}

/** What the store has counted for the key that created the action. */
interface RetryCounts {
  /** How many of its actions await approval; matters if the retry would be one more. */
  readonly heldCount: number;
  /** Earlier rejections of the same request; null: they don't count for this caller. */
  readonly rejections: RejectionCount | null;
  /** Whether the caller's key has spent its daily limit. */
  readonly isBudgetSpent: boolean;
}

/** For an operation that adds nothing to the counts, and for a first check without the store. */
export const NO_COUNTS: RetryCounts = { heldCount: 0, rejections: null, isBudgetSpent: false };

/** Where callbacks and mails of the account may go. */
export interface RecipientFacts {
  /** Hosts that an owner has listed for callbacks; read if `needsListedCallback`. */
  readonly callbackHosts: readonly string[];
  /** `APPROVERS`: addresses and `@domain`s that may be asked for approval; empty: none are set. */
  readonly approvers: readonly string[];
  /** Whether the address for approval belongs to a person of the account; read if `needsMember`. */
  readonly isMember: boolean;
}

/** For requests that name neither a callback nor an address. */
export const NO_RECIPIENTS: RecipientFacts = { callbackHosts: [], approvers: [], isMember: false };

/**
 * The policy for every create, retry and send-now. Pure: it decides from its arguments. The first check that refuses a request
 * decides. The counts of a create are checked in the commit that stores it, since others may be stored at the same time; if the
 * store refuses it, `createRefusal` has the error.
 */
export function decide(facts: CreateFacts | RetryFacts): PolicyDecision {
  const { request, caller, ruling } = facts;
  const by = holdReason(request, caller.hold);
  const grant = facts.operation === "create" && by !== "caller" ? facts.grant : null;
  const isHeldInSync = facts.operation === "create" && facts.sync && by === "key" && grant === null;
  const error =
    (isHeldInSync ? heldInSync() : null) ??
    (caller.limits === undefined ? null : limitRefusal(caller.limits, request)) ??
    (facts.operation === "create" ? recipientRefusal(facts) : retryRefusal(facts));
  if (error !== null) return { kind: "refuse", error };
  if (grant !== null && (by === "key" || ruling?.effect === "hold"))
    return { kind: "allow", policy: policyOfGrant(grant) };
  // If several things hold it, name the rule, which says most about why.
  if (ruling?.effect === "hold") return { kind: "hold", policy: policyOfRuling(ruling) };
  if (by !== null) return { kind: "hold", policy: policyOfHold(by) };
  return { kind: "allow", policy: ruling === null ? null : policyOfRuling(ruling) };
}

/** Why a request of a key with this hold awaits approval, or null. */
function holdReason(request: SentRequest & Pick<ActionRequest, "approve">, hold: Hold): "caller" | "key" | null {
  if (request.approve) return "caller";
  return isHeldBy(hold, request) ? "key" : null;
}

/** Whether the hold applies to a request. A request that names another method counts as both. */
export function isHeldBy(hold: Hold, request: SentRequest): boolean {
  if (isHeld(hold, request.method)) return true;
  return hold !== "none" && namedMethods(request).some((method) => isHeld(hold, method));
}

/**
 * Checks a call that is made at once, so that nobody could approve it. Throws `forbidden` if a limit of the caller's key
 * refuses it, or if the key's hold applies; `held` then says what to do.
 */
export function requireFree(
  { hold, limits }: Pick<Caller, "hold" | "limits">,
  request: SentRequest,
  held: string,
): void {
  if (isHeldBy(hold, request)) throw new DomainError("forbidden", held);
  const refusal = limits === undefined ? null : limitRefusal(limits, request);
  if (refusal !== null) throw refusal;
}

function heldInSync(): DomainError {
  const message = "Can't be true: what this key creates is held for approval.";
  return new DomainError("invalid_sync", NOT_IN_SYNC, [{ field: "sync", message }]);
}

export const NOT_IN_SYNC =
  "The request can't be answered in sync: the action would wait for a person, or for its time.";

function recipientRefusal({ request, creator, recipients }: CreateFacts): DomainError | null {
  const { callback, notifyEmail } = request;
  const isCallbackAllowed = callback === null || mayCallBack(creator, callback, recipients.callbackHosts);
  const issues: readonly Issue[] = [
    ...(isCallbackAllowed ? [] : [{ field: "callback", message: notListed(callback) }]),
    ...(notifyEmail === null || mayMail(creator, notifyEmail, recipients)
      ? []
      : [{ field: "notify.email", message: NOT_AN_APPROVER }]),
  ];
  if (!isCallbackAllowed) return new DomainError("invalid_url", "No callback may go to this URL.", issues);
  if (issues.length === 0) return null;
  return invalidFields(issues);
}

const NOT_AN_APPROVER =
  "May name only people of this account who may approve, and the APPROVERS of this service. To allow an address, add it to APPROVERS " +
  "in the settings of the service; or leave notify out and approve in the inbox.";

function retryRefusal(facts: RetryFacts): DomainError | null {
  const { request, caller, counts, reason, now } = facts;
  const { heldCount, rejections, isBudgetSpent } = counts;
  const isRejected = rejections !== null && isCounted(request, caller) && !mayRepeat(rejections, saysWhy(reason));
  return (
    unheldRefusal(facts) ??
    retryRuleRefusal(facts) ??
    callbackRefusal(facts) ??
    (heldCount < HELD_PER_KEY_MAX ? null : tooManyHeld(request)) ??
    (isRejected ? rejectionRefusal("not_retryable", rejections) : null) ??
    (isBudgetSpent ? budgetRefusal(caller, now) : null) ??
    (caller.role === "agent" ? earlyRefusal(facts) : null)
  );
}

/**
 * Refuses retries that would bypass the key's hold by repeating actions of other keys, and another run of what a grant let pass: grants
 * are for creates.
 */
function unheldRefusal({ operation, request, caller }: RetryFacts): DomainError | null {
  const isNewRun = operation === "retry" && caller.role === "agent" && !request.approve;
  if (isNewRun && request.policy?.by === "grant" && isHeldBy(request.creator.hold, request)) {
    return new DomainError(
      "forbidden",
      `A grant let action ${request.id} pass, and grants are for creates. Create it again, or ask someone who may approve it to retry it.`,
    );
  }
  if (holdReason(request, caller.hold) !== "key") return null;
  return new DomainError(
    "forbidden",
    `${request.method} calls of this key need approval, and action ${request.id} was created without it. Create it again, so that it is held for approval, or retry it with a key without this hold.`,
  );
}

/** A rule that holds is satisfied if the caller may approve the call, or if a decision still has to come. */
function retryRuleRefusal({ request, caller, ruling }: RetryFacts): DomainError | null {
  const refusal = ruleRefusal(ruling);
  if (refusal !== null || ruling?.effect !== "hold" || request.approve || mayDo(caller.role, "approve")) return refusal;
  const { rule, reason } = ruling;
  return new DomainError(
    "forbidden",
    `The rule "${rule.name}" holds this call for approval, and action ${request.id} was created without it.${reason === null ? "" : ` ${reason}`} Create it again, so that it is held for approval, or ask a person who may approve it to retry it.`,
  );
}

/** Refuses retries of other keys' actions whose callbacks would go to hosts that this key's callbacks can't go to. */
function callbackRefusal({ request: { callback }, callbackHosts }: RetryFacts): DomainError | null {
  if (callback === null || callbackHosts === null || isListedHost(callback, callbackHosts)) return null;
  return new DomainError("forbidden", notListed(callback));
}

function notListed(callback: string): string {
  const host = urlOrigin(callback).replace(/^https?:\/\//, "");
  return (
    `Callbacks of a key with a hold or a limit, and of agents where the account has rules, go only to hosts that an owner has listed, and ${host} is not listed. ` +
    "List it on the page Settings, Callback hosts, by `outgate callback-hosts add`, or by POST /v1/callback-hosts with an owner key."
  );
}

function tooManyHeld({ id }: Action): DomainError {
  return new DomainError(
    "not_retryable",
    `Action ${id} cannot be retried now: ${HELD_PER_KEY_MAX} actions of the key that created it await approval. Decide on some of them first.`,
  );
}

/**
 * Refuses an agent's key that would send an action earlier than a person approved, a budget has counted, or the target asked
 * for. If a person decides on a retry, they also decide on its time.
 */
function earlyRefusal({ operation, request, retryAfter, endedAt, now, added }: RetryFacts): DomainError | null {
  const { id, dueAt, approve, attempts, counted } = request;
  if (operation === "retry") {
    const waitMs = approve ? null : retryAfterMs(retryAfter, endedAt);
    const until = new Date(endedAt.getTime() + (waitMs ?? 0));
    return until <= now ? null : tooEarly(askedToWait(id, until), "retry", until);
  }
  if (dueAt === null || dueAt <= now) return null;
  // Approved and not sent yet: it waits for its `run_at`.
  if (approve && attempts === 0) {
    return tooEarly(`A person approved action ${id} to be sent at ${dueAt.toISOString()}`, "send", dueAt);
  }
  // It was counted for another period than it would be now.
  const isCountedLater = ({ ruleId, subject, start }: RuleCount) =>
    counted.some(([rule, of, at]) => rule === ruleId && of === subject && at > start);
  if (added.some(isCountedLater)) {
    return tooEarly(
      `A rule of the account counts action ${id} at ${dueAt.toISOString()}, when it is due`,
      "send",
      dueAt,
    );
  }
  return retryAfterMs(retryAfter, now) === null ? null : tooEarly(askedToWait(id, dueAt), "send", dueAt);
}

function askedToWait(id: string, until: Date): string {
  return `The target asked not to be called for action ${id} before ${until.toISOString()} (Retry-After)`;
}

function tooEarly(why: string, verb: "send" | "retry", from: Date): DomainError {
  const message = `${why}, so a key with the role agent can't ${verb} it earlier. Wait until then, or ask a person or the holder of an owner key to ${verb} it.`;
  return new TooEarly("not_retryable", message, from);
}

/** The error for a create that the store refused. */
export function createRefusal(refused: CreateRefusal, { caller, ruling }: CreateFacts, now: Date): DomainError | null {
  if (refused.kind === "rules_changed" || refused.kind === "grant_over" || refused.kind === "beyond")
    return rulesChange();
  if (refused.kind === "refused") return ruleRefusal(ruling);
  if (refused.kind === "rejected_before") return rejectionRefusal("forbidden", refused.rejections);
  if (refused.kind === "budget_spent") return budgetRefusal(caller, now);
  if (refused.kind === "unreadable") {
    return invalidField(
      refused.by === "idempotency" ? "Idempotency-Key" : "dedupe",
      `This key names action ${refused.id}, whose stored row can't be read, so nothing is sent again. Ask the operator of the server to restore or delete the row, or use another key if the target has not received the request.`,
    );
  }
  return new DomainError(
    "too_many_held",
    `This key has ${HELD_PER_KEY_MAX} actions that await approval. Wait until some are approved or rejected, or cancel those you no longer need.`,
  );
}

/** The error for a request that a rule refuses; null: none does. */
export function ruleRefusal(ruling: Ruling | null): DomainError | null {
  if (ruling?.effect !== "refuse") return null;
  return new DomainError("forbidden", refusedBy(policyOfRuling(ruling)));
}

export function rulesChange(): DomainError {
  const message = "The rules of the account are changing too fast to decide on this request. Try again.";
  return new DomainError("unavailable", message);
}

function budgetRefusal({ limits }: Pick<Caller, "limits">, now: Date): DomainError | null {
  const daily = limits?.dailyActions ?? null;
  return daily === null ? null : budgetSpent(daily, now);
}

/** A rejected request may be made again only with a reason, and only so often. */
function rejectionRefusal(
  code: "forbidden" | "not_retryable",
  { rejectedAt, repeatedAt, fullSince }: RejectionCount,
): DomainError | null {
  if (fullSince !== null) {
    const what = "Too many requests of this key were rejected within 24 hours. It may request approval again";
    const allowedAt = windowEnd(fullSince);
    return new TooEarly(code, `${what} from ${allowedAt.toISOString()}; ${BY_OWNER}`, allowedAt);
  }
  if (rejectedAt === null) return null;
  const last = repeatedAt[REPEATS_PER_REJECTION_MAX - 1];
  if (last !== undefined) {
    const allowedAt = new Date(Math.min(windowEnd(last).getTime(), windowEnd(rejectedAt).getTime()));
    const what = `A person rejected this request, and it was requested again ${REPEATS_PER_REJECTION_MAX} times within 24 hours.`;
    const message = `${what} It may be requested again from ${allowedAt.toISOString()}; ${BY_OWNER}`;
    return new TooEarly(code, message, allowedAt);
  }
  const message = `Required: a person rejected this request at ${rejectedAt.toISOString()}, so say why you request it again.`;
  return new DomainError(
    "invalid_request",
    "A person rejected this request within the last 24 hours. To request it again, say why in the field reason.",
    [{ field: "reason", message }],
  );
}

const BY_OWNER = "an owner key, or an owner on the pages, can send it earlier.";

function windowEnd(at: Date): Date {
  return new Date(at.getTime() + REJECTION_WINDOW_MS);
}

/**
 * Whether the caller's client may pass on a person's approval. Holds and rules restrict agents and their clients, and so do the
 * hold and the limits of the caller's own key: what it may not send by itself, it may not release for another key either.
 */
export function mayApproveIt(
  { role, hold, limits }: Pick<Caller, "role" | "hold" | "limits">,
  action: SentRequest & Pick<Action, "creator" | "policy">,
): boolean {
  if (mayDo(role, "approve")) return true;
  if (action.policy !== null && !policySource(action.policy).mayBePassedOn) return false;
  if ([action.creator.hold, hold].some((one) => isHeldBy(one, action))) return false;
  return limits === undefined || limitRefusal(limits, action) === null;
}

/** A caller as the creator of what they request. */
export function limitedCreator({ role, hold, limits }: Pick<Caller, "role" | "hold" | "limits">): LimitedCreator {
  return { role, hold, isLimited: limits !== undefined };
}

/**
 * The creator of a copy that a person makes: the creator of the original, so that the same restrictions apply. The copy has no
 * key, so the limits of a key become the strictest hold.
 */
export function creatorOfCopy({ role, hold, isLimited }: LimitedCreator): LimitedCreator {
  return { role, hold: isLimited ? "all" : hold, isLimited };
}

/** Whether callbacks go only to hosts that an owner has listed for the account. */
export function needsListedCallback({ hold, isLimited }: LimitedCreator): boolean {
  return hold !== "none" || isLimited;
}

export function mayCallBack(creator: LimitedCreator, url: string, listedHosts: readonly string[]): boolean {
  return !needsListedCallback(creator) || isListedHost(url, listedHosts);
}

/**
 * Whether a list contains the host of a callback URL. A host without a port means only the scheme's default port, since
 * somebody else may run a server on another port of the same host.
 */
export function isListedHost(url: string, hosts: readonly string[]): boolean {
  const target = normalTarget(url);
  if (target === null) return false;
  const { hostname, host, port } = target;
  return hosts.some((one) => one === host || one === `${hostname}:${port}`);
}

/**
 * Whether a mail may go to this address only if it is of a person of the account. Without APPROVERS, an owner key without a
 * hold may name anyone, since it could send the call without approval anyway.
 */
export function needsMember({ role, hold }: Creator, email: string, approvers: readonly string[]): boolean {
  if (approvers.length === 0 && role === "owner" && hold === "none") return false;
  return !isNamedIn(approvers, email);
}

export function mayMail(
  creator: Creator,
  email: string,
  { approvers, isMember }: Pick<RecipientFacts, "approvers" | "isMember">,
): boolean {
  return isMember || !needsMember(creator, email, approvers);
}

/** Whether a list of addresses and `@domain`s contains an address, ignoring case. */
export function isNamedIn(approvers: readonly string[], email: string): boolean {
  const address = email.toLowerCase();
  return approvers.some((approver) => {
    const entry = approver.toLowerCase();
    if (!entry.startsWith("@")) return address === entry;
    // Old mail servers relay `ann%other.example@ours.example` and `other!ann@…` to the other host.
    return !/[%!]/.test(address) && address.slice(address.lastIndexOf("@")) === entry;
  });
}
