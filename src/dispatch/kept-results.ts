import { KEPT_RESULT_BYTES, KEPT_RESULTS_BYTES_MAX, WRITE_AGAIN_MS, WRITE_AGAIN_MS_MAX } from "../domain/limits.ts";
import type { Clock } from "../ports/clock.ts";

/** The write of a result that is known. Each of the functions may reject; then nobody knows whether it was done. */
export interface KnownResult {
  /** Of the texts that are held until it is written. */
  readonly bytes: number;
  /** False: another write came first. */
  readonly write: () => Promise<boolean>;
  /** Whether the store has this very result: asked where a write that failed may have been done all the same. */
  readonly isWritten: () => Promise<boolean>;
  /** Hears of the first write that failed. */
  readonly onKept: (error: unknown) => void;
}

/** `no`: another write came first; `never`: the process ended before it could be written. */
export type Written = "yes" | "no" | "never";

/**
 * Results that are known and not written yet. What can't be recorded would be sent again, so each is offered to the store
 * until it has it or the process ends, whatever its lease says. All loops share one of these: memory has one bound.
 */
export class KeptResults {
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

  /** Nothing more may be claimed: what comes back could not be kept. */
  get isFull(): boolean {
    return this.#bytes >= KEPT_RESULTS_BYTES_MAX;
  }

  /** `ring` is called each time when it has been full and is no longer. */
  onRoom(run: () => void): void {
    this.#onRoom.add(run);
  }

  /** Resolves when the result is written, or lost, or the process ends. Never rejects. */
  async write(result: KnownResult): Promise<Written> {
    const heldBytes = result.bytes + KEPT_RESULT_BYTES;
    this.#add(heldBytes);
    let written = await offer(result, true);
    for (let pauseMs = WRITE_AGAIN_MS; written === "kept"; pauseMs = Math.min(WRITE_AGAIN_MS_MAX, 2 * pauseMs)) {
      written = (await this.#pause(pauseMs)) ? await offer(result, false) : "never";
    }
    this.#remove(heldBytes);
    return written;
  }

  /** The process ends: whatever waits to be offered again is given up. */
  close(): void {
    this.#isClosed = true;
    for (const giveUp of this.#waiting) giveUp();
  }

  /** False: there is no again. */
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

  #add(bytes: number): void {
    this.#count += 1;
    this.#bytes += bytes;
  }

  #remove(bytes: number): void {
    const wasFull = this.isFull;
    this.#count -= 1;
    this.#bytes -= bytes;
    if (wasFull && !this.isFull) for (const run of this.#onRoom) run();
  }
}

async function offer({ write, isWritten, onKept }: KnownResult, isFirst: boolean): Promise<Written | "kept"> {
  try {
    if (await write()) return "yes";
    // It lost, unless an earlier write of it was done and only the store's word was lost.
    return !isFirst && (await isWritten()) ? "yes" : "no";
  } catch (error) {
    if (isFirst) onKept(error);
    return "kept";
  }
}
