import { LARGE_GARBAGE_BYTES_MAX } from "../domain/limits.ts";
import type { Candidate } from "./lanes.ts";
import { FREE_FACTOR } from "./slots.ts";

/** What a large row holds while it is claimed. */
interface Held {
  readonly bytes: number;
  readonly account: string;
  readonly lane: string;
}

/**
 * Large due rows that have a slot and wait for memory. Bytes are shared as slots are: an account goes on while it holds
 * less than `FREE_FACTOR` times what is free, and a lane while it holds less than what is free, so that the large bodies of
 * one slow host never take the room of all others.
 */
export class LargeRows {
  readonly #bytesMax: number;
  readonly #waiting = new Set<Candidate>();
  readonly #held = new Map<string, Held>();
  #garbageBytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  add(candidate: Candidate): void {
    this.#waiting.add(candidate);
  }

  /** Takes out the first that fits; null: none does now. Its bytes are held until `release`. */
  next(): Candidate | null {
    for (const candidate of this.#waiting) {
      const { due, lane } = candidate;
      const held: Held = { bytes: due.largeBytes ?? 0, account: lane.accountId, lane: lane.name };
      if (!this.#fits(held)) continue;
      this.#waiting.delete(candidate);
      this.#held.set(due.id, held);
      return candidate;
    }
    return null;
  }

  /** Gives back the bytes of a row, if it holds any; tells whether it did. */
  release(id: string): boolean {
    this.#garbageBytes += this.#held.get(id)?.bytes ?? 0;
    return this.#held.delete(id);
  }

  /** Whether so much was released since this was last true that it should be collected. */
  takeGarbage(): boolean {
    if (this.#garbageBytes < LARGE_GARBAGE_BYTES_MAX) return false;
    this.#garbageBytes = 0;
    return true;
  }

  /** One always fits, however large. No more than some dozen are held at a time, so that they are simply added up. */
  #fits({ bytes, account, lane }: Held): boolean {
    if (this.#held.size === 0) return true;
    const [all, ofAccount, ofLane] = [{ bytes: 0 }, { bytes: 0 }, { bytes: 0 }];
    for (const held of this.#held.values()) {
      all.bytes += held.bytes;
      if (held.account === account) ofAccount.bytes += held.bytes;
      if (held.lane === lane) ofLane.bytes += held.bytes;
    }
    const free = this.#bytesMax - all.bytes;
    return bytes <= free && ofAccount.bytes < FREE_FACTOR * free && (ofLane.bytes < free || ofLane.bytes === 0);
  }
}
