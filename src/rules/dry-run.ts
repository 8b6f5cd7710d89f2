import { setImmediate as nextTurn } from "node:timers/promises";
import type { ActionPolicy, Ruling } from "../core/action-policy.ts";
import type { Action } from "../core/action.ts";
import type { AuditStore } from "../core/audit.ts";
import { DomainError } from "../core/domain-error.ts";
import {
  DRY_RUN_PAGE_ACTIONS,
  DRY_RUN_SHOWN_MAX,
  DRY_RUN_TIMELINES_MAX,
  DRY_RUNS_PER_ACCOUNT_MAX,
} from "../core/limits.ts";
import type { Requester } from "../core/judge.ts";
import type { RuleCount } from "../core/rule-count.ts";
import { authorize, type Caller } from "../core/roles.ts";
import { NO_SEARCH } from "../core/search.ts";
import type { ActionStore } from "../core/store.ts";
import { seeAll } from "../receipts/see.ts";
import type { SeenAction } from "../receipts/seen-action.ts";
import { refusalsSince } from "./hits.ts";
import { countsBefore } from "./counting.ts";
import { type KnownRules, rulingOf } from "./known.ts";
import { decideByWalks, type CompiledRule, type RuleCounter, type RuleDecision, type Walk } from "./rule.ts";

type Effect = ActionPolicy["effect"] | "refuse";

/** Which actions to look at: the newest so many, and of them those since a time. */
export interface DryRunRange {
  readonly last: number;
  readonly since: Date | null;
}

/** A request whose fate would be another one. */
interface Differs {
  readonly id: string;
  /** What the rules in force say of it, and what the others do. */
  readonly inForce: Effect;
  readonly tried: Effect;
  readonly ruling: Ruling | null;
}

export interface Differing extends Omit<Differs, "id"> {
  readonly action: SeenAction;
}

/** What rules would have done with requests of the past. */
export interface RulesDryRun {
  readonly lookedAt: number;
  /** When the oldest of them was created; null: there is none. */
  readonly from: Date | null;
  readonly effects: Readonly<Record<Effect, number>>;
  /** Of those that they would have held: what people decided, where they were asked. */
  readonly held: { readonly approved: number; readonly rejected: number; readonly undecided: number };
  /** Held because a rule can't be decided. */
  readonly undecidable: number;
  /** Refused by rules at that time: nothing of them was stored, so nobody knows what these rules would say. */
  readonly unknown: number;
  /** Within budgets as far as is known: older calls than those that were looked at count too. */
  readonly uncertain: number;
  readonly differing: number;
  /** The newest of them. */
  readonly shown: readonly Differing[];
}

/** How far it has come, and at last what came of it. */
export type DryRunStep = { readonly lookedAt: number } | RulesDryRun;

interface DryRunDeps {
  readonly actions: Pick<ActionStore, "find" | "list" | "timeline">;
  readonly audit: Pick<AuditStore, "page">;
  readonly known: Pick<KnownRules, "requesterOf" | "rulesOf" | "walksFor">;
}

/**
 * Tries rules on what was requested, as it is stored, at the time at which it was created. It changes nothing. One page is read at a
 * time, and whoever reads the steps decides when the next one is. Throws `rate_limited` for more than
 * `DRY_RUNS_PER_ACCOUNT_MAX` at a time.
 */
export function createDryRun({ actions, audit, known }: DryRunDeps) {
  const running = new Map<string, number>();
  const count = (accountId: string, by: 1 | -1) => {
    const left = (running.get(accountId) ?? 0) + by;
    if (left === 0) running.delete(accountId);
    else running.set(accountId, left);
  };

  const refusalsOf = async (accountId: string, since: Date) =>
    (await refusalsSince(audit, { accountId, since, pagesMax: REFUSAL_PAGES_MAX })).ruleIds.length;

  return async function* dryRun(
    caller: Caller,
    rules: readonly CompiledRule[],
    range: DryRunRange,
  ): AsyncGenerator<DryRunStep> {
    authorize(caller, "approve");
    const { accountId } = caller;
    if ((running.get(accountId) ?? 0) >= DRY_RUNS_PER_ACCOUNT_MAX) {
      throw new DomainError("rate_limited", "The account tries rules already. Wait until that has ended.");
    }
    count(accountId, 1);
    try {
      const tally = new Tally();
      const inForce = known.rulesOf(accountId);
      // Read once of each key.
      const requesters = new Map<string, Requester>();
      const requesterOf = async (action: Action) => {
        const name = JSON.stringify([action.keyId, action.createdBy, action.creator.role]);
        const found = requesters.get(name) ?? (await known.requesterOf(action, [...inForce, ...rules]));
        requesters.set(name, found);
        return found;
      };
      for await (const page of pagesOf(actions, accountId, range)) {
        for (const action of page) {
          const request = [await requesterOf(action), action, action.createdAt] as const;
          tally.add(action, known.walksFor(...request), known.walksFor(...request, rules));
        }
        yield { lookedAt: tally.lookedAt };
      }
      // Counts begin with the oldest.
      const isWhole = range.since === null && tally.lookedAt < range.last;
      for (let steps = 0; tally.countNext(isWhole); steps += 1) if (steps % COUNTED_PER_TURN === 0) await nextTurn();
      const decided = await decidedBy(actions, accountId, tally.rejectable);
      const unknown = tally.from === null ? 0 : await refusalsOf(accountId, tally.from);
      yield tally.result(decided, unknown, await shownTo(caller, actions, tally.newest()));
    } finally {
      count(accountId, -1);
    }
  };
}

