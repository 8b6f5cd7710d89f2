import type { Action, ActionRequest } from "./action.ts";
import { type Ruling, type Stop, strictest } from "./action-policy.ts";
import type { Caller } from "./roles.ts";
import { countName, type RuleCount } from "./rule-count.ts";

/** Whoever makes a request, as far as rules ask. */
export interface Requester extends Pick<Caller, "accountId" | "role" | "keyName" | "replaced"> {
  /** Null: a person, or a key that isn't stored. */
  readonly keyId: string | null;
}

/** Who made an action, as far as the action says: `Judge.requesterOf` adds the keys that were replaced. */
export function requesterOf({ accountId, creator, createdBy, keyId }: Action): Requester {
  const keyName = createdBy.slice(createdBy.indexOf(":") + 1);
  return { accountId, role: creator.role, keyName, keyId: keyId === "" ? null : keyId };
}

/** What the rules in force say of a request. */
export interface Judgement {
  /** The first rule that applies; null: none does. */
  readonly ruling: Ruling | null;
  /** What the request adds to counts of rules. */
  readonly counts: readonly RuleCount[];
  /** The count beyond which it goes, so that the ruling is of that rule. */
  readonly reached: RuleCount | null;
  /** Of the rules that it was decided by. */
  readonly version: string;
}

/** Whether rules hold a request or refuse it, and what it adds to their counts. */
export type Judged = Pick<Judgement, "ruling" | "counts">;

/**
 * What the rules say of a further run, or of an action that is sent earlier: of whoever made it and of whoever asks for that now, the
 * stricter. `when` and `beyond` as for `Judge.judge`.
 */
export async function judgeAgain(
  judge: Judge,
  action: Action,
  caller: Caller,
  when: JudgedAt,
  beyond?: readonly RuleCount[],
): Promise<Judged> {
  // No commit checks the version.
  await judge.reloadOf(action.accountId);
  const one = judge.judge(await judge.requesterOf(action), action, when, beyond);
  const other = judge.judge(caller, action, when, beyond);
  const counts = new Map([...one.counts, ...other.counts].map((count) => [countName(count), count]));
  return { ruling: strictest([one, other])?.ruling ?? null, counts: [...counts.values()] };
}

/** Decides by what is counted so far: by `judgeBy` with those counts beyond which the request goes. Only the commit that counts it makes that sure. */
export async function judgeByCounts(
  judgeBy: (beyond: readonly RuleCount[]) => Judged | Promise<Judged>,
  beyondOf: (counts: readonly RuleCount[]) => Promise<readonly RuleCount[]>,
): Promise<Judged> {
  const beyond: RuleCount[] = [];
  for (;;) {
    const judged = await judgeBy(beyond);
    // None of the former: what a request goes beyond is no part of its counts.
    const more = await beyondOf(judged.counts);
    if (more.length === 0) return judged;
    beyond.push(...more);
  }
}

/** When a request is judged, and when it can be sent by that. */
export interface JudgedAt {
  readonly now: Date;
  /** Default: at its `run_at`, or now. */
  readonly due?: Date;
}

/** Before an attempt: it is stopped, or counted by rules that have not counted it at its create, since they did not apply then. */
export type Before = Stop | { readonly effect: "count"; readonly counts: readonly RuleCount[] };

/** The rules of accounts, for what decides on requests. */
export interface Judge {
  /**
   * Decides by the rules that this process knows: the commit of a create checks that they are still in force. `beyond`: counts for which
   * the request was one too many.
   */
  judge(requester: Requester, request: ActionRequest, when: JudgedAt, beyond?: readonly RuleCount[]): Judgement;
  /** Who made an action, with the keys that their key replaced if a rule needs them. */
  requesterOf(action: Action): Promise<Requester>;
  /** Whether an account has rules about what is called, and not only about how often. */
  isRuled(accountId: string): boolean;
  /**
   * What comes before an attempt; null: nothing. A rule that refuses the call ends it before any attempt, whoever approved it. One that
   * holds or counts it is asked before the first send of what nobody has decided on who may, or that passed by a grant that was ended since.
   */
  judgeAtSend(action: Action, now: Date): Promise<Before | null>;
  /** Reads the rules of an account if they have changed. Rejects when the store is away. */
  reloadOf(accountId: string): Promise<void>;
  /** Records that a rule refused a request; false: rules were written since, so that it has to be decided again. */
  recordRefusal(caller: Caller, request: ActionRequest, judgement: Judgement, now: Date): Promise<boolean>;
}
