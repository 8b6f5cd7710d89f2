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
import { type Judgement, requesterOf } from "../core/judge.ts";
import { authorize, type Caller } from "../core/roles.ts";
import { NO_SEARCH } from "../core/search.ts";
import type { ActionStore } from "../core/store.ts";
import { seeAll } from "../receipts/see.ts";
import type { SeenAction } from "../receipts/seen-action.ts";
import { refusalsSince } from "./hits.ts";
import { type KnownRules, rulingOf, walksFor } from "./known.ts";
import { decideByWalks, type Rule } from "./rule.ts";

type Effect = ActionPolicy["effect"] | "refuse";

/** Which actions to look at: the newest so many, and of them those since a time. */
export interface DryRunRange {
  readonly last: number;
  readonly since: Date | null;
}

/** A request whose fate would be another one. */
export interface Differing {
  readonly action: SeenAction;
  /** What the rules in force say of it, and what the others do. */
  readonly inForce: Effect;
  readonly tried: Effect;
  readonly ruling: Ruling | null;
}

/** What rules would have done with requests of the past. */
export interface DryRun {
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
  readonly differing: number;
  /** The newest of them. */
  readonly shown: readonly Differing[];
}

/** How far it has come, and at last what came of it. */
export type DryRunStep = { readonly lookedAt: number } | DryRun;

interface DryRunDeps {
  readonly actions: Pick<ActionStore, "list" | "timeline">;
  readonly audit: Pick<AuditStore, "page">;
  readonly known: Pick<KnownRules, "judge">;
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
    rules: readonly Rule[],
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
      for await (const page of pagesOf(actions, accountId, range)) {
        for (const action of page)
          tally.add(action, known.judge, (request) => {
            const { decision } = decideByWalks(walksFor(rules, ...request, String), () => false);
            return decision === null ? null : rulingOf(decision);
          });
        yield { lookedAt: tally.lookedAt };
      }
      const decided = await decidedBy(actions, tally.rejectable);
      const unknown = tally.from === null ? 0 : await refusalsOf(accountId, tally.from);
      const seen = await seeAll(
        tally.differing.map(({ action }) => action),
        caller,
      );
      const shown = tally.differing.flatMap((one, n) => {
        const action = seen[n];
        return action === undefined ? [] : [{ ...one, action }];
      });
      yield tally.result(decided, unknown, shown);
    } finally {
      count(accountId, -1);
    }
  };
}

async function* pagesOf(
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

type Request = Parameters<KnownRules["walksFor"]>;

class Tally {
  lookedAt = 0;
  from: Date | null = null;
  readonly differing: (Omit<Differing, "action"> & { readonly action: Action })[] = [];
  /** Held then, and cancelled: by a person who said no, or by somebody else. */
  readonly rejectable: Action[] = [];
  readonly #effects: Record<Effect, number> = { allow: 0, hold: 0, refuse: 0 };
  #differing = 0;
  #approved = 0;
  #undecided = 0;
  #undecidable = 0;

  add(action: Action, judgeNow: (...request: Request) => Judgement, judge: (request: Request) => Ruling | null): void {
    const request: Request = [requesterOf(action), action, action.createdAt];
    const ruling = judge(request);
    const [inForce, tried] = [effectOf(judgeNow(...request).ruling, action), effectOf(ruling, action)];
    this.lookedAt += 1;
    this.from = action.createdAt;
    this.#effects[tried] += 1;
    if (tried === "hold") this.#countHeld(action, ruling);
    if (inForce === tried) return;
    this.#differing += 1;
    if (this.differing.length < DRY_RUN_SHOWN_MAX) this.differing.push({ action, inForce, tried, ruling });
  }

  #countHeld(action: Action, ruling: Ruling | null): void {
    if (ruling?.isUndecidable === true) this.#undecidable += 1;
    if (action.approvedAt !== null) this.#approved += 1;
    else if (action.approve && action.status === "cancelled") this.rejectable.push(action);
    else this.#undecided += 1;
  }

  result(rejected: number, unknown: number, shown: readonly Differing[]): DryRun {
    const undecided = this.#undecided + this.rejectable.length - rejected;
    return {
      lookedAt: this.lookedAt,
      from: this.from,
      effects: this.#effects,
      held: { approved: this.#approved, rejected, undecided },
      undecidable: this.#undecidable,
      unknown,
      differing: this.#differing,
      shown,
    };
  }
}

/** What becomes of a request under a ruling: what its key or its caller had held would be held all the same. */
function effectOf(ruling: Ruling | null, { policy }: Action): Effect {
  if (ruling?.effect === "refuse") return "refuse";
  const isHeld = policy?.effect === "hold" && (policy.by === "key" || policy.by === "caller");
  return isHeld ? "hold" : (ruling?.effect ?? "allow");
}

/** How many of them a person rejected: as far as their timelines are read. */
async function decidedBy(actions: Pick<ActionStore, "timeline">, cancelled: readonly Action[]): Promise<number> {
  let rejected = 0;
  for (const { accountId, id } of cancelled.slice(0, DRY_RUN_TIMELINES_MAX)) {
    const timeline = await actions.timeline(accountId, id);
    if (timeline.some(({ event }) => event.type === "rejected")) rejected += 1;
  }
  return rejected;
}

/** More than these are not counted: the result says "unknown" of at least so many. */
const REFUSAL_PAGES_MAX = 100;
