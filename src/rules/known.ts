import { setImmediate as nextTurn } from "node:timers/promises";
import { policyOfHold, policyOfRuling } from "../core/action-policy.ts";
import type { Action, ActionRequest } from "../core/action.ts";
import type { Clock } from "../core/clock.ts";
import { auditEntry } from "../core/audit.ts";
import {
  type RulingAtSend,
  type Judge,
  type JudgedAt,
  judgeByCounts,
  type Judgement,
  type Judged,
  type Requester,
  toRequester,
} from "../core/judge.ts";
import { KEYS_LISTED_MAX } from "../core/limits.ts";
import { isHeldBy } from "../core/policy.ts";
import { describeActor, mayDo } from "../core/roles.ts";
import { countName, type RuleCount, type RuleRow } from "../core/account-rules.ts";
import type { Store } from "../core/store.ts";
import { isSend } from "../core/timeline.ts";
import { createTurnShare } from "../runtime/fair-share.ts";
import { requestFacts, lazily } from "./facts.ts";
import { type CompiledRule, decideByWalks, CompiledRules, storedRule, type Walk } from "./rule.ts";

/** The version while the rules are not read yet. It is none of the store's, so that the commit decides again. */
const UNREAD = "unread";

/** The version for an account that never had a rule. */
const NO_VERSION = "";

/** A create that began more than this after a change of the rules has been judged by them: its commit has checked that. */
const CREATE_MS_MAX = 60_000;

/** A call sent within this time of its create needs no new read of rules that other nodes write: its commit has checked them. */
const SENT_AT_ONCE_MS = 1_000;

/** The rules of an account as they were read. */
interface AccountRules {
  readonly version: string;
  /** When this process first knew them. */
  readonly knownSince: Date;
  /** By id. */
  readonly each: ReadonlyMap<string, KnownRule>;
  readonly all: () => CompiledRules;
  isCompiled: boolean;
}

interface KnownRule extends Pick<RuleRow, "version" | "definition"> {
  /** Compiles it at the first use: a node also has the rules of accounts for which it sends nothing. */
  readonly compiled: () => CompiledRule;
}

// Not closures of `read`: what a rule that is kept refers to would keep all rules that were read before it.
const knownRule = (row: RuleRow): KnownRule => ({
  version: row.version,
  definition: row.definition,
  compiled: lazily(() => storedRule(row)),
});

const listRules = (each: AccountRules["each"]) =>
  lazily(() => new CompiledRules(Array.from(each.values(), ({ compiled }) => compiled())));

export type KnownRules = ReturnType<typeof createKnownRules>;

/**
 * The rules of all accounts in memory, with a version for each account, so that a change in one account makes no create of another
 * decide again. `reload` reads rules that other nodes write; while nothing changes, it reads only a version. `hashText`: a keyed digest.
 */
