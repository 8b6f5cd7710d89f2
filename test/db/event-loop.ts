import { ownMs } from "../support/core.ts";

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
