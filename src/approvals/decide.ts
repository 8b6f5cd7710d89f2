import type { Action, Decision, Operation } from "../core/action.ts";
import { type Audited, auditEntry } from "../core/audit.ts";
import {
  approve,
  cancel,
  type Change,
  type Decide,
  type DecisionInput,
  OtherRequest,
  retry,
  sendNow,
  staleDecision,
} from "../core/changes.ts";
import { type HashText, requestDigest } from "../core/dedupe.ts";
import { DomainError, notFound } from "../core/domain-error.ts";
import type { Grant } from "../core/grant.ts";
import { type Judge, judgeAgain, judgeByCounts } from "../core/judge.ts";
import { keyBudget } from "../core/key-limits.ts";
import { DECIDE_TRIES_MAX, HELD_PER_KEY_MAX } from "../core/limits.ts";
import { limitedCreator, decide, mayApproveIt, needsListedCallback, NO_COUNTS, ruleRefusal } from "../core/policy.ts";
import { entryOfDecision, entryOfRequest } from "../core/rejections.ts";
import {
  authorize,
  type Caller,
  isWithdrawal,
  mayDo,
  requireMayChange,
  rolesThatMay,
  unauthorized,
} from "../core/roles.ts";
import { toStoredCount, type RuleCount } from "../core/account-rules.ts";
import { type Decider, NO_FILTER } from "../core/store.ts";
import type { CredentialUse } from "../credentials/use.ts";
import type { GrantService } from "../grants/grants.ts";
import { maskText } from "../receipts/masking.ts";
import { keptRetryAfter } from "../receipts/response-headers.ts";
import type { Enqueue } from "../receipts/enqueue.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { logHeld } from "./held.ts";
import type { Recipients } from "./recipients.ts";

export interface DecisionNeeds {
  readonly enqueue: Enqueue;
  readonly recipients: Pick<Recipients, "boundByRules" | "factsFor">;
  readonly hashText: HashText;
  /**
   * Identifies what a person is shown. It is keyed and differs for each action, since a plain digest would let whoever sees a
   * request masked test guesses of its values, as of a password.
   */
  readonly actionDigest: (action: Action) => string;
  readonly rules: Judge;
  readonly grantService: GrantService;
  readonly credentials: CredentialUse;
}

/** The change that a decision makes, with what it adds to counts of rules; or why it is not allowed. */
type Decided = (Change & { readonly counts?: readonly RuleCount[] }) | DomainError;

/** Computes the change of a decision. It may query the store. */
type Verdict = (action: Action, input: DecisionInput, caller: Caller) => Decided | Promise<Decided>;

/**
 * Approve, cancel, retry and send now: read the action, compute the change, and write it if the revision is still the same;
 * otherwise start again, so that the loser of a race is refused because of what is stored by then. All throw `not_found`.
 * - approve throws `not_approvable` unless the action awaits approval, and `forbidden` if an agent's key passes on its client's
 *   answer for an action that a hold or a rule holds.
 * - cancel throws `not_cancellable` once the action is active or final.
 * - sendNow throws `not_retryable` unless the action is pending with a time ahead; for an agent's key, also if a person has
 *   approved that time or the target asked for it.
 * - retry throws `not_retryable` if the action has another status, another action has taken its `dedupe` key, or an agent's key
 *   comes before the time that the target asked for; and whatever the policy refuses.
 */
