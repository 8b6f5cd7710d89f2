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
import { CountParts, type RuleCount } from "../core/account-rules.ts";
import { NO_SEARCH } from "../core/search.ts";
import type { ActionStore, Store } from "../core/store.ts";
import { seeAll } from "../receipts/see.ts";
import type { SeenAction } from "../receipts/seen-action.ts";
import { createYield, eachPage, OpenPerAccount } from "../runtime/fair-share.ts";
import type { KnownRules } from "./known.ts";
import { type CompiledRule, decideByWalks, CompiledRules, isRefusal, type Walk } from "./rule.ts";
import { DifferingJson, type DryRunDifference, type DryRunJson, type RuleEffect } from "./schemas.ts";
import { toJson } from "../api/serializer.ts";

/** Which actions to look at: the newest `last`, and of these only those since a time. */
export interface DryRunRange {
  readonly last: number;
  readonly since: Date | null;
}

/** The progress so far, and finally the result. */
export type DryRunStep = Pick<DryRunJson, "looked_at"> | DryRunJson;

/** What rules say about an action, with only the members that matter, since there may be very many. */
interface Entry extends Pick<Action, "id" | "status" | "approve" | "approvedAt" | "createdAt"> {
  /** Its key or its caller had it held, and would whatever the rules say. */
  readonly isHeld: boolean;
  /** When its counts were given back; null: never, or it is unknown when. */
  readonly givenBackAt: Date | null;
  /** It is unknown what it has counted, since it was retried, or since it is unknown whether it was sent. */
  readonly isVague: boolean;
  readonly inForce: readonly Walk[];
  readonly tried: readonly Walk[];
}

/**
 * Tries rules on past actions, each as the caller sees it and at the time of its create: rules about a masked value would find it
 * out letter by letter. It changes nothing. It reads a page when the caller takes the next step. Throws `rate_limited` beyond
 * `DRY_RUNS_PER_ACCOUNT_MAX` dry runs at a time.
 */
export function createDryRun(
  clock: Pick<Clock, "monotonicMs">,
  { actions, audit }: Pick<Store, "actions" | "audit">,
  known: KnownRules,
) {
  const open = new OpenPerAccount(
    DRY_RUNS_PER_ACCOUNT_MAX,
    "The account is already trying rules. Wait until that has ended.",
  );

  async function* dryRun(
    caller: Caller,
    rules: readonly CompiledRule[],
    range: DryRunRange,
  ): AsyncGenerator<DryRunStep> {
    const yieldTurn = createYield(clock);
    authorize(caller, "approve");
    const { accountId } = caller;
    // Owners try rules on what is sent, also on the pages, which show them masked values.
    const { personId: _person, ...judge } = caller;
    const inForce = await known.compiledRules(accountId);
    // Each requester is read once.
    const requesters = new Map<string, Requester>();
    const [listInForce, listTried] = [new CompiledRules(inForce), new CompiledRules(rules)];
    // Newest first.
    const entries: Entry[] = [];
    for await (const page of newest(actions, accountId, range)) {
      const seen = await seeAll(page, judge);
      for (const [at, action] of page.entries()) {
        await yieldTurn();
        const name = JSON.stringify([action.keyId, action.createdBy, action.creator.role]);
        const requester = requesters.get(name) ?? (await known.findRequester(action, [...inForce, ...rules]));
        requesters.set(name, requester);
        const request = [requester, readable(action, seen[at]), { now: action.createdAt }] as const;
        const [walks, tried] = [
          await known.walksFor(...request, listInForce),
          await known.walksFor(...request, listTried),
        ];
        entries.push(toEntry(action, walks, tried));
      }
      yield { looked_at: entries.length };
    }

    const from = entries.at(-1)?.createdAt ?? null;
    // Older calls that were not looked at may have counted, too, and delayed ones at any later time.
    const hasAll = entries.length < range.last;
    const isCut = range.since !== null || !hasAll;
    const held = { held_approved: 0, held_rejected: 0, held_undecided: 0, undecidable: 0 };
    const others = { unknown: 0, uncertain: 0, differing: 0 };
    const figures = { looked_at: entries.length, allowed: 0, held: 0, refused: 0, ...held, ...others };
    const [inForceCounts, triedCounts] = [new Counts(), new Counts()];
    const differing: (Pick<DryRunDifference, "id" | "tried" | "rule" | "reason"> & { inForce: RuleEffect })[] = [];
    // Held and cancelled, so perhaps rejected. They count as undecided until their timelines are read.
    const rejectable: string[] = [];
    // Counting begins with the oldest action.
    for (let entry = entries.pop(); entry !== undefined; entry = entries.pop()) {
      await yieldTurn();
      const { id, approvedAt, approve, status } = entry;
      const counts = entry.tried.flatMap((walk) => walk.counted.map(({ count }) => count));
      const isVague = counts.some((count) => triedCounts.isVague(count));
      const { ruling, reached } = triedCounts.add(entry, entry.tried);
      const inForceEffect = shownEffect(inForceCounts.add(entry, entry.inForce).ruling, entry);
      const effect = shownEffect(ruling, entry);
      const isUncertain = isVague || (isCut && reached === null && counts.length > 0);
      if (isUncertain && !entry.tried.some(isRefusal)) figures.uncertain += 1;
      figures[WORDS[effect]] += 1;
      if (effect === "hold") {
        if (ruling?.isUndecidable === true) figures.undecidable += 1;
        figures[approvedAt === null ? "held_undecided" : "held_approved"] += 1;
        if (approvedAt === null && approve && status === "cancelled") rejectable.push(id);
      }
      if (effect === inForceEffect) continue;
      figures.differing += 1;
      const [rule, reason] = [ruling?.rule.name ?? null, ruling?.reason ?? null];
      differing.push({ id, inForce: inForceEffect, tried: effect, rule, reason });
      if (differing.length > DRY_RUN_SHOWN_MAX) differing.shift();
    }
    for (const id of rejectable.slice(0, DRY_RUN_TIMELINES_MAX)) {
      await yieldTurn();
      const timeline = await actions.timeline(accountId, id);
      if (!timeline.some(({ event }) => event.type === "rejected")) continue;
      figures.held_rejected += 1;
      figures.held_undecided -= 1;
    }
    // Refusals before the oldest action are of the range too, unless it ends there because of `last`.
    const since = hasAll || from === null ? (range.since ?? new Date(0)) : from;
    figures.unknown = (await refusalsSince(audit, accountId, since, REFUSAL_PAGES_MAX)).ruleIds.length;
    const stored: Action[] = [];
    for (const { id } of differing) {
      await yieldTurn();
      const action = await actions.find(accountId, id);
      if (action !== null) stored.push(action);
    }
    const seen = new Map((await seeAll(stored, caller)).map((action) => [action.id, action]));
    const differences = differing.flatMap((one) => {
      const action = seen.get(one.id);
      if (action === undefined) return [];
      const { method, url, title, status, createdAt, createdBy } = action;
      return [toJson(DifferingJson, { ...one, method, url, title, status, createdAt, createdBy })];
    });
    yield { ...figures, from: from?.toISOString() ?? null, differences: differences.toReversed() };
  }

  return (caller: Caller, rules: readonly CompiledRule[], range: DryRunRange): AsyncGenerator<DryRunStep> =>
    open.during(caller.accountId, dryRun(caller, rules, range));
}

