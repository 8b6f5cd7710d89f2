import { AccountCache } from "../core/account-settings.ts";
import type { RuleRow, RuleStore } from "../core/account-rules.ts";
import type { Ruling } from "../core/action-policy.ts";
import type { Action, ActionRequest } from "../core/action.ts";
import type { Clock } from "../core/clock.ts";
import { auditOf } from "../core/audit.ts";
import { type Judge, type Judgement, type Requester, requesterOf } from "../core/judge.ts";
import type { Caller } from "../core/roles.ts";
import { factsOf } from "./facts.ts";
import { decideByRules, type Rule, type RuleDecision, storedRule } from "./rule.ts";

/** No version of the store: what is committed by it is decided again. */
const UNREAD = "unread";

/** A create that began later than this behind a change of the rules is decided by them: its commit has checked that. */
const CREATE_MS_MAX = 60_000;

/** The rules of all accounts, compiled. */
export class KnownRules extends AccountCache<RuleRow, readonly Rule[]> implements Judge {
  readonly #store: RuleStore;
  readonly #clock: Pick<Clock, "now">;
  /** When this process first knew the rules that it knows now. */
  #knownSince = new Date(0);

  constructor(store: RuleStore, clock: Pick<Clock, "now">) {
    super(store, (rows) => rows.map(({ id, version, definition }) => storedRule(definition, id, version)));
    this.#store = store;
    this.#clock = clock;
  }

  readonly judge = (requester: Requester, request: ActionRequest, now: Date): Judgement => {
    const version = this.version ?? UNREAD;
    const rules = this.viewOf(requester.accountId);
    if (rules === undefined) return { ruling: null, version, isRuled: false };
    return { ruling: judgeBy(rules, requester, request, now), version, isRuled: true };
  };

  readonly judgeAtSend = (action: Action, now: Date): Ruling | null => {
    const judgedMs = action.createdAt.getTime() - this.#knownSince.getTime();
    return judgedMs > CREATE_MS_MAX ? null : this.judge(requesterOf(action), action, now).ruling;
  };

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

/** What rules say of a request that is made at that time; null: none applies. */
export function judgeBy(
  rules: readonly Rule[],
  { keyId, keyName, role, replaced }: Requester,
  request: ActionRequest,
  now: Date,
): Ruling | null {
  const key = keyId === null ? null : { id: keyId, name: keyName, role, replaced };
  const decision = decideByRules(rules, factsOf(request, key, now));
  return decision === null ? null : rulingOf(decision);
}

/** What agents are told of a decision: the words of an owner, and what the rule compares only where it says so. */
function rulingOf({ rule, effect, undecidable }: RuleDecision): Ruling {
  const { id, name, version, message, explain, when } = rule;
  const compared = explain && when !== null ? `It compares ${when.text}` : null;
  const said = [undecidable, message, compared].filter((text) => text !== null);
  const reason = said.length === 0 ? null : said.join(" ");
  return { effect, rule: { id, name, version }, reason, isUndecidable: undecidable !== null };
}