export function createDecisions({ clock, bus, metrics, log, store }: AppContext, needs: DecisionNeeds) {
  const { enqueue, recipients, hashText, actionDigest, rules, grantService, credentials } = needs;
  const { accounts, actions, links, rejections, team } = store;

  /**
   * Who must still be allowed to decide in the commit; null: the service itself. Throws if they may not by now. When `isFirst`, a person
   * and a key were just checked.
   */
  const toDecider = async (
    { accountId, personId, keyId, actor, clearsUp }: Caller,
    operation: Operation,
    { id, run }: Action,
    isFirst: boolean,
  ): Promise<Decider | null> => {
    if (clearsUp === true) return null;
    if (personId !== undefined) {
      const roles = rolesThatMay(operation);
      const member = isFirst ? null : await team.member(accountId, personId);
      if (isFirst || (member !== null && roles.includes(member.role))) return { of: "person", personId, roles };
      throw new DomainError("forbidden", "You have left this account, or your role has changed. Nothing was changed.");
    }
    if (keyId !== null) {
      if (!isFirst && (await accounts.findKey(accountId, keyId))?.revokedAt) throw unauthorized();
      return { of: "key", keyId };
    }
    if (!actor.startsWith("email:")) return null;
    const decision = operation === "approve" ? "approve" : "reject";
    const link = await links.find({ actionId: id, run, decision });
    if (link !== null && clock.now() < link.expiresAt) return { of: "link", decision, expiresAt: link.expiresAt };
    throw new DomainError(decision === "approve" ? "not_approvable" : "not_cancellable", "This link has ended.");
  };

  /** The listed callback hosts, if another key created the action and this caller's callbacks must be listed; else null. */
  const callbackHostsFor = async (action: Action, caller: Caller): Promise<readonly string[] | null> => {
    if (action.callback === null) return null;
    const own = limitedCreator(caller);
    const creator = recipients.boundByRules(caller.accountId, own);
    // A caller's own action was checked when it was created, though perhaps before there were rules.
    if ((action.keyId === caller.keyId && creator === own) || !needsListedCallback(creator)) return null;
    const { accountId, callback } = action;
    return (await recipients.factsFor(accountId, creator, { callback, notifyEmail: null })).callbackHosts;
  };

  const countsFor = async (action: Action, { reason, now }: DecisionInput, caller: Caller) => {
    const entry = entryOfRequest(action, { caller, reason }, hashText);
    const budget = keyBudget(caller, now);
    return {
      heldCount: action.approve
        ? await actions.heldTotal(action.accountId, { ...NO_FILTER, keyId: action.keyId }, HELD_PER_KEY_MAX)
        : 0,
      rejections: entry === null ? null : await rejections.count({ ...action, digest: entry.digest }, now),
      isBudgetSpent: budget !== null && !(await actions.hasBudgetLeft(budget)),
    };
  };

  const lastAttemptAt = async ({ accountId, id, run: ofRun }: Action): Promise<Date | undefined> => {
    const entries = await actions.timeline(accountId, id);
    return entries.findLast(({ run, event }) => run === ofRun && event.type === "attempt")?.at;
  };

  /** The change that starts a new run, or sends a waiting one now, if the policy and the action's `dedupe` key allow it. */
  const sendAgain = async (
    operation: "retry" | "sendNow",
    action: Action,
    input: DecisionInput,
    caller: Caller,
  ): Promise<Decided> => {
    const { reason, now } = input;
    const isRetry = operation === "retry";
    const change = isRetry ? retry(action, input) : sendNow(action, input);
    if (change instanceof DomainError) return change;
    const refused = await credentials.refusalToRepeat(caller, action);
    if (refused !== null) return refused;
    const retryAfter = readRetryAfter(action);
    // Only a run that a person approves may wait for its `run_at` again.
    const when = isRetry && action.approve ? { now } : { now, due: now };
    const judgeBy = (beyond?: readonly RuleCount[]) => judgeAgain(rules, action, caller, when, beyond);
    // An action that is sent now was counted when it was created.
    const { ruling, counts } = await (isRetry ? judgeByCounts(judgeBy, (all) => actions.beyondCounts(all)) : judgeBy());
    const decision = decide({
      operation,
      request: action,
      caller,
      callbackHosts: await callbackHostsFor(action, caller),
      retryAfter,
      endedAt: isRetry && retryAfter !== null ? ((await lastAttemptAt(action)) ?? now) : now,
      counts: isRetry ? await countsFor(action, input, caller) : NO_COUNTS,
      ruling,
      added: counts,
      reason,
      now,
    });
    if (decision.kind === "refuse") return decision.error;
    if (!isRetry) return change;
    const hasCounted = counts.length > 0 || action.counted.length > 0;
    const counted = hasCounted ? { after: { ...change.after, counted: counts.map(toStoredCount) } } : {};
    const run = { ...change, ...counted, counts };
    if (action.dedupe === null) return run;
    const holder = await actions.keyHolder(action.accountId, "dedupe", action.dedupe, now);
    if (holder === null || holder.id === action.id) return run;
    return new DomainError(
      "not_retryable",
      `Action ${action.id} cannot be retried: action ${holder.id} now has its dedupe key and is ${holder.status}.`,
    );
  };

  const decisions: Readonly<Record<Operation | "sendNow", Verdict>> = {
    async approve(action, input, caller) {
      if (!mayApproveIt(caller, action)) return beyondElicitation(action);
      if (!mayDo(caller.role, "approve")) {
        // The requester itself asked for approval, and the rules may have become stricter since.
        const { ruling } = await judgeAgain(rules, action, caller, input);
        if (ruling !== null && ruling.effect !== "allow") return ruleRefusal(ruling) ?? beyondElicitation(action);
      }
      return approve(action, { ...input, digest: requestDigest(action, hashText) });
    },
    cancel,
    retry: (action, input, caller) => sendAgain("retry", action, input, caller),
    sendNow: (action, input, caller) => sendAgain("sendNow", action, input, caller),
  };
  const decideOn = (name: Operation | "sendNow"): Decide => {
    // Allowed for the same callers, with the same errors.
    const operation = name === "sendNow" ? "retry" : name;
    return async (caller, id, reason, expected, terms) => {
      authorize(caller, operation);
      for (let tries = 0; tries < DECIDE_TRIES_MAX; tries += 1) {
        const action = await actions.find(caller.accountId, id);
        if (action === null) throw notFound("action");
        requireMayChange(caller, action);
        const now = clock.now();
        const stale = expected === undefined ? null : staleDecision(operation, action, expected);
        if (expected?.digest !== undefined && expected.digest !== actionDigest(action))
          throw stale ?? new OtherRequest(operation, action);
        const { actor, via } = caller;
        const own = { actor, reason, now, isWithdrawal: isWithdrawal(caller) };
        const input = via === undefined ? own : { ...own, via };
        const decided = stale ?? (await decisions[name](action, input, caller));
        if (decided instanceof DomainError) throw decided;
        const { counts = [], ...change } = decided;
        const { after } = change;
        const grant = terms === undefined ? null : await grantService.make(caller, action, terms);
        const decider = await toDecider(caller, operation, action, tries === 0);
        const outbox = enqueue(after, now, change.events);
        const audit = auditEntry(caller, toAudited(name, change, { reason, grant }), now);
        const rejection = name === "sendNow" ? null : entryOfDecision(operation, action, { caller, reason }, hashText);
        // A retry counts as a create; an attempt never does.
        const budget = name === "retry" ? keyBudget(caller, now) : null;
        const counted = budget === null ? {} : { budget };
        if (await actions.apply({ change, at: now, outbox, audit, rejection, grant, counts, decider, ...counted })) {
          if (name !== "sendNow") metrics.decided(operation);
          bus.publish(after);
          if (grant !== null) await grantService.stored(grant.accountId);
          if (after.status === "awaiting_approval") logHeld(log, after);
          return after;
        }
      }
      throw new DomainError("unavailable", `Action ${id} is changing too fast to decide on it; try again.`);
    };
  };
  const decided = {
    approve: decideOn("approve"),
    cancel: decideOn("cancel"),
    retry: decideOn("retry"),
    sendNow: decideOn("sendNow"),
  };
  return {
    ...decided,
    /** Decides on several held requests at once, each on its own, exactly as they were shown. */
    async decideMany(
      caller: Caller,
      { decision, reason }: { readonly decision: Decision; readonly reason: string | null },
      requests: readonly ShownRequest[],
    ) {
      authorize(caller, "approve");
      const verb = decided[decision === "approve" ? "approve" : "cancel"];
      const one = async ({ id, run, digest }: ShownRequest) => {
        try {
          return { id, status: (await verb(caller, id, reason, { run, isHeld: true, digest })).status };
        } catch (error) {
          if (!(error instanceof DomainError)) throw error;
          return { id, error: { code: error.code, message: error.message } };
        }
      };
      // Concurrently, so that they share commits.
      return Promise.all(requests.map(one));
    },
  };
}

