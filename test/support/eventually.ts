import { nextLook } from "./until.ts";

/** Long, because a busy machine takes its time; below the limit of a test, so that it is said what was waited for. */
const WAIT_MS_MAX = 15_000;

/** Looks again until there is something; for what no event tells of. Throws after 15 s. */
export async function eventually<T>(look: () => Promise<T | null> | T | null, what: string): Promise<T> {
  const startedMs = performance.now();
  for (let looks = 1; performance.now() - startedMs < WAIT_MS_MAX; looks += 1) {
    const found = await look();
    if (found !== null) return found;
    await nextLook(looks);
  }
  throw new Error(`Waited in vain: ${what}.`);
}