const COUNTED_PER_TURN = 500;

async function shownTo(
  caller: Caller,
  actions: Pick<ActionStore, "find">,
  differing: readonly Differs[],
): Promise<readonly Differing[]> {
  const found = await Promise.all(differing.map(({ id }) => actions.find(caller.accountId, id)));
  const seen = await seeAll(
    found.filter((action) => action !== null),
    caller,
  );
  const byId = new Map(seen.map((action) => [action.id, action]));
  return differing.flatMap(({ id, ...one }) => {
    const action = byId.get(id);
    return action === undefined ? [] : [{ ...one, action }];
  });
}

export async function* pagesOf(
  actions: Pick<ActionStore, "list">,
  accountId: string,
  { last, since }: DryRunRange,
): AsyncGenerator<readonly Action[]> {
  let left = last;
  let before: string | null = null;
  do {
    // A database in this thread would otherwise block the event loop for the whole run.
    await nextTurn();
    const limit = Math.min(DRY_RUN_PAGE_ACTIONS, left);
    const page = await actions.list({ ...EVERYTHING, accountId, createdAfter: since, before, limit });
    if (page.actions.length > 0) yield page.actions;
    left -= page.actions.length;
    ({ before } = page);
  } while (before !== null && left > 0);
}

const EVERYTHING = {
  statuses: [],
  method: null,
  host: null,
  dedupe: null,
  createdBy: null,
  createdBefore: null,
  search: NO_SEARCH,
} as const;

/** What matters of an action that is counted, as there may be very many. */
type Brief = Pick<Action, "id" | "status" | "approve" | "approvedAt" | "createdAt" | "policy"> & {
  readonly place: number;
  /** When its counts were given back; null: never, or nobody knows when. */
  readonly givenBackAt: Date | null;
};

interface Counted {
  readonly brief: Brief;
  readonly inForce: readonly Walk[];
  readonly tried: readonly Walk[];
}

class Tally {
  lookedAt = 0;
  from: Date | null = null;
  /** Held then, and cancelled: by a person who said no, or by somebody else. */
  readonly rejectable: string[] = [];
  readonly #differs: (Differs & { readonly place: number })[] = [];
  readonly #effects: Record<Effect, number> = { allow: 0, hold: 0, refuse: 0 };
  /** Newest first. */
  readonly #counted: Counted[] = [];
  readonly #inForce = new Counts();
  readonly #tried = new Counts();
  #differing = 0;
  #approved = 0;
  #undecided = 0;
  #undecidable = 0;
  #uncertain = 0;

  add(action: Action, inForce: readonly Walk[], tried: readonly Walk[]): void {
    this.lookedAt += 1;
    this.from = action.createdAt;
    const { id, status, approve, approvedAt, createdAt, policy, attempts, finishedAt } = action;
    const givenBackAt = status === "cancelled" && attempts === 0 ? finishedAt : null;
    const brief = { id, status, approve, approvedAt, createdAt, policy, place: this.lookedAt, givenBackAt };
    const isCounted = [...inForce, ...tried].some(({ counters }) => counters.length > 0);
    if (isCounted) this.#counted.push({ brief, inForce, tried });
    else this.#decided(brief, decideByWalks(inForce, never).decision, decideByWalks(tried, never).decision);
  }

  /** Counts the next oldest action; whether there was one. `isWhole`: no older ones are stored. */
  countNext(isWhole: boolean): boolean {
    const next = this.#counted.pop();
    if (next === undefined) return false;
    const { brief, inForce, tried } = next;
    const decision = this.#tried.count(brief, tried);
    this.#decided(brief, this.#inForce.count(brief, inForce), decision);
    const from = isWhole ? null : this.from;
    const isUncertain = ({ counter, count }: RuleCounter) => from !== null && countsBefore(counter, count, from);
    if ((decision?.beyond ?? null) === null && tried.some(({ counters }) => counters.some(isUncertain)))
      this.#uncertain += 1;
    return true;
  }

