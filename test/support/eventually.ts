import { setImmediate as nextTurn } from "node:timers/promises";

/** Long, because a busy machine takes its time; below the limit of a test, so that it is said what was waited for. */
const WAIT_MS_MAX = 45_000;

/** Most of what is waited for comes within a few turns of the event loop. */
const TURNS = 20;
/** Then looks are this far apart: turn by turn they took as much of a core as what they waited for. */
const LOOK_MS = 2;

/** Looks again until there is something; for what no event tells of. Throws after 45 s. */
export async function eventually<T>(look: () => Promise<T | null> | T | null, what: string): Promise<T> {
  const startedMs = performance.now();
  for (let looks = 1; performance.now() - startedMs < WAIT_MS_MAX; looks += 1) {
    const found = await look();
    if (found !== null) return found;
    await (looks < TURNS ? nextTurn() : Bun.sleep(LOOK_MS));
  }
  throw new Error(`Waited in vain: ${what}.`);
}