export function createKnownRules(
  { rules, grants, accounts, actions, cluster }: Pick<Store, "rules" | "grants" | "accounts" | "actions" | "cluster">,
  clock: Pick<Clock, "now" | "monotonicMs">,
  hashText: (text: string) => string,
) {
  const known = new Map<string, AccountRules>();
  const shareTurn = createTurnShare(clock);
  /** The version of all rules just before they were last read; null: they have not been read. */
  let versionOfAll: string | null = null;
  /** For each account, the last read that has begun, and the one that will follow it. */
  const readings = new Map<string, { last: Promise<void>; next: Promise<void> | null }>();

  /** Reads the rules that have changed: before anything is claimed, and at intervals. Rejects when the store is unavailable. */
  async function reload(): Promise<void> {
    // Read the version before the rules: the next call reads a change in between again.
    const version = await rules.version();
    if (version === versionOfAll) return;
    const versions = await rules.versions();
    for (const accountId of new Set([...versions.keys(), ...known.keys()])) {
      if (versions.get(accountId) === known.get(accountId)?.version) continue;
      await reloadAccount(accountId);
      // A database file is read in this thread, so let other work run between two accounts.
      await nextTurn();
    }
    versionOfAll = version;
  }

  /** Reads one account's rules, one read at a time, so that none overwrites newer rules. Waiting callers share the next read. */
  function reloadAccount(accountId: string): Promise<void> {
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
    const version = await rules.findVersion(accountId);
    if (version === known.get(accountId)?.version) return;
    const rows = await rules.list(accountId);
    // Keep what is compiled: of hundreds of rules, few change at a time.
    const before = known.get(accountId)?.each;
    const each = new Map(
      rows.map((row) => {
        const one = before?.get(row.id);
        const isSame = one?.version === row.version && one.definition === row.definition;
        return [row.id, isSame ? one : knownRule(row)];
      }),
    );
    known.set(accountId, { version, knownSince: clock.now(), each, all: listRules(each), isCompiled: false });
  }

  /** The rules of an account as this process knows them. */
  function knownRules(accountId: string): readonly CompiledRule[] {
    return known.get(accountId)?.all().rules ?? [];
  }

  /** Compiles rules with pauses, since compiling hundreds at once would block the event loop. */
  async function compile(accountId: string, own: AccountRules): Promise<void> {
    if (own.isCompiled) return;
    for (const { compiled } of own.each.values()) await shareTurn(accountId, compiled);
    own.isCompiled = true;
  }

  /** The rules in force. */
  async function compiledRules(accountId: string): Promise<readonly CompiledRule[]> {
    await reloadAccount(accountId);
    const own = known.get(accountId);
    if (own !== undefined) await compile(accountId, own);
    return knownRules(accountId);
  }

  /** What these rules say about a request at that time, with the counts that it must fit in. Yields, since a rule may take long. */
  async function walksFor(
    requester: Requester,
    request: ActionRequest,
    { now, due }: JudgedAt,
    list: CompiledRules,
  ): Promise<readonly Walk[]> {
    const steps = list.walks(requestFacts(request, requester, now, due), hashText);
    for (;;) {
      const step = await shareTurn(requester.accountId, () => steps.next());
      if (step.done === true) return step.value;
    }
  }

  /** Who requested an action, with the keys that its key replaced if one of the rules asks for them. */
  async function requesterFor(
    action: Action,
    asked: readonly CompiledRule[] = knownRules(action.accountId),
  ): Promise<Requester> {
    const requester = toRequester(action);
    const { keyId, role } = requester;
    if (keyId === null || role !== "agent" || !asked.some(asksForKeys)) return requester;
    return { ...requester, replaced: new Set(await accounts.replacedBy(keyId)) };
  }

  async function judge(
    requester: Requester,
    request: ActionRequest,
    when: JudgedAt,
    beyond: readonly RuleCount[] = [],
  ): Promise<Judgement> {
    const own = known.get(requester.accountId);
    if (own === undefined) {
      return { ruling: null, counts: [], reached: null, version: versionOfAll === null ? UNREAD : NO_VERSION };
    }
    const names = new Set(beyond.map(countName));
    await compile(requester.accountId, own);
    const walks = await walksFor(requester, request, when, own.all());
    return { ...decideByWalks(walks, (count) => names.has(countName(count))), version: own.version };
  }

  async function judgeAtSend(action: Action, now: Date): Promise<RulingAtSend | null> {
    const isLate = !isSentAtOnce(action, now);
    if (isLate && cluster !== null) await reloadAccount(action.accountId);
    // A hold that a grant lifted holds again once the grant was ended.
    const ungranted = await isUngranted(action);
    const before = ungranted || !wasJudged(action, isLate) ? await judgeAgain(action, now, ungranted) : null;
    const isStopped = before !== null && before.effect !== "count";
    if (!isStopped && ungranted && isHeldBy(action.creator.hold, action)) {
      return { effect: "hold", policy: policyOfHold("key") };
    }
    return before;
  }

  /**
   * Whether the create has judged a call that is sent at once by the rules in force. Delayed and older calls are judged again, since
   * rules may depend on the time; so are later runs, which count anew.
   */
  function wasJudged({ accountId, createdAt, extras, run }: Action, isLate: boolean): boolean {
    const own = known.get(accountId);
    // Without rules there is nothing to judge.
    if (own === undefined) return true;
    const isKnown = createdAt.getTime() - own.knownSince.getTime() > CREATE_MS_MAX;
    return isKnown && !isLate && extras.runAt === undefined && run === 1;
  }

  /** What the rules in force say before a send. Once somebody has decided on the call, they can only refuse it. */
  async function judgeAgain(action: Action, now: Date, ungranted: boolean): Promise<RulingAtSend | null> {
    const own = known.get(action.accountId);
    if (own !== undefined) await compile(action.accountId, own);
    const requester = await requesterFor(action);
    const judgeBy = (beyond?: readonly RuleCount[]) => judge(requester, action, { now, due: now }, beyond);
    let judged: Judged = await judgeBy();
    const asks = judged.ruling?.effect === "hold" || uncounted(action, judged.counts).length > 0;
    const isDecided = !asks || (!ungranted && (await isReleased(action)));
    if (!isDecided) {
      judged = await judgeByCounts(judgeBy, (all) => actions.beyondCounts(uncounted(action, all)));
    }
    const { ruling } = judged;
    if (ruling?.effect === "refuse" || (ruling?.effect === "hold" && !isDecided)) {
      return { effect: ruling.effect, policy: policyOfRuling(ruling) };
    }
    const counts = isDecided ? [] : uncounted(action, judged.counts);
    return counts.length === 0 ? null : { effect: "count", counts };
  }

  /** Whether a call was not sent yet, and the grant that let it pass was ended. */
  async function isUngranted({ accountId, id, run, attempts, approvedAt, policy }: Action): Promise<boolean> {
    if (policy?.by !== "grant" || policy.id === null || approvedAt !== null || run > 1) return false;
    if (attempts > 1 && (await actions.timeline(accountId, id)).some((entry) => isSend(entry, run))) return false;
    return grants.wasEnded(accountId, policy.id);
  }

  /** Whether somebody who may approve has released this run, a grant did, or it was sent already. */
  async function isReleased({ accountId, id, run, attempts, approvedAt, policy }: Action): Promise<boolean> {
    if (approvedAt === null && run === 1 && (attempts <= 1 || policy?.by === "grant")) return policy?.by === "grant";
    const timeline = await actions.timeline(accountId, id);
    if (timeline.some((entry) => isSend(entry, run))) return true;
    const releases = timeline.flatMap(({ run: of, event }) => {
      return of === run && (event.type === "approved" || event.type === "retried") ? [event] : [];
    });
    // Only people who may approve can retry. An answer that an agent's client passes on counts as the agent's.
    if (
      releases.some(
        (event) => event.actor.startsWith("user:") || (event.type === "approved" && event.via === undefined),
      )
    )
      return true;
    const keys = await accounts.keys(accountId, KEYS_LISTED_MAX);
    return releases.some(({ actor }) => {
      const { name } = describeActor(actor);
      const own = keys.filter((key) => key.name === name);
      return own.length > 0 && own.every(({ role }) => mayDo(role, "approve"));
    });
  }

  const judging = {
    judge,
    findRequester: requesterFor,
    isRuled: (accountId) => knownRules(accountId).some(limitsCalls),
    judgeAtSend,
    reloadAccount,
    recordRefusal(caller, { method, host }, { ruling, version }, now) {
      const { id: subject = "", name = "" } = ruling?.rule ?? {};
      const audited = { kind: "refused_by_rule", subject, detail: { method, host, name } } as const;
      return rules.recordRefusal(version, auditEntry(caller, audited, now));
    },
  } satisfies Judge;
  return { ...judging, reload, knownRules, compiledRules, walksFor };
}

/**
 * Whether this is the first attempt of an action that was just created. If the clock was set back since, it is unknown when it was;
 * another node's clock may be a little ahead.
 */
function isSentAtOnce({ createdAt, attempts }: Pick<Action, "createdAt" | "attempts">, now: Date): boolean {
  return attempts <= 1 && Math.abs(now.getTime() - createdAt.getTime()) <= SENT_AT_ONCE_MS;
}

/** The counts to which a call was not added yet, because their rules are new or depend on the time. */
function uncounted({ counted }: Action, counts: readonly RuleCount[]): readonly RuleCount[] {
  return counts.filter((one) => !counted.some(([ruleId, subject]) => ruleId === one.ruleId && subject === one.subject));
}

/** Whether a rule limits where calls may go. A loop brake alone doesn't, so callbacks need no bounds because of it. */
function limitsCalls({ counters: [counter, ...more] }: CompiledRule): boolean {
  return more.length > 0 || counter?.same !== "request";
}

/** Whether a rule names keys, or counts a key together with those that it replaced. */
function asksForKeys({ definition, counters }: CompiledRule): boolean {
  return definition.keys !== undefined || counters.some(({ same }) => same === "key" || same === "request");
}
