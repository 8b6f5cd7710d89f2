import type { Ruling } from "../core/action-policy.ts";
import type { Action } from "../core/action.ts";
import type { AuditStore } from "../core/audit.ts";
import type { Clock } from "../core/clock.ts";
import type { Requester } from "../core/judge.ts";
import {
  DRY_RUN_PAGE_ACTIONS,
  DRY_RUN_SHOWN_MAX,
  DRY_RUN_TIMELINES_MAX,
  DRY_RUNS_PER_ACCOUNT_MAX,
} from "../core/limits.ts";
import { authorize, type Caller } from "../core/roles.ts";
import { countName, type RuleCount } from "../core/rule-count.ts";
import { NO_SEARCH } from "../core/search.ts";
import type { ActionStore, Store } from "../core/store.ts";
import { seeAll } from "../receipts/see.ts";
import type { SeenAction } from "../receipts/seen-action.ts";
import { OpenPerAccount } from "../runtime/open-per-account.ts";
import { createYield, eachPage } from "../runtime/turns.ts";
import type { KnownRules } from "./known.ts";
import { type CompiledRule, decideByWalks, type Walk } from "./rule.ts";
import { DifferingJson, type DryRunJson, type RuleEffect } from "./schemas.ts";
import { toJson } from "../api/serializer.ts";

/** Which actions to look at: the newest so many, and of them those since a time. */
export interface DryRunRange {
  readonly last: number;
  readonly since: Date | null;
}

/** A request whose fate would be another one. */
export interface Differing {
  readonly action: SeenAction;
  /** What the rules in force say of it, and what the others do. */
  readonly inForce: RuleEffect;
  readonly tried: RuleEffect;
  readonly ruling: Ruling | null;
}

/** What rules would have done with requests of the past, in the words of the API. */
export interface RulesDryRun extends Omit<DryRunJson, "from" | "differences"> {
  /** When the oldest of them was created; null: there is none. */
  readonly from: Date | null;
  /** The newest of those that differ. */
  readonly shown: readonly Differing[];
}

/** How far it has come, and at last what came of it. */
export type DryRunStep = Pick<DryRunJson, "looked_at"> | RulesDryRun;

/** What matters of an action, as there may be very many, and what rules say of it. */
interface Entry extends Pick<Action, "id" | "status" | "approve" | "approvedAt" | "createdAt" | "policy"> {
  /** When its counts were given back; null: never, or nobody knows when. */
  readonly givenBackAt: Date | null;
  /** It was retried, or nobody knows whether it was sent: so what it has counted isn't known either. */
  readonly isVague: boolean;
  readonly inForce: readonly Walk[];
  readonly tried: readonly Walk[];
}

/**
 * Tries rules on what was requested, as it is stored, at the time at which it was created. It changes nothing. One page is read at a
 * time, and whoever reads the steps decides when the next one is. Throws `rate_limited` for more than
 * `DRY_RUNS_PER_ACCOUNT_MAX` at a time.
 */
