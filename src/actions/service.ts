import type { ActionQuery, ActionRows, FilterValues } from "../core/search.ts";
import { createDecisions, type DecisionNeeds } from "../approvals/decide.ts";
import type { Recipients } from "../approvals/recipients.ts";
import { createWait } from "./wait.ts";
import { type Held, logHeld } from "../approvals/held.ts";
import { invalidCreate } from "./create-schema.ts";
import { DomainError, type Issue, notFound } from "../core/domain-error.ts";
import { withPauses } from "../core/pause.ts";
import type { TimelineEntry, TimelineEvent } from "../core/timeline.ts";
import { maskedActor, searchedAs } from "../receipts/masked-action.ts";
import { see } from "../receipts/see.ts";
import {
  type Action,
  ACTION_STATUSES,
  type ActionRequest,
  firstDueAt,
  firstState,
  type LimitedCreator,
} from "../core/action.ts";
import { type PastAttempt, pastAttempts } from "../core/changes.ts";
import { keyBudget } from "../core/key-limits.ts";
import { authorize, type Caller, roleViewer, callerView } from "../core/roles.ts";
import { differs } from "../core/dedupe.ts";
import { COUNTED_MAX, FILTER_VALUES_MAX, LIST_SCAN_ROWS_MAX, RULE_TRIES_MAX } from "../core/limits.ts";
import type { StatusCounts } from "../api/list-schemas.ts";
import {
  limitedCreator,
  creatorOfCopy,
  decide,
  NO_RECIPIENTS,
  createRefusal,
  type PolicyDecision,
  rulesChange,
} from "../core/policy.ts";
import { entryOfRequest } from "../core/rejections.ts";
import type { FindGrant } from "../core/grant.ts";
import { heldBy, type Ruling } from "../core/action-policy.ts";
import { type AuditEntry, auditEntry } from "../core/audit.ts";
import { toStoredCount, type RuleCount } from "../core/account-rules.ts";
import type { Delivery } from "../delivery/delivery.ts";
import type { AppContext } from "../runtime/app-context.ts";

interface ActionNeeds extends DecisionNeeds {
  readonly reserve: Delivery["reserve"];
  readonly recipients: Recipients;
  readonly grants: FindGrant;
  readonly held: Held;
}

interface ActionHistory {
  readonly action: Action;
  /** Oldest first. */
  readonly timeline: readonly TimelineEntry[];
  /** The newest attempts that have ended, oldest first. */
  readonly attempts: readonly PastAttempt[];
}

/** All use cases of actions, for REST, pages and MCP tools. */
export type ActionService = ReturnType<typeof createActionService>;

type ListFilter = Omit<ActionQuery, "accountId">;

export type CountFilter = Omit<ListFilter, "before" | "limit">;

