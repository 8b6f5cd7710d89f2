import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../core/clock.ts";
import { TURN_MS_MAX } from "../core/limits.ts";

/** What a long loop awaits after each step: others get their turn where this one has held the event loop for `TURN_MS_MAX`. */
export type YieldTurn = () => Promise<void>;

export function createYield(clock: Pick<Clock, "monotonicMs">): YieldTurn {
  let since = clock.monotonicMs();
  return async () => {
    if (clock.monotonicMs() - since < TURN_MS_MAX) return;
    await nextTurn();
    since = clock.monotonicMs();
  };
}

/** Page after page, newest first, and at most so many. A database in this thread would otherwise block the event loop for all of them. */
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