export function createDryRun(
  clock: Pick<Clock, "monotonicMs">,
  { actions, audit }: Pick<Store, "actions" | "audit">,
  known: KnownRules,
) {
  const open = new OpenPerAccount(
    DRY_RUNS_PER_ACCOUNT_MAX,
    "The account tries rules already. Wait until that has ended.",
  );

  async function* dryRun(
    caller: Caller,
    rules: readonly CompiledRule[],
    range: DryRunRange,
  ): AsyncGenerator<DryRunStep> {
    const yieldTurn = createYield(clock);
    authorize(caller, "approve");
    const { accountId } = caller;
    const inForce = await known.compiledRules(accountId, yieldTurn);
    // Read once of each key.
    const requesters = new Map<string, Requester>();
    // Newest first.
    const entries: Entry[] = [];
    for await (const page of newest(actions, accountId, range)) {
      for (const action of page) {
        await yieldTurn();
        const name = JSON.stringify([action.keyId, action.createdBy, action.creator.role]);
        const requester = requesters.get(name) ?? (await known.requesterOf(action, [...inForce, ...rules]));
        requesters.set(name, requester);
        const request = [requester, action, { now: action.createdAt }] as const;
        entries.push(entryOf(action, known.walksFor(...request, inForce), known.walksFor(...request, rules)));
      }
      yield { looked_at: entries.length };
    }

    const from = entries.at(-1)?.createdAt ?? null;
    // Older calls may have counted, delayed ones at any later time.
    const isCut = range.since !== null || entries.length >= range.last;
    const held = { held_approved: 0, held_rejected: 0, held_undecided: 0, undecidable: 0 };
    const others = { unknown: 0, uncertain: 0, differing: 0 };
    const figures = { looked_at: entries.length, allowed: 0, held: 0, refused: 0, ...held, ...others };
    const [inForceCounts, triedCounts] = [new Counts(), new Counts()];
    const differing: (Omit<Differing, "action"> & Pick<Entry, "id">)[] = [];
    // Held then, and cancelled: by a person who said no, or by somebody else. They count as undecided.
    const rejectable: string[] = [];
    // Counts begin with the oldest.
    for (let entry = entries.pop(); entry !== undefined; entry = entries.pop()) {
      await yieldTurn();
      const { id, approvedAt, approve, status } = entry;
      const counters = entry.tried.flatMap((walk) => walk.counters);
      const isVague = counters.some(({ count }) => triedCounts.isVague(count));
      const { ruling, reached } = triedCounts.add(entry, entry.tried);
      const before = effectOf(inForceCounts.add(entry, entry.inForce).ruling, entry);
      const tried = effectOf(ruling, entry);
      if (isVague || (reached === null && isCut && counters.length > 0)) figures.uncertain += 1;
      figures[WORDS[tried]] += 1;
      if (tried === "hold") {
        if (ruling?.isUndecidable === true) figures.undecidable += 1;
        figures[approvedAt === null ? "held_undecided" : "held_approved"] += 1;
        if (approvedAt === null && approve && status === "cancelled") rejectable.push(id);
      }
      if (before === tried) continue;
      figures.differing += 1;
      differing.push({ id, inForce: before, tried, ruling });
      if (differing.length > DRY_RUN_SHOWN_MAX) differing.shift();
    }
    for (const id of rejectable.slice(0, DRY_RUN_TIMELINES_MAX)) {
      await yieldTurn();
      const timeline = await actions.timeline(accountId, id);
      if (!timeline.some(({ event }) => event.type === "rejected")) continue;
      figures.held_rejected += 1;
      figures.held_undecided -= 1;
    }
    if (from !== null) {
      figures.unknown = (await refusalsSince(audit, accountId, from, REFUSAL_PAGES_MAX)).ruleIds.length;
    }
    const stored: Action[] = [];
    for (const { id } of differing) {
      await yieldTurn();
      const action = await actions.find(accountId, id);
      if (action !== null) stored.push(action);
    }
    const shown = (await seeAll(stored, caller)).flatMap((action) =>
      differing.filter(({ id }) => id === action.id).map(({ id: _id, ...one }) => ({ ...one, action })),
    );
    yield { ...figures, from, shown: shown.toReversed() };
  }

  return (caller: Caller, rules: readonly CompiledRule[], range: DryRunRange): AsyncGenerator<DryRunStep> =>
    open.during(caller.accountId, dryRun(caller, rules, range));
}

const WORDS = { allow: "allowed", hold: "held", refuse: "refused" } as const;

/** More than these are not counted: the result says "unknown" of at least so many. */
const REFUSAL_PAGES_MAX = 100;