export function createActionService(app: AppContext, needs: ActionNeeds) {
  const { clock, ids, log, metrics, store, bus } = app;
  const { enqueue, reserve, recipients, hashText, rules, grants, credentials, held } = needs;
  const { actions, pauses } = store;

  /** Throws `not_found`, also for actions of other accounts. */
  const get = async (caller: Caller, id: string): Promise<Action> => {
    authorize(caller, "read");
    const action = await actions.find(caller.accountId, id);
    if (action === null) throw notFound("action");
    return action;
  };

  /** One page of the account's actions, newest first. */
  const list = async (caller: Caller, query: ListFilter): Promise<ActionRows> => {
    authorize(caller, "read");
    return actions.list({ ...query, accountId: caller.accountId, seenAs: searchedAs(caller) });
  };

  /** How many actions the list would find, by status. Each status gets an equal part of the bound. */
  const counts = async (caller: Caller, query: CountFilter): Promise<StatusCounts> => {
    authorize(caller, "read");
    const statuses = query.statuses.length === 0 ? ACTION_STATUSES : [...new Set(query.statuses)];
    const rowsMax = Math.floor(LIST_SCAN_ROWS_MAX / statuses.length);
    const own = { ...query, accountId: caller.accountId, seenAs: searchedAs(caller) };
    const counted = [];
    // One after another: each step of a count blocks the event loop for a moment.
    for (const status of statuses) {
      const asked = { ...own, statuses: [status], before: null, limit: COUNTED_MAX };
      counted.push({ status, ...(await actions.count(asked, rowsMax)) });
    }
    const ends = counted.flatMap(({ searchedUntil }) => searchedUntil?.getTime() ?? []);
    return { counts: counted, countedUntil: ends.length === 0 ? null : new Date(Math.max(...ends)) };
  };

  /** Hosts and keys by which a list can be filtered, as many as there is room for. */
  const filterValues = async (caller: Caller): Promise<FilterValues> => {
    authorize(caller, "read");
    const { hosts, creators } = await actions.filterValues(caller.accountId, FILTER_VALUES_MAX);
    const viewer = roleViewer(caller.role);
    return {
      hosts,
      creators: creators.map(({ keyId, createdBy }) => ({ keyId, createdBy: maskedActor(createdBy, viewer) })),
    };
  };

  /** The timeline of one action, oldest first, with the pauses that kept it from being sent. Throws `not_found`. */
  const timeline = async (caller: Caller, id: string): Promise<readonly TimelineEntry[]> => {
    authorize(caller, "read");
    const [entries, covering] = await Promise.all([
      actions.timeline(caller.accountId, id),
      pauses.ofAction(caller.accountId, id),
    ]);
    // Every action has the row of its creation.
    if (entries.length === 0) throw notFound("action");
    return withPauses(entries, covering);
  };

  /** One action with its timeline and what came back of its newest attempts. Throws `not_found`. */
  const history = async (caller: Caller, id: string): Promise<ActionHistory> => {
    // In this order, no attempt can get another's response, whatever is written in between.
    const entries = await timeline(caller, id);
    const kept = await actions.responses(caller.accountId, id);
    const action = await get(caller, id);
    return { action, timeline: entries, attempts: pastAttempts(action, entries, kept) };
  };

  /** The action that the keys of a request name. */
  const findOlder = async (
    { accountId }: Caller,
    { idempotencyKey, dedupe }: ActionRequest,
  ): Promise<Action | null> => {
    const now = clock.now();
    const named = [["idempotency", idempotencyKey] as const, ["dedupe", dedupe] as const];
    for (const [kind, key] of named) {
      const holder = key === null ? null : await actions.keyHolder(accountId, kind, key, now);
      const found = holder === null ? null : await actions.find(accountId, holder.id);
      if (found !== null) return found;
    }
    return null;
  };

  /** The request with the credential that it names, or its host's. Throws what `CredentialUse.withCredential` throws. */
  const withCredential = async (caller: Caller, request: ActionRequest, name: string | null) => {
    try {
      return await credentials.withCredential(caller, request, name);
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      // A repeat is answered with the older action, even if the credential has changed: nothing new is sent.
      const same = (await findOlder(caller, request))?.extras.credential;
      if (same === undefined || same.name !== name) throw error;
      return { ...request, extras: { ...request.extras, credential: same } };
    }
  };

  /** What the policy decides a create by, as it is now, without what commits have refused so far. */
  const judge = async (caller: Caller, request: ActionRequest, made: MadeBy, { beyond, usedUp }: RefusedSoFar) => {
    const judgement = await rules.judge(caller, request, { now: clock.now() }, beyond);
    const granted = made.isCopy ? null : await grants.find(caller, request, usedUp);
    const creator = recipients.boundByRules(caller.accountId, made.creator);
    // Most requests have neither callback nor address, so they need not wait here.
    const namesNobody = request.callback === null && request.notifyEmail === null;
    const named = namesNobody ? NO_RECIPIENTS : await recipients.factsFor(caller.accountId, creator, request);
    const { sync } = made;
    const { ruling } = judgement;
    const grant = granted?.grant ?? null;
    const facts = { operation: "create", request, caller, creator, recipients: named, sync, ruling, grant } as const;
    return { facts, judgement, grantUse: granted?.use ?? null };
  };

  /** Commits the action. The commit checks that the facts of the decision still hold. */
  const commit = async (
    { facts, judgement, grantUse }: Awaited<ReturnType<typeof judge>>,
    { kind, policy }: Exclude<PolicyDecision, { kind: "refuse" }>,
    reason: string | null,
  ) => {
    const { request, caller, creator, ruling } = facts;
    const { counts: ruleCounts, reached, version: rulesVersion } = judgement;
    const now = clock.now();
    const approve = kind === "hold";
    const action: Action = {
      ...request,
      ...firstState(approve, now, firstDueAt(request, now)),
      approve,
      id: ids.action(now),
      accountId: caller.accountId,
      revision: 1,
      createdAt: now,
      createdBy: caller.actor,
      keyId: caller.keyId ?? "",
      creator: { role: creator.role, hold: creator.hold },
      policy,
      counted: ruleCounts.map(toStoredCount),
    };
    // The commit applies a refusal by a rule, since the request may match an older action.
    const isRefused = ruling?.effect === "refuse";
    const isDue = action.dueAt !== null && action.dueAt <= now;
    const reservation = isDue && !isRefused ? await reserve(action) : null;
    const events = firstEvents(action, reason);
    const budget = keyBudget(caller, now);
    const creation = {
      action,
      events,
      outbox: enqueue(action, now, events),
      claim: reservation?.claim ?? null,
      rejection: entryOfRequest(action, { caller, reason }, hashText),
      ...(budget === null ? {} : { budget }),
      rulesVersion,
      grant: policy?.by === "grant" ? grantUse : null,
      ...(isRefused ? { isRefused } : {}),
      counts: ruleCounts,
      beyond: approve && reached ? { count: reached, audit: beyondEntry(caller, request, ruling, now) } : null,
    };
    const result = await actions.create(creation).catch((error: unknown) => {
      reservation?.fail();
      throw error;
    });
    if (result.kind !== "created") {
      reservation?.release();
      return { result, action };
    }
    const { claimed, policy: policyAtUse = policy } = result;
    const created = policyAtUse === policy ? action : { ...action, policy: policyAtUse };
    if (claimed === null) reservation?.release();
    bus.publish(created);
    if (claimed !== null) reservation?.commit(claimed);
    if (approve) logHeld(log, created);
    return { result, action: created };
  };

  /**
   * Stores a validated request as an action that is due or awaits approval, or finds the action with the same `dedupe` or
   * idempotency key. The action is durable when this resolves. If a delivery slot is free, the same commit claims the action,
   * which saves a commit before sending; the answer still shows it as it was created. Throws
   * - `invalid_sync`: the caller waits for its end, and the key has it held,
   * - `invalid_url` or `validation_error`: the creator may not name this callback or address,
   * - `invalid_request` or `forbidden`: a person rejected the same request within 24 hours, and the reason is missing or it
   *   was requested again too often,
   * - `too_many_held`: too many actions of the key await approval,
   * - `validation_error`: one of its keys names an action that can't be read, or it is too late for a new action,
   * - `validation_error` or `forbidden`: its credential: see `CredentialUse.withCredential`,
   * - `forbidden`: a limit of the key: its hosts, its methods, or how many creates it has a day; or a rule of the account,
   * - `unavailable`: the rules of the account were changed again and again meanwhile.
   */
  const create = async (caller: Caller, given: ActionRequest, options: CreateOptions = {}): Promise<CreateAnswer> => {
    authorize(caller, "create");
    const { credential = null, original, reason = null, sync = false, overdue = null } = options;
    if (overdue !== null && (await findOlder(caller, given)) === null)
      throw invalidCreate("validation_error", [overdue]);
    // A copy without a credential stays without one: its person has not seen the host's default.
    const isPlainCopy = credential === null && original !== undefined;
    const request = isPlainCopy ? given : await withCredential(caller, given, credential);
    // A person makes a copy, so it has no key. The restrictions of the original's creator still apply.
    const creator =
      original === undefined ? limitedCreator(caller) : creatorOfCopy(await recipients.findCreator(original));
    const made = { creator, isCopy: original !== undefined, sync };
    const soFar = { beyond: new Array<RuleCount>(), usedUp: new Set<string>() };
    for (let tries = 1; ; tries += 1) {
      const judged = await judge(caller, request, made, soFar);
      const decision = decide(judged.facts);
      if (decision.kind === "refuse") throw decision.error;
      const { result, action } = await commit(judged, decision, reason);

      if (result.kind === "created") {
        metrics.created("created");
        return { action };
      }
      if (result.kind === "matched") {
        metrics.created("matched");
        return { action: result.action, differs: await differencesFor(caller, result.action, action) };
      }
      if (result.kind === "beyond") {
        // The next judgement leaves these out of its counts, so that this ends.
        soFar.beyond.push(...result.counts);
        continue;
      }
      const { facts, judgement } = judged;
      if (result.kind === "grant_over" && facts.grant !== null) {
        soFar.usedUp.add(facts.grant.id);
        continue;
      }
      const { createdAt: at } = action;
      // A refusal by a rule is recorded, unless rules were written since.
      const hasNewRules =
        result.kind === "refused"
          ? !(await rules.recordRefusal(caller, request, judgement, at))
          : result.kind === "rules_changed";
      if (!hasNewRules)
        throw createRefusal(result, facts, at) ?? new Error(`The store refused a create: ${result.kind}.`);
      if (tries >= RULE_TRIES_MAX) throw rulesChange();
      await rules.reloadAccount(caller.accountId);
    }
  };

  return {
    create,
    get,
    timeline,
    history,
    list,
    counts,
    filterValues,
    wait: createWait(app),
    /** `approve`, `cancel`, `retry`, `sendNow` and `decideMany`. */
    ...createDecisions(app, needs),
    /** Identifies what an approver is shown, for a decision on exactly that. */
    actionDigest: needs.actionDigest,
    /** `held`, `heldAmong` and `readHistory`. */
    ...held,
  };
}

