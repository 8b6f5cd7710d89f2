import type { Action, ActionRequest } from "./action.ts";
import { type Ruling, type Stop, strictest } from "./action-policy.ts";
import type { Caller } from "./roles.ts";
import { countName, type RuleCount } from "./account-rules.ts";

/** The requester, as rules see them. */
export interface Requester extends Pick<Caller, "accountId" | "role" | "keyName" | "replaced"> {
  /** Null: a person, or a key that isn't stored. */
  readonly keyId: string | null;
}

/** The requester of an action, from the action alone. `Judge.findRequester` adds the keys that were replaced. */
export function toRequester({ accountId, creator, createdBy, keyId }: Action): Requester {
  const keyName = createdBy.slice(createdBy.indexOf(":") + 1);
  // A person's copy of an agent's action has the agent as its creator, but rules judge it as the person's, and only owners copy.
  const role = createdBy.startsWith("user:") ? "owner" : creator.role;
  return { accountId, role, keyName, keyId: keyId === "" ? null : keyId };
}

/** What the rules in force say about a request. */
export interface Judgement {
  /** The first rule that applies; null: none does. */
  readonly ruling: Ruling | null;
  /** What the request adds to counts of rules. */
  readonly counts: readonly RuleCount[];
  /** The count beyond which it goes. If there is one, the ruling is that rule's. */
  readonly reached: RuleCount | null;
  /** The version of the rules that decided. */
  readonly version: string;
}

/** Whether rules hold a request or refuse it, and what it adds to their counts. */
export type Judged = Pick<Judgement, "ruling" | "counts">;

/**
 * What the rules say about a further run, or about sending an action earlier: the stricter ruling for the original requester
 * and for the present caller. `when` and `beyond`: see `Judge.judge`.
 */
export async function judgeAgain(
  judge: Judge,
  action: Action,
  caller: Caller,
  when: JudgedAt,
  beyond?: readonly RuleCount[],
): Promise<Judged> {
  // Reload first, since no commit checks the version here.
  await judge.reloadAccount(action.accountId);
  const one = await judge.judge(await judge.findRequester(action), action, when, beyond);
  const other = await judge.judge(caller, action, when, beyond);
  const counts = new Map([...one.counts, ...other.counts].map((count) => [countName(count), count]));
  return { ruling: strictest([one, other])?.ruling ?? null, counts: [...counts.values()] };
}

/** Judges by the present counts: calls `judgeBy` with those that the request would exceed. Only the commit makes it certain. */
export async function judgeByCounts(
  judgeBy: (beyond: readonly RuleCount[]) => Judged | Promise<Judged>,
  findBeyond: (counts: readonly RuleCount[]) => Promise<readonly RuleCount[]>,
): Promise<Judged> {
  const beyond: RuleCount[] = [];
  for (;;) {
    const judged = await judgeBy(beyond);
    // These are new ones: a count that a request exceeds is not among its counts any more.
    const more = await findBeyond(judged.counts);
    if (more.length === 0) return judged;
    beyond.push(...more);
  }
}

/** When a request is judged, and when it can be sent. */
export interface JudgedAt {
  readonly now: Date;
  /** Default: at its `run_at`, or now. */
  readonly due?: Date;
}

/** What happens before an attempt: it is stopped, or counted by rules that did not apply, and so did not count it, at the create. */
export type RulingAtSend = Stop | { readonly effect: "count"; readonly counts: readonly RuleCount[] };

/** The rules of accounts, for code that decides on requests. */
export interface Judge {
  /**
   * Judges a request by the rules that this process knows. The commit of a create checks that they are still in force.
   * `beyond`: counts that the request would exceed.
   */
  judge(
    requester: Requester,
    request: ActionRequest,
    when: JudgedAt,
    beyond?: readonly RuleCount[],
  ): Promise<Judgement>;
  /** The requester of an action, with the keys that their key replaced if a rule needs them. */
  findRequester(action: Action): Promise<Requester>;
  /** Whether an account has rules about what is called, not only about how often. */
  isRuled(accountId: string): boolean;
  /**
   * What to do before an attempt; null for nothing. A rule that refuses the call ends it before any attempt, even if approved.
   * A rule that holds or counts the call applies before its first send, unless somebody who may approve has decided on it; also
   * if it passed by a grant that was ended since.
   */
  judgeAtSend(action: Action, now: Date): Promise<RulingAtSend | null>;
  /** Reads the rules of an account if they have changed. Rejects when the store is unavailable. */
  reloadAccount(accountId: string): Promise<void>;
  /** Records that a rule refused a request. False: rules were written since, so the request must be decided again. */
  recordRefusal(caller: Caller, request: ActionRequest, judgement: Judgement, now: Date): Promise<boolean>;
}
