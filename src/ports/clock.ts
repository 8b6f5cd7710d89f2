/** Time comes in here. Due times are read from the wall, durations from the monotonic clock (decisions 11). */
export interface Clock {
  now(): Date;
  monotonicMs(): number;
  /** Rings once after the delay unless the returned function is called first. */
  after(delayMs: number, run: () => void): () => void;
}