/** Who makes a request, and how. */
interface MadeBy {
  readonly creator: LimitedCreator;
  readonly isCopy: boolean;
  readonly sync: boolean;
}

/** What commits of a create have refused so far: counts that it exceeds, and grants that are used up. */
interface RefusedSoFar {
  readonly beyond: RuleCount[];
  readonly usedUp: Set<string>;
}

interface CreateOptions {
  /** Why the call is requested; shown in the timeline and to approvers. */
  readonly reason?: string | null;
  /** The caller waits for the end of the action. */
  readonly sync?: boolean;
  /** The name of the credential that it is sent with. */
  readonly credential?: string | null;
  /** See `CheckedCreate`. */
  readonly overdue?: Issue | null;
  /** The action that a person copies. The restrictions of its creator still apply. */
  readonly original?: Action;
}

/** The new action; with `differs`, the older one that its key names. */
interface CreateAnswer {
  readonly action: Action;
  readonly differs?: readonly string[];
}

/**
 * The fields in which the request differs from the older action. If the caller sees that one masked, masked values are
 * compared: with the real ones, the caller could guess secrets by trial.
 */
async function differencesFor(caller: Caller, stored: Action, requested: Action): Promise<readonly string[]> {
  if (callerView(caller, stored) === "whole") return differs(stored, requested);
  const [older, newer] = await Promise.all([see(stored, "public"), see(requested, "public")]);
  return differs(older, newer);
}

/** The audit entry that a rule with `sum` or `more_than` began to hold calls: one for each count and window. */
function beyondEntry(caller: Caller, { method, host }: ActionRequest, ruling: Ruling | null, now: Date): AuditEntry {
  const { id: subject = "", name = "" } = ruling?.rule ?? {};
  return auditEntry(caller, { kind: "beyond_rule", subject, detail: { method, host, name } }, now);
}

function firstEvents(action: Action, reason: string | null): readonly TimelineEvent[] {
  const created: TimelineEvent = { type: "created", actor: action.createdBy, ...(reason === null ? {} : { reason }) };
  return action.approve ? [created, { type: "held", ...heldBy(action.policy) }] : [created];
}

export type ListNotifications = ReturnType<typeof createListNotifications>;

/** The callbacks and mails of the caller's account, newest first, with the state of each; for owners. */
export function createListNotifications({ store: { outbox } }: AppContext) {
  return async (caller: Caller, before: string | null, limit: number) => {
    authorize(caller, "manage");
    const found = await outbox.list(caller.accountId, before, limit + 1);
    const entries = found.slice(0, limit);
    // `before`: where the next page begins; null when there is none.
    return { entries, before: found.length > limit ? (entries.at(-1)?.id ?? null) : null };
  };
}
