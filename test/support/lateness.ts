import { ownMs } from "./core.ts";

/**
 * Does the work, and holds its end against that of a timer of so many milliseconds that was set when it had begun: `lateMs` is
 * how much later than the timer it was over, since a machine that is busy is late with both, without what other work took
 * from this thread between the two.
 */
export async function besideTimer<T>(timerMs: number, work: () => Promise<T>) {
  const beganMs = performance.now();
  const working = work();
  const rung = new Promise<number>((resolve) => setTimeout(() => resolve(ownMs()), timerMs));
  const result = await working;
  const tookMs = performance.now() - beganMs;
  const endedMs = ownMs();
  return { result, tookMs, lateMs: endedMs - (await rung) };
}
