import { setImmediate as nextTurn } from "node:timers/promises";
import type { AccountStore } from "../core/account-store.ts";
import type { RuleRow, RuleStore } from "../core/account-rules.ts";
import type { Ruling } from "../core/action-policy.ts";
import type { Action, ActionRequest } from "../core/action.ts";
import type { Clock } from "../core/clock.ts";
import { auditOf } from "../core/audit.ts";
import { type Judge, type Judgement, type Requester, requesterOf } from "../core/judge.ts";
import type { Caller } from "../core/roles.ts";
import type { RuleCount } from "../core/rule-count.ts";
import { factsOf } from "./facts.ts";
import { beyond as beyondText, comparedBy } from "./counting.ts";
import { askRules, decideByWalks, type CompiledRule, type RuleDecision, storedRule, type Walk } from "./rule.ts";

/** No version of the store: what is committed by it is decided again. */
const UNREAD = "unread";

/** That of an account that never had a rule. */
const NO_VERSION = "";

/** A create that began later than this behind a change of the rules is decided by them: its commit has checked that. */
const CREATE_MS_MAX = 60_000;

/** The rules of an account as they were read. */
class AccountRules {
  readonly version: string;
  /** When this process first knew them. */
  readonly knownSince: Date;
  readonly #rows: readonly RuleRow[];
  #compiled: readonly CompiledRule[] | null = null;

  constructor(version: string, rows: readonly RuleRow[], knownSince: Date) {
    this.version = version;
    this.#rows = rows;
    this.knownSince = knownSince;
  }

  /** Compiled at its first use: a node has the rules of accounts for which it calls nobody. */
  get rules(): readonly CompiledRule[] {
    this.#compiled ??= this.#rows.map(({ id, version, definition }) => storedRule(definition, id, version));
    return this.#compiled;
  }

  /** See `Judgement`. */
  get isRuled(): boolean {
    return this.rules.some(limits);
  }
}

/**
 * The rules of all accounts in memory, each by its own version: what one account writes has no create of another decided again. Rules
 * that other nodes write are seen by `reload`, which reads only the version while nothing has changed.
 */
export class KnownRules implements Judge {
  readonly #store: RuleStore;
  readonly #clock: Pick<Clock, "now">;
  readonly #hashOf: (text: string) => string;
  readonly #replacedBy: AccountStore["replacedBy"];
  readonly #accounts = new Map<string, AccountRules>();
  /** Of all accounts, before they were read; null: nothing was read. */
  #version: string | null = null;
  /** The last read of each account that is being read. */
  readonly #reads = new Map<string, Promise<void>>();

  /** `hashOf`: a keyed digest. */
  constructor(
    store: RuleStore,
    clock: Pick<Clock, "now">,
    hashOf: (text: string) => string,
    { replacedBy }: Pick<AccountStore, "replacedBy">,
  ) {
    this.#store = store;
    this.#clock = clock;
    this.#hashOf = hashOf;
    this.#replacedBy = replacedBy;
  }

