import { setImmediate as nextTurn } from "node:timers/promises";

/** Long, because a busy machine takes its time; below the limit of a test, so that it is said what was waited for. */
const BOUND_MS = 15_000;

/** Most of what is waited for comes within a few turns of the event loop. */
const TURNS = 20;
/** Then looks are this far apart: turn by turn they took as much of a core as what they waited for. */
const LOOK_MS = 2;

/** Resolves when something has come true; throws when it has not after 15 s. */
export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const endMs = performance.now() + BOUND_MS;
  for (let looks = 1; !(await holds()); looks += 1) {
    if (performance.now() > endMs) throw new Error(`It did not come true: ${String(holds)}`);
    await nextLook(looks);
  }
}

/** Waits for the next of several looks at what no event tells of, of which there were `looks` before. */
export async function nextLook(looks: number): Promise<void> {
  await (looks < TURNS ? nextTurn() : Bun.sleep(LOOK_MS));
}
