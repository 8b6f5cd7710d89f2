import { ownMs } from "../support/core.ts";

/** Looks all the time how long the event loop stands still of itself. */
export function watchGaps() {
  let last = ownMs();
  let max = 0;
  const look = () => {
    const now = ownMs();
    max = Math.max(max, now - last);
    last = now;
  };
  const timer = setInterval(look, 1);
  timer.unref();
  return {
    /** The longest time in milliseconds since it was asked last. */
    take(): number {
      look();
      const longest = max;
      max = 0;
      return longest;
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

/** The longest time in milliseconds that the event loop stood still of itself while the work was done. */
export async function maxGapMs(work: () => Promise<unknown>): Promise<number> {
  using gaps = watchGaps();
  await work();
  return gaps.take();
}
