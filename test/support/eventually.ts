import { setImmediate as nextTurn } from "node:timers/promises";

/** Long, because a busy machine takes its time; below the limit of a test, so that it is said what was waited for. */
const WAIT_MS_MAX = 15_000;

/** Looks again, turn by turn of the event loop, until there is something; for what no event tells of. Throws after 15 s. */
export async function eventually<T>(look: () => Promise<T | null> | T | null, what: string): Promise<T> {
  const startedMs = performance.now();
  while (performance.now() - startedMs < WAIT_MS_MAX) {
    const found = await look();
    if (found !== null) return found;
    await nextTurn();
  }
  throw new Error(`Waited in vain: ${what}.`);
}