  /** Reads the rules of the accounts that have written some: before anything is claimed, and periodically. Rejects when the store is away. */
  async reload(): Promise<void> {
    // Before the rules: a change behind it is read again the next time.
    const version = await this.#store.version();
    if (version === this.#version) return;
    const versions = await this.#store.versions();
    const accountIds = new Set([...versions.keys(), ...this.#accounts.keys()]);
    for (const accountId of accountIds) {
      if (versions.get(accountId) === this.#accounts.get(accountId)?.version) continue;
      await this.reloadOf(accountId);
      // A file is read in this thread: others get their turn between two accounts.
      await nextTurn();
    }
    this.#version = version;
  }

  async reloadOf(accountId: string): Promise<void> {
    const read = this.#readAfter(this.#reads.get(accountId), accountId);
    this.#reads.set(accountId, read);
    try {
      await read;
    } finally {
      if (this.#reads.get(accountId) === read) this.#reads.delete(accountId);
    }
  }

  /** One read after the other, so that none overwrites newer rules; those behind a change find that they are known by then. */
  async #readAfter(last: Promise<void> | undefined, accountId: string): Promise<void> {
    await last?.catch(() => {});
    const version = await this.#store.versionOf(accountId);
    if (version === this.#accounts.get(accountId)?.version) return;
    const rows = await this.#store.list(accountId);
    this.#accounts.set(accountId, new AccountRules(version, rows, this.#clock.now()));
  }

  readonly judge = (
    requester: Requester,
    request: ActionRequest,
    now: Date,
    beyond: readonly RuleCount[] = [],
  ): Judgement => {
    const known = this.#accounts.get(requester.accountId);
    if (known === undefined) {
      const version = this.#version === null ? UNREAD : NO_VERSION;
      return { ruling: null, counts: [], reached: null, version, isRuled: false };
    }
    const isBeyond = ({ ruleId, subject }: RuleCount) =>
      beyond.some((one) => one.ruleId === ruleId && one.subject === subject);
    const { decision, counts } = decideByWalks(walksFor(known.rules, requester, request, now, this.#hashOf), isBeyond);
    const ruling = decision === null ? null : rulingOf(decision);
    return { ruling, counts, reached: decision?.beyond?.count ?? null, version: known.version, isRuled: known.isRuled };
  };

  /** The rules of an account as this process knows them. */
  rulesOf(accountId: string): readonly CompiledRule[] {
    return this.#accounts.get(accountId)?.rules ?? [];
  }

  /** What rules, or those in force, say of a request, with the counts that it has to fit in. */
  walksFor(
    requester: Requester,
    request: ActionRequest,
    now: Date,
    rules: readonly CompiledRule[] = this.rulesOf(requester.accountId),
  ): readonly Walk[] {
    return walksFor(rules, requester, request, now, this.#hashOf);
  }

  readonly judgeAtSend = async (action: Action, now: Date): Promise<Ruling | null> => {
    const known = this.#accounts.get(action.accountId);
    if (known === undefined || action.createdAt.getTime() - known.knownSince.getTime() > CREATE_MS_MAX) return null;
    return this.judge(await this.requesterOf(action), action, now).ruling;
  };

  /** Of the rules in force, or of others. */
  async requesterOf(
    action: Action,
    rules: readonly CompiledRule[] = this.rulesOf(action.accountId),
  ): Promise<Requester> {
    const requester = requesterOf(action);
    const { keyId, role } = requester;
    if (keyId === null || role !== "agent" || !rules.some(asksForKeys)) return requester;
    return { ...requester, replaced: new Set(await this.#replacedBy(keyId)) };
  }

  recordRefusal(
    caller: Caller,
    { method, host }: ActionRequest,
    { ruling, version }: Judgement,
    now: Date,
  ): Promise<boolean> {
    const { id: subject = "", name = "" } = ruling?.rule ?? {};
    const detail = { method, host, name };
    return this.#store.recordRefusal(version, auditOf(caller, { kind: "refused_by_rule", subject, detail }, now));
  }
}

/** A loop brake alone doesn't say where calls may go, so that callbacks need no bounds because of it. */
function limits({ counters: [counter, ...more] }: CompiledRule): boolean {
  return more.length > 0 || counter?.kind !== "calls" || counter.same !== "request";
}

/** Whether a rule is about a key and those that replaced it, or counts them as one. */
function asksForKeys({ keys, counters }: CompiledRule): boolean {
  return keys !== null || counters.some(({ same }) => same === "key" || same === "request");
}

/** What rules say of a request that is made at that time. */
export function walksFor(
  rules: readonly CompiledRule[],
  { keyId, keyName, role, replaced }: Requester,
  request: ActionRequest,
  now: Date,
  hashOf: (text: string) => string,
): readonly Walk[] {
  const key = keyId === null ? null : { id: keyId, name: keyName, role, replaced };
  return askRules(rules, factsOf(request, key, now), hashOf);
}

/** What agents are told of a decision: the words of an owner, and what the rule compares only where it says so. */
export function rulingOf({ rule, effect, undecidable, beyond }: RuleDecision): Ruling {
  const { id, name, version, message, explain, when } = rule;
  const compared = [
    ...(when === null ? [] : [`It compares ${when.text}`]),
    ...(beyond === null ? [] : [comparedBy(beyond.counter)]),
  ];
  const goesBeyond = beyond === null ? null : beyondText(beyond.counter);
  const said = [undecidable, goesBeyond, message, ...(explain ? compared : [])].filter((text) => text !== null);
  const reason =
    said.length === 0 ? null : said.map((text, at) => (at + 1 < said.length ? ended(text) : text)).join(" ");
  return { effect, rule: { id, name, version }, reason, isUndecidable: undecidable !== null };
}

/** A sentence that another one can follow: owners write messages without a full stop, too. */
function ended(text: string): string {
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}
