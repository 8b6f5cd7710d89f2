import { setImmediate as nextTurn } from "node:timers/promises";

const WAIT_MS_MAX = 4_000;

/** Looks again, turn by turn of the event loop, until there is something; for what no event tells of. Throws after 4 s. */
export async function eventually<T>(look: () => Promise<T | null> | T | null, what: string): Promise<T> {
  const startedMs = performance.now();
  while (performance.now() - startedMs < WAIT_MS_MAX) {
    const found = await look();
    if (found !== null) return found;
    await nextTurn();
  }
  throw new Error(`Waited in vain: ${what}.`);
}
