import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../core/clock.ts";
import { Counts } from "../core/maps.ts";
import { TURN_MS_MAX } from "../core/limits.ts";
import { DomainError } from "../core/domain-error.ts";

/**
 * Which holder gives up a place when all places of an account are taken and another holder asks for one: the holder with the
 * most, if it has at least two more than the one that asks; else null. So one holder may have all places, and others still get
 * an equal share, without two holders taking the same place from each other in turn.
 */
export function holderToEvict(held: ReadonlyMap<string, number>, asker: string): string | null {
  const own = held.get(asker) ?? 0;
  let most: { readonly holder: string; readonly count: number } | null = null;
  for (const [holder, count] of held) if (count > (most?.count ?? own + 1)) most = { holder, count };
  return most?.holder ?? null;
}

/** Counts places by holder. */
export function countByHolder(all: Iterable<{ readonly holder: string }>): ReadonlyMap<string, number> {
  const held = new Map<string, number>();
  for (const { holder } of all) held.set(holder, (held.get(holder) ?? 0) + 1);
  return held;
}

/** Awaited by a long loop after each step: yields to other work when the loop has held the event loop for `TURN_MS_MAX`. */
type YieldTurn = () => Promise<void>;

export function createYield(clock: Pick<Clock, "monotonicMs">): YieldTurn {
  let since = clock.monotonicMs();
  return async () => {
    if (clock.monotonicMs() - since < TURN_MS_MAX) return;
    await nextTurn();
    since = clock.monotonicMs();
  };
}

/** Runs a short piece of work of an account, now or in a later turn of the event loop. */
type ShareTurn = <Result>(accountId: string, work: () => Result) => Promise<Result>;

/**
 * Lets the work of many callers together hold the event loop for `TURN_MS_MAX` in a turn, besides its last piece. Accounts take
 * turns, so that one with much work doesn't delay the others.
 */
export function createTurnShare(clock: Pick<Clock, "monotonicMs">): ShareTurn {
  /** By account; the first has the next turn. */
  const waiting = new Map<string, (() => void)[]>();
  let spentMs = 0;
  let isNextSet = false;
  const begin = () => {
    [spentMs, isNextSet] = [0, false];
    while (spentMs < TURN_MS_MAX && waiting.size > 0) {
      const [[accountId, pieces] = ["", []]] = waiting;
      const piece = pieces.shift();
      waiting.delete(accountId);
      if (pieces.length > 0) waiting.set(accountId, pieces);
      piece?.();
    }
  };
  const run = <Result>(work: () => Result): Result => {
    if (!isNextSet) setImmediate(begin);
    isNextSet = true;
    const startedMs = clock.monotonicMs();
    try {
      return work();
    } finally {
      spentMs += clock.monotonicMs() - startedMs;
    }
  };
  return async (accountId, work) => {
    if (spentMs < TURN_MS_MAX && waiting.size === 0) return run(work);
    const { promise, resolve } = Promise.withResolvers<ReturnType<typeof work>>();
    const pieces = waiting.get(accountId) ?? [];
    // A promise takes over what the work throws.
    pieces.push(() => resolve(Promise.try(run, work)));
    waiting.set(accountId, pieces);
    return promise;
  };
}

/**
 * Gives each caller a turn of the event loop of its own, in their order. What begins in one turn reads the store together, and so
 * also goes on in one turn.
 */
export function createOwnTurns(): () => Promise<void> {
  let last: Promise<unknown> = Promise.resolve();
  return async () => {
    last = last.then(() => nextTurn());
    await last;
  };
}

/** Pages one after another, newest first, up to a number. Yields in between, since a database in this thread blocks the event loop. */
export async function* eachPage<Cursor, Page extends { readonly before: Cursor | null }>(
  read: (before: Cursor | null) => Promise<Page>,
  pagesMax = Number.POSITIVE_INFINITY,
): AsyncGenerator<Page> {
  let before: Cursor | null = null;
  for (let pages = 0; pages < pagesMax; pages += 1) {
    await nextTurn();
    const page: Page = await read(before);
    yield page;
    ({ before } = page);
    if (before === null) return;
  }
}

/** Bounds how many step-by-step reads an account may have open at a time. */
export class OpenPerAccount {
  readonly #max: number;
  readonly #refusal: string;
  readonly #open = new Counts();

  /** `refusal`: the message for one more. */
  constructor(max: number, refusal: string) {
    this.#max = max;
    this.#refusal = refusal;
  }

  /** The same steps, counted. Its first step throws `rate_limited` beyond the limit. */
  async *during<Step>(accountId: string, steps: AsyncGenerator<Step>): AsyncGenerator<Step> {
    if (this.#open.of(accountId) >= this.#max) throw new DomainError("rate_limited", this.#refusal);
    this.#open.add(accountId);
    try {
      yield* steps;
    } finally {
      this.#open.remove(accountId);
    }
  }
}