/** What rules read of an action for somebody who sees it so. They compare the size of bytes, but no condition reads them. */
function readable(action: Action, seen: SeenAction | undefined): Action {
  if (seen === undefined) throw new Error("A page has fewer actions as they are seen.");
  const { url, headers, title, extras } = seen;
  return seen.bytes === undefined ? seen : { ...action, url, headers, title, extras };
}

const WORDS = { allow: "allowed", hold: "held", refuse: "refused" } as const;

/** Refusals on further pages are not counted, so `unknown` is then a lower bound. */
const REFUSAL_PAGES_MAX = 100;

/** The newest actions of an account, page by page. */
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

/** For each refused call the id of the rule, from at most `pagesMax` pages of the audit log. `isWhole`: there are no more. */
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

function toEntry(action: Action, inForce: readonly Walk[], tried: readonly Walk[]): Entry {
  const { id, status, approve, approvedAt, createdAt, policy, attempts, finishedAt, run, result } = action;
  const hasEnded = status === "failed" || status === "cancelled";
  const isVague = run > 1 || (hasEnded && result?.errorSource === "dispatch");
  const isHeld = policy?.effect === "hold" && (policy.by === "key" || policy.by === "caller");
  const givenBackAt = status === "cancelled" && attempts === 0 ? finishedAt : null;
  return { id, status, approve, approvedAt, createdAt, isHeld, givenBackAt, isVague, inForce, tried };
}

/** What rules would have counted, added up from the oldest action to the newest. */
class Counts {
  /** `isVague`: it is unknown how much of a part still counts. */
  readonly #parts = new CountParts<{ readonly start: number; amount: bigint; isVague: boolean }>();
  /** Counts that are given back later. The next one is last. */
  readonly #later: { readonly at: Date; readonly counts: readonly RuleCount[] }[] = [];

  /** Decides on a request that follows all earlier ones, and adds what it counts. */
  add({ createdAt, givenBackAt, isVague }: Entry, walks: readonly Walk[]): ReturnType<typeof decideByWalks> {
    for (let next = this.#later.at(-1); next !== undefined && next.at <= createdAt; next = this.#later.at(-1)) {
      this.#later.pop();
      for (const count of next.counts) this.#countPart(count).amount -= BigInt(count.amount);
    }
    const decided = decideByWalks(walks, (count) => this.#parts.isBeyond(count));
    const counts = decided.ruling?.effect === "refuse" ? [] : decided.counts;
    for (const count of counts) {
      const part = this.#countPart(count);
      part.amount += BigInt(count.amount);
      part.isVague ||= isVague;
    }
    if (givenBackAt !== null && counts.length > 0) {
      const place = this.#later.findLastIndex(({ at }) => at >= givenBackAt) + 1;
      this.#later.splice(place, 0, { at: givenBackAt, counts });
    }
    return decided;
  }

  isVague(count: RuleCount): boolean {
    return this.#parts.within(count).some((part) => part.isVague);
  }

  #countPart(count: RuleCount) {
    return this.#parts.at(count, () => ({ start: count.start, amount: 0n, isVague: false }));
  }
}

/** What a ruling does to a request. */
function shownEffect(ruling: Ruling | null, { isHeld }: Entry): RuleEffect {
  if (ruling?.effect === "refuse") return "refuse";
  return isHeld ? "hold" : (ruling?.effect ?? "allow");
}
