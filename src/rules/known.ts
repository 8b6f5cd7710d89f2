import { setImmediate as nextTurn } from "node:timers/promises";
import { policyOfHold, policyOfRuling } from "../core/action-policy.ts";
import type { Action, ActionRequest } from "../core/action.ts";
import type { Clock } from "../core/clock.ts";
import { auditOf } from "../core/audit.ts";
import {
  type Before,
  type Judge,
  type JudgedAt,
  judgeByCounts,
  type Judgement,
  type Judged,
  type Requester,
  requesterOf,
} from "../core/judge.ts";
import { KEYS_LISTED_MAX } from "../core/limits.ts";
import { isHeldBy } from "../core/policy.ts";
import { describeActor, mayDo } from "../core/roles.ts";
import { countName, type RuleCount } from "../core/rule-count.ts";
import type { Store } from "../core/store.ts";
import { isSend } from "../core/timeline.ts";
import type { YieldTurn } from "../runtime/fair-share.ts";
import { factsOf, lazily } from "./facts.ts";
import { type CompiledRule, decideByWalks, RuleList, storedRule, type Walk } from "./rule.ts";

/** No version of the store: what is committed by it is decided again. */
const UNREAD = "unread";

/** That of an account that never had a rule. */
const NO_VERSION = "";

/** A create that began later than this behind a change of the rules is decided by them: its commit has checked that. */
const CREATE_MS_MAX = 60_000;

/** What is sent within this time of its create goes by what its commit has checked, also where other nodes write rules. */
const SENT_AT_ONCE_MS = 1_000;

/** The rules of an account as they were read. */
interface AccountRules {
  readonly version: string;
  /** When this process first knew them. */
  readonly knownSince: Date;
  /** Each by what is stored of it, compiled at its first use: a node has the rules of accounts for which it calls nobody. */
  readonly each: ReadonlyMap<string, () => CompiledRule>;
  readonly all: () => RuleList;
}

export type KnownRules = ReturnType<typeof createKnownRules>;

/**
 * The rules of all accounts in memory, each by its own version: what one account writes has no create of another decided again. Rules
 * that other nodes write are seen by `reload`, which reads only the version while nothing has changed. `hashOf`: a keyed digest.
 */