/** A held request, as it was shown. */
export interface ShownRequest {
  readonly id: string;
  readonly run: number;
  readonly digest: string;
}

/** Whether a decision was refused because another one came first. */
export function isAlreadyDecided(error: unknown): boolean {
  if (!(error instanceof DomainError) || error instanceof OtherRequest) return false;
  return error.code === "not_approvable" || error.code === "not_cancellable";
}

/** Whether a request ended as the decision asked for, whoever decided. */
export function endedAs(decision: Decision, { status, approvedAt }: Action): boolean {
  return decision === "approve" ? approvedAt !== null : status === "cancelled" && approvedAt === null;
}

function toAudited(
  operation: Operation | "sendNow",
  { after, events }: Change,
  { reason, grant }: { readonly reason: string | null; readonly grant: Grant | null },
): Audited {
  const isRejection = events.some(({ type }) => type === "rejected");
  const kind = isRejection ? "rejected" : AUDITED[operation];
  // A reason may contain secrets.
  const why = reason === null ? {} : { reason: maskText(reason, "public") };
  const granted = grant === null ? {} : { grant: grant.id, calls: grant.calls, until: grant.expiresAt.toISOString() };
  return {
    kind,
    subject: after.id,
    detail: { method: after.method, host: after.host, run: after.run, ...why, ...granted },
  };
}

const AUDITED = { approve: "approved", cancel: "cancelled", retry: "retried", sendNow: "sent_now" } as const;

function beyondElicitation({ id }: Action): DomainError {
  return new DomainError(
    "forbidden",
    `Action ${id} is held by a hold or a rule, or is none that this key may send without approval. A key with the role agent can't approve it, even if its client asked a person; approve it with an owner or approver key, on the pages or by mail.`,
  );
}

/** The `Retry-After` of the last answer; null: it has none. */
export function readRetryAfter({ run, result, lateResult }: Action): string | null {
  const late = lateResult?.run === run ? lateResult.responseHeaders : null;
  return keptRetryAfter(late) ?? keptRetryAfter(result?.responseHeaders ?? null);
}
