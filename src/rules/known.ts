import { AccountCache } from "../core/account-settings.ts";
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
import { askRules, decideByWalks, type Rule, type RuleDecision, storedRule, type Walk } from "./rule.ts";

/** No version of the store: what is committed by it is decided again. */
const UNREAD = "unread";

/** A create that began later than this behind a change of the rules is decided by them: its commit has checked that. */
const CREATE_MS_MAX = 60_000;

/** The rules of an account, compiled. */
interface AccountRules {
  readonly rules: readonly Rule[];
  /** See `Judgement`. */
  readonly isRuled: boolean;
}

/** The rules of all accounts. */
export class KnownRules extends AccountCache<RuleRow, AccountRules> implements Judge {
  readonly #store: RuleStore;
  readonly #clock: Pick<Clock, "now">;
  readonly #hashOf: (text: string) => string;
  readonly #replacedBy: AccountStore["replacedBy"];
  /** When this process first knew the rules that it knows now. */
  #knownSince = new Date(0);

  /** `hashOf`: a keyed digest. */
  constructor(
    store: RuleStore,
    clock: Pick<Clock, "now">,
    hashOf: (text: string) => string,
    { replacedBy }: Pick<AccountStore, "replacedBy">,
  ) {
    super(store, (rows) => {
      const rules = rows.map(({ id, version, definition }) => storedRule(definition, id, version));
      return { rules, isRuled: rules.some(limits) };
    });
    this.#store = store;
    this.#clock = clock;
    this.#hashOf = hashOf;
    this.#replacedBy = replacedBy;
  }

  readonly judge = (
    requester: Requester,
    request: ActionRequest,
    now: Date,
    beyond: readonly RuleCount[] = [],
  ): Judgement => {
    const version = this.version ?? UNREAD;
    const known = this.viewOf(requester.accountId);
    if (known === undefined) return { ruling: null, counts: [], reached: null, version, isRuled: false };
    const isBeyond = ({ ruleId, subject }: RuleCount) =>
      beyond.some((one) => one.ruleId === ruleId && one.subject === subject);
    const { decision, counts } = decideByWalks(walksFor(known.rules, requester, request, now, this.#hashOf), isBeyond);
    const ruling = decision === null ? null : rulingOf(decision);
    return { ruling, counts, reached: decision?.beyond?.count ?? null, version, isRuled: known.isRuled };
  };

  /** The rules of an account as this process knows them. */
  rulesOf(accountId: string): readonly Rule[] {
    return this.viewOf(accountId)?.rules ?? [];
  }

  /** What rules, or those in force, say of a request, with the counts that it has to fit in. */
  walksFor(
    requester: Requester,
    request: ActionRequest,
    now: Date,
    rules: readonly Rule[] = this.rulesOf(requester.accountId),
  ): readonly Walk[] {
    return walksFor(rules, requester, request, now, this.#hashOf);
  }

  readonly judgeAtSend = async (action: Action, now: Date): Promise<Ruling | null> => {
    const judgedMs = action.createdAt.getTime() - this.#knownSince.getTime();
    return judgedMs > CREATE_MS_MAX ? null : this.judge(await this.requesterOf(action), action, now).ruling;
  };

  /** Of the rules in force, or of others. */
  async requesterOf(action: Action, rules: readonly Rule[] = this.rulesOf(action.accountId)): Promise<Requester> {
    const requester = requesterOf(action);
    const { keyId, role } = requester;
    if (keyId === null || role !== "agent" || !rules.some(asksForKeys)) return requester;
    return { ...requester, replaced: new Set(await this.#replacedBy(keyId)) };
  }

  override async reload(): Promise<void> {
    const before = this.version;
    await super.reload();
    if (this.version !== before) this.#knownSince = this.#clock.now();
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
function limits({ counters: [counter, ...more] }: Rule): boolean {
  return more.length > 0 || counter?.kind !== "calls" || counter.same !== "request";
}

/** Whether a rule is about a key and those that replaced it, or counts them as one. */
function asksForKeys({ keys, counters }: Rule): boolean {
  return keys !== null || counters.some(({ same }) => same === "key" || same === "request");
}

/** What rules say of a request that is made at that time. */
export function walksFor(
  rules: readonly Rule[],
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