  #decided(brief: Brief, inForceDecision: RuleDecision | null, decision: RuleDecision | null): void {
    const ruling = decision === null ? null : rulingOf(decision);
    const [inForce, tried] = [effectOf(inForceDecision, brief), effectOf(decision, brief)];
    this.#effects[tried] += 1;
    if (tried === "hold") this.#countHeld(brief, ruling);
    if (inForce === tried) return;
    this.#differing += 1;
    this.#differs.push({ id: brief.id, inForce, tried, ruling, place: brief.place });
    // Those that are counted come last, and the oldest of them first.
    if (this.#differs.length > 2 * DRY_RUN_SHOWN_MAX) this.#differs.splice(0, Infinity, ...this.newest());
  }

  /** The newest that differ. */
  newest(): (Differs & { readonly place: number })[] {
    return this.#differs.toSorted((one, other) => one.place - other.place).slice(0, DRY_RUN_SHOWN_MAX);
  }

  #countHeld({ id, approvedAt, approve, status }: Brief, ruling: Ruling | null): void {
    if (ruling?.isUndecidable === true) this.#undecidable += 1;
    if (approvedAt !== null) this.#approved += 1;
    else if (approve && status === "cancelled") this.rejectable.push(id);
    else this.#undecided += 1;
  }

  result(rejected: number, unknown: number, shown: readonly Differing[]): RulesDryRun {
    const undecided = this.#undecided + this.rejectable.length - rejected;
    return {
      lookedAt: this.lookedAt,
      from: this.from,
      effects: this.#effects,
      held: { approved: this.#approved, rejected, undecided },
      undecidable: this.#undecidable,
      unknown,
      uncertain: this.#uncertain,
      differing: this.#differing,
      shown,
    };
  }
}

const never = () => false;

/** What rules would have counted, from the oldest action to the newest. */
class Counts {
  /** Of each count its parts, the newest last. */
  readonly #parts = new Map<string, { readonly start: number; amount: bigint }[]>();
  /** What is given back later, the first last. */
  readonly #later: { readonly at: Date; readonly counts: readonly RuleCount[] }[] = [];

  count({ createdAt, givenBackAt }: Brief, walks: readonly Walk[]): RuleDecision | null {
    for (let next = this.#later.at(-1); next !== undefined && next.at <= createdAt; next = this.#later.at(-1)) {
      this.#later.pop();
      for (const count of next.counts) this.#add(count, -BigInt(count.amount));
    }
    const { decision, counts } = decideByWalks(walks, (count) => this.#isBeyond(count));
    if (decision?.effect === "refuse") return decision;
    for (const count of counts) this.#add(count, BigInt(count.amount));
    if (givenBackAt !== null && counts.length > 0) {
      const place = this.#later.findLastIndex(({ at }) => at >= givenBackAt) + 1;
      this.#later.splice(place, 0, { at: givenBackAt, counts });
    }
    return decision;
  }

  #isBeyond(count: RuleCount): boolean {
    const parts = this.#parts.get(nameOf(count)) ?? [];
    let sum = BigInt(count.amount);
    for (let at = parts.length - 1; at >= 0; at -= 1) {
      const part = parts[at];
      if (part === undefined || part.start < count.from) break;
      if (part.start <= count.to) sum += part.amount;
    }
    return sum > BigInt(count.limit);
  }

  #add(count: RuleCount, amount: bigint): void {
    const parts = this.#parts.get(nameOf(count)) ?? [];
    this.#parts.set(nameOf(count), parts);
    const part = parts.findLast(({ start }) => start <= count.start);
    if (part?.start === count.start) part.amount += amount;
    else if (amount > 0n) parts.push({ start: count.start, amount });
  }
}

function nameOf({ ruleId, subject }: RuleCount): string {
  return `${ruleId} ${subject}`;
}

/** What becomes of a request by a decision: what its key or its caller had held would be held all the same. */
function effectOf(decision: RuleDecision | null, { policy }: Brief): Effect {
  if (decision?.effect === "refuse") return "refuse";
  const isHeld = policy?.effect === "hold" && (policy.by === "key" || policy.by === "caller");
  return isHeld ? "hold" : (decision?.effect ?? "allow");
}

/** How many of them a person rejected: as far as their timelines are read. */
async function decidedBy(
  actions: Pick<ActionStore, "timeline">,
  accountId: string,
  cancelled: readonly string[],
): Promise<number> {
  let rejected = 0;
  for (const id of cancelled.slice(0, DRY_RUN_TIMELINES_MAX)) {
    const timeline = await actions.timeline(accountId, id);
    if (timeline.some(({ event }) => event.type === "rejected")) rejected += 1;
  }
  return rejected;
}

/** More than these are not counted: the result says "unknown" of at least so many. */
const REFUSAL_PAGES_MAX = 100;
