import { setImmediate as nextTurn } from "node:timers/promises";
import { ownMs } from "../support/core.ts";

/** Turns of the event loop that `until` waits at most: a hang fails the test, and says where. */
const WAIT_MS_MAX = 10_000;

/** Lets the event loop turn until the condition holds. */
export async function until(holds: () => boolean): Promise<void> {
  const deadline = performance.now() + WAIT_MS_MAX;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`Still not so after ${WAIT_MS_MAX} ms: ${holds.toString()}`);
    await nextTurn();
  }
}

/** The longest time in milliseconds that the event loop stood still of itself while the work was done. */
export async function maxGapMs(work: () => Promise<unknown>): Promise<number> {
  let last = ownMs();
  let max = 0;
  const measure = () => {
    const now = ownMs();
    max = Math.max(max, now - last);
    last = now;
  };
  const timer = setInterval(measure, 1);
  try {
    await work();
    measure();
  } finally {
    clearInterval(timer);
  }
  return max;
}
