/**
 * Does the work, and holds its end against that of a timer of so many milliseconds that was set when it had begun: `lateMs` is
 * how much later than the timer it was over, since a machine that is busy is late with both.
 */
export async function besideTimer<T>(timerMs: number, work: () => Promise<T>) {
  const beganMs = performance.now();
  const working = work();
  const rung = new Promise<number>((resolve) => setTimeout(() => resolve(performance.now()), timerMs));
  const result = await working;
  const endedMs = performance.now();
  return { result, tookMs: endedMs - beganMs, lateMs: endedMs - (await rung) };
}
