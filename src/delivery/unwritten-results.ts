import type { Clock } from "../core/clock.ts";
import {
  RESULT_RETRY_MS,
  RESULT_RETRY_MS_MAX,
  UNWRITTEN_RESULT_BYTES,
  UNWRITTEN_RESULTS_BYTES_MAX,
} from "../core/limits.ts";

/**
 * Results that are known but not yet written. Without its result an action might be sent again, so each write is repeated
 * until it succeeds or the process ends, even after the lease has ended. All schedulers share one instance, so that one bound
 * holds for their memory.
 */
export class UnwrittenResults {
  readonly #clock: Clock;
  readonly #waiting = new Set<() => void>();
  readonly #onRoom = new Set<() => void>();
  #count = 0;
  #bytes = 0;
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get count(): number {
    return this.#count;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether nothing more may be claimed, since there is no memory left to keep its results. */
  get isFull(): boolean {
    return this.#bytes >= UNWRITTEN_RESULTS_BYTES_MAX;
  }

  /** `run` is called whenever this stops being full. */
  onRoom(run: () => void): void {
    this.#onRoom.add(run);
  }

  /** Resolves when the result is written, when another write came first, or when the process ends. Never rejects. */
  async write({ bytes, write, onKept }: KnownResult): Promise<Written> {
    const heldBytes = bytes + UNWRITTEN_RESULT_BYTES;
    this.#count += 1;
    this.#bytes += heldBytes;
    let isRepeat = false;
    try {
      for (let pauseMs = RESULT_RETRY_MS; ; pauseMs = Math.min(RESULT_RETRY_MS_MAX, 2 * pauseMs)) {
        const isWritten = await write(isRepeat).catch((error: unknown) => {
          if (!isRepeat) onKept(error);
          return null;
        });
        if (isWritten !== null) return isWritten ? "yes" : "no";
        isRepeat = true;
        if (!(await this.#pause(pauseMs))) return "never";
      }
    } finally {
      this.#remove(heldBytes);
    }
  }

  /** Gives up all pending writes, because the process ends. */
  close(): void {
    this.#isClosed = true;
    for (const giveUp of this.#waiting) giveUp();
  }

  /** Returns false if the process ends. */
  async #pause(pauseMs: number): Promise<boolean> {
    if (this.#isClosed) return false;
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#clock.after(pauseMs, resolve);
    this.#waiting.add(resolve);
    await promise;
    cancel();
    this.#waiting.delete(resolve);
    return !this.#isClosed;
  }

  #remove(bytes: number): void {
    const wasFull = this.isFull;
    this.#count -= 1;
    this.#bytes -= bytes;
    if (wasFull && !this.isFull) for (const run of this.#onRoom) run();
  }
}

/** A known result and how to write it. If `write` rejects, the result may or may not be stored. */
interface KnownResult {
  /** Memory held until it is written. */
  readonly bytes: number;
  /** False: another write came first. `isRepeat`: an earlier call failed, but may have been committed all the same. */
  readonly write: (isRepeat: boolean) => Promise<boolean>;
  /** Called when the first write failed. */
  readonly onKept: (error: unknown) => void;
}

/** `no`: another write came first. `never`: the process ended before it was written. */
type Written = "yes" | "no" | "never";