/** The newest actions of an account, some at a time. */
export async function* newest(
  actions: Pick<ActionStore, "list">,
  accountId: string,
  { last, since }: DryRunRange,
): AsyncGenerator<readonly Action[]> {
  let left = last;
  const asked = { ...EVERYTHING, accountId, createdAfter: since };
  const pages = eachPage((before: string | null) =>
    actions.list({ ...asked, before, limit: Math.min(DRY_RUN_PAGE_ACTIONS, left) }),
  );
  for await (const page of pages) {
    if (page.actions.length > 0) yield page.actions;
    left -= page.actions.length;
    if (left <= 0) return;
  }
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

/** The rule of each call that one refused, from at most so many pages of the audit log; `isWhole`: there are no more. */
export async function refusalsSince(audit: Pick<AuditStore, "page">, accountId: string, since: Date, pagesMax: number) {
  const filter = { accountId, kinds: ["refused_by_rule"] as const, actors: [], since, until: null };
  const ruleIds: string[] = [];
  let isWhole = false;
  const read = (before: number | null) => audit.page({ ...filter, before, limit: DRY_RUN_PAGE_ACTIONS });
  for await (const { rows, before } of eachPage(read, pagesMax)) {
    ruleIds.push(...rows.map(({ subject }) => subject));
    isWhole = before === null;
  }
  return { ruleIds, isWhole };
}

function entryOf(action: Action, inForce: readonly Walk[], tried: readonly Walk[]): Entry {
  const { id, status, approve, approvedAt, createdAt, policy, attempts, finishedAt, run, result } = action;
  const hasEnded = status === "failed" || status === "cancelled";
  const isVague = run > 1 || (hasEnded && result?.errorSource === "dispatch");
  const givenBackAt = status === "cancelled" && attempts === 0 ? finishedAt : null;
  return { id, status, approve, approvedAt, createdAt, policy, givenBackAt, isVague, inForce, tried };
}

/** What rules would have counted, from the oldest action to the newest. */
class Counts {
  /** Of each count its parts by their start. */
  readonly #parts = new Map<string, Map<number, bigint>>();
  /** What is given back later, the first last. */
  readonly #later: { readonly at: Date; readonly counts: readonly RuleCount[] }[] = [];
  /** Of each count the newest part of which nobody knows how much of it still counts. */
  readonly #vague = new Map<string, number>();

  /** Decides on a request behind all that were added, and adds what it counts. */
  add({ createdAt, givenBackAt, isVague }: Entry, walks: readonly Walk[]): ReturnType<typeof decideByWalks> {
    for (let next = this.#later.at(-1); next !== undefined && next.at <= createdAt; next = this.#later.at(-1)) {
      this.#later.pop();
      for (const count of next.counts) this.#change(count, -BigInt(count.amount), createdAt);
    }
    const decided = decideByWalks(walks, (count) => this.#isBeyond(count));
    const counts = decided.ruling?.effect === "refuse" ? [] : decided.counts;
    for (const count of counts) {
      this.#change(count, BigInt(count.amount), createdAt);
      if (isVague) {
        const name = countName(count);
        this.#vague.set(name, Math.max(count.start, this.#vague.get(name) ?? count.start));
      }
    }
    if (givenBackAt !== null && counts.length > 0) {
      const place = this.#later.findLastIndex(({ at }) => at >= givenBackAt) + 1;
      this.#later.splice(place, 0, { at: givenBackAt, counts });
    }
    return decided;
  }

  isVague(count: RuleCount): boolean {
    return (this.#vague.get(countName(count)) ?? -1) >= count.from;
  }

  #isBeyond(count: RuleCount): boolean {
    const parts = this.#parts.get(countName(count)) ?? [];
    let sum = BigInt(count.amount);
    for (const [start, amount] of parts) if (count.from <= start && start <= count.to) sum += amount;
    return sum > BigInt(count.limit);
  }

  #change(count: RuleCount, amount: bigint, now: Date): void {
    const parts = this.#parts.get(countName(count)) ?? new Map<number, bigint>();
    this.#parts.set(countName(count), parts);
    // What is counted later looks back no further, but for what is due later than others.
    const isDue = count.start <= now.getTime();
    for (const start of isDue ? parts.keys() : []) if (start < count.from - OUT_OF_ORDER_MS) parts.delete(start);
    parts.set(count.start, (parts.get(count.start) ?? 0n) + amount);
  }
}

/** Clocks of nodes differ by less. */
const OUT_OF_ORDER_MS = 60_000;

/** What becomes of a request by a ruling: what its key or its caller had held would be held all the same. */
function effectOf(ruling: Ruling | null, { policy }: Entry): RuleEffect {
  if (ruling?.effect === "refuse") return "refuse";
  const isHeld = policy?.effect === "hold" && (policy.by === "key" || policy.by === "caller");
  return isHeld ? "hold" : (ruling?.effect ?? "allow");
}

/** As JSON. */
export function serializeDryRun({ shown, from, ...figures }: RulesDryRun): DryRunJson {
  const differences = shown.map(({ action, inForce, tried, ruling }) => {
    const { id, method, url, title, status, createdAt, createdBy } = action;
    const decided = { inForce, tried, rule: ruling?.rule.name ?? null, reason: ruling?.reason ?? null };
    return toJson(DifferingJson, { id, method, url, title, status, createdAt, createdBy, ...decided });
  });
  return { ...figures, from: from?.toISOString() ?? null, differences };
}