export function createKnownRules(
  { rules, grants, accounts, actions, cluster }: Pick<Store, "rules" | "grants" | "accounts" | "actions" | "cluster">,
  clock: Pick<Clock, "now">,
  hashOf: (text: string) => string,
) {
  const known = new Map<string, AccountRules>();
  /** Of all accounts, before they were read; null: nothing was read. */
  let versionOfAll: string | null = null;
  /** By account the last read that has begun, and the one that follows it. */
  const readings = new Map<string, { last: Promise<void>; next: Promise<void> | null }>();

  /** Reads the rules of the accounts that have written some: before anything is claimed, and periodically. Rejects when the store is away. */
  async function reload(): Promise<void> {
    // Before the rules: a change behind it is read again the next time.
    const version = await rules.version();
    if (version === versionOfAll) return;
    const versions = await rules.versions();
    for (const accountId of new Set([...versions.keys(), ...known.keys()])) {
      if (versions.get(accountId) === known.get(accountId)?.version) continue;
      await reloadOf(accountId);
      // A file is read in this thread: others get their turn between two accounts.
      await nextTurn();
    }
    versionOfAll = version;
  }

  /** One read after the other, so that none overwrites newer rules. All that wait at once share one that began after they asked. */
  function reloadOf(accountId: string): Promise<void> {
    const reading = readings.get(accountId) ?? { last: Promise.resolve(), next: null };
    readings.set(accountId, reading);
    reading.next ??= reading.last
      .catch(() => {})
      .then(() => {
        reading.next = null;
        reading.last = read(accountId);
        return reading.last;
      });
    return reading.next;
  }

  async function read(accountId: string): Promise<void> {
    const version = await rules.versionOf(accountId);
    if (version === known.get(accountId)?.version) return;
    const rows = await rules.list(accountId);
    // Of hundreds, few are changed at a time.
    const before = known.get(accountId)?.each;
    const each = new Map(
      rows.map((row) => {
        const name = JSON.stringify([row.id, row.version, row.definition]);
        return [name, before?.get(name) ?? lazily(() => storedRule(row))];
      }),
    );
    const all = lazily(() => new RuleList(Array.from(each.values(), (rule) => rule())));
    known.set(accountId, { version, knownSince: clock.now(), each, all });
  }

  /** The rules of an account as this process knows them. */
  function rulesOf(accountId: string): readonly CompiledRule[] {
    return known.get(accountId)?.all().rules ?? [];
  }

  /** Those in force now. Compiling hundreds at once would hold the event loop. */
  async function compiledRules(accountId: string, yieldTurn: YieldTurn): Promise<readonly CompiledRule[]> {
    await reloadOf(accountId);
    for (const rule of known.get(accountId)?.each.values() ?? []) {
      rule();
      await yieldTurn();
    }
    return rulesOf(accountId);
  }

  /** What rules say of a request that is made at that time, with the counts that it has to fit in. */
  function walksFor(
    requester: Requester,
    request: ActionRequest,
    { now, due }: JudgedAt,
    list: RuleList,
  ): readonly Walk[] {
    return list.walks(factsOf(request, requester, now, due), hashOf);
  }

  /** Of the rules in force, or of others. */
  async function requesterFor(
    action: Action,
    asked: readonly CompiledRule[] = rulesOf(action.accountId),
  ): Promise<Requester> {
    const requester = requesterOf(action);
    const { keyId, role } = requester;
    if (keyId === null || role !== "agent" || !asked.some(asksForKeys)) return requester;
    return { ...requester, replaced: new Set(await accounts.replacedBy(keyId)) };
  }

  function judge(
    requester: Requester,
    request: ActionRequest,
    when: JudgedAt,
    beyond: readonly RuleCount[] = [],
  ): Judgement {
    const own = known.get(requester.accountId);
    if (own === undefined) {
      return { ruling: null, counts: [], reached: null, version: versionOfAll === null ? UNREAD : NO_VERSION };
    }
    const names = new Set(beyond.map(countName));
    const decided = decideByWalks(walksFor(requester, request, when, own.all()), (count) =>
      names.has(countName(count)),
    );
    return { ...decided, version: own.version };
  }

  async function judgeAtSend(action: Action, now: Date): Promise<Before | null> {
    const { accountId, createdAt, extras, run } = action;
    const ageMs = now.getTime() - createdAt.getTime();
    const isLate = ageMs > SENT_AT_ONCE_MS;
    if (isLate && cluster !== null) await reloadOf(accountId);
    // What a grant lifted holds again once that was ended.
    const ungranted = isLate && (await isUngranted(action));
    const own = known.get(accountId);
    const knownMs = own === undefined ? 0 : createdAt.getTime() - own.knownSince.getTime();
    // Delayed and older ones are judged again all the same, since rules may be about the time; and further runs, which have counts of their own.
    const wasJudged = knownMs > CREATE_MS_MAX && ageMs < CREATE_MS_MAX && extras.runAt === undefined && run === 1;
    let counts: readonly RuleCount[] = [];
    if (own !== undefined && (!wasJudged || ungranted)) {
      const requester = await requesterFor(action);
      const judgeBy = (beyond?: readonly RuleCount[]) => judge(requester, action, { now, due: now }, beyond);
      let judged: Judged = judgeBy();
      const asks = judged.ruling?.effect === "hold" || uncounted(action, judged.counts).length > 0;
      const isUndecided = asks && (ungranted || !(await isBegun(action)));
      if (isUndecided) {
        judged = await judgeByCounts(judgeBy, (all) => actions.beyondCounts(uncounted(action, all)));
        counts = uncounted(action, judged.counts);
      }
      const { ruling } = judged;
      if (ruling?.effect === "refuse" || (ruling?.effect === "hold" && isUndecided))
        return { effect: ruling.effect, policy: policyOfRuling(ruling) };
    }
    if (ungranted && isHeldBy(action.creator.hold, action)) return { effect: "hold", policy: policyOfHold("key") };
    return counts.length === 0 ? null : { effect: "count", counts };
  }

  /** Whether nothing of a call was sent, and the grant that let it pass was ended. */
  async function isUngranted({ accountId, id, run, attempts, approvedAt, policy }: Action): Promise<boolean> {
    if (policy?.by !== "grant" || policy.id === null || approvedAt !== null || run > 1) return false;
    if (attempts > 1 && (await actions.timeline(accountId, id)).some((entry) => isSend(entry, run))) return false;
    return grants.wasEnded(accountId, policy.id);
  }

  /** Whether somebody who may approve has decided on this run, or something of it was sent. */
  async function isBegun({ accountId, id, run, attempts, approvedAt, policy }: Action): Promise<boolean> {
    if (approvedAt === null && run === 1 && (attempts <= 1 || policy?.by === "grant")) return policy?.by === "grant";
    const timeline = await actions.timeline(accountId, id);
    if (timeline.some((entry) => isSend(entry, run))) return true;
    const begun = timeline.flatMap(({ run: of, event }) => {
      return of === run && (event.type === "approved" || event.type === "retried") ? [event] : [];
    });
    // No person retries who may not approve. What the client of an agent says that its person answered is the agent's.
    if (
      begun.some((event) => event.actor.startsWith("user:") || (event.type === "approved" && event.via === undefined))
    )
      return true;
    const keys = await accounts.keys(accountId, KEYS_LISTED_MAX);
    return begun.some(({ actor }) => {
      const { name } = describeActor(actor);
      const own = keys.filter((key) => key.name === name);
      return own.length > 0 && own.every(({ role }) => mayDo(role, "approve"));
    });
  }

  const judging = {
    judge,
    requesterOf: requesterFor,
    isRuled: (accountId) => rulesOf(accountId).some(limits),
    judgeAtSend,
    reloadOf,
    recordRefusal(caller, { method, host }, { ruling, version }, now) {
      const { id: subject = "", name = "" } = ruling?.rule ?? {};
      const audited = { kind: "refused_by_rule", subject, detail: { method, host, name } } as const;
      return rules.recordRefusal(version, auditOf(caller, audited, now));
    },
  } satisfies Judge;
  return { ...judging, reload, rulesOf, compiledRules, walksFor };
}

/** What a call has not added yet to counts: their rules are new, or are about a time that has come since. */
function uncounted({ counted }: Action, counts: readonly RuleCount[]): readonly RuleCount[] {
  return counts.filter((one) => !counted.some(([ruleId, subject]) => ruleId === one.ruleId && subject === one.subject));
}

/** A loop brake alone doesn't say where calls may go, so that callbacks need no bounds because of it. */
function limits({ counters: [counter, ...more] }: CompiledRule): boolean {
  return more.length > 0 || counter?.same !== "request";
}

/** Whether a rule is about a key and those that replaced it, or counts them as one. */
function asksForKeys({ definition, counters }: CompiledRule): boolean {
  return definition.keys !== undefined || counters.some(({ same }) => same === "key" || same === "request");
}
