import { setImmediate as nextTurn } from "node:timers/promises";

/** Long, because a busy machine takes its time; below the limit of a test, so that it is said what was waited for. */
const WAIT_MS_MAX = 45_000;

/** Most of what is waited for comes within a few turns of the event loop. */
const TURNS = 5;
/** Then looks are a tenth of the wait apart, so much at most: turn by turn they took as much of a core as what they waited for. */
const LOOK_MS_MAX = 10;

/** Looks again until there is something; for what no event tells of. Throws after 45 s. */
export async function eventually<T>(look: () => Promise<T | null> | T | null, what: string): Promise<T> {
  const startedMs = performance.now();
  for (let looks = 1, waitedMs = 0; waitedMs < WAIT_MS_MAX; looks += 1, waitedMs = performance.now() - startedMs) {
    const found = await look();
    if (found !== null) return found;
    await (looks < TURNS ? nextTurn() : Bun.sleep(Math.min(LOOK_MS_MAX, Math.max(1, waitedMs / 10))));
  }
  throw new Error(`Waited in vain: ${what}.`);
}
