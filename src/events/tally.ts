import type { Action } from "../actions/action.ts";
import { FAILING_HOSTS_MAX, FAILING_HOSTS_SHOWN_MAX, OVERVIEW_SLOT_MS, OVERVIEW_SLOTS } from "../config/limits.ts";

/** A change that the overview counts, in any order. */
export type Happened =
  | { readonly kind: "created"; readonly accountId: string; readonly at: Date }
  | {
      readonly kind: "attempted";
      readonly accountId: string;
      readonly at: Date;
      readonly host: string;
      /** The action's state after the attempt. */
      readonly next: "completed" | "failed" | "retry";
      readonly durationMs: number | null;
      /** One of our fixed sentences; null after a success. */
      readonly error: string | null;
    };

/** What a change of an action adds to the overview; null: nothing. `at` is when it was announced. */
export function countedOf(action: Action, at: Date): Happened | null {
  const { accountId, host, status, revision, result, attempts } = action;
  const isAtRest = status === "completed" || status === "failed" || status === "pending";
  if (revision === 1) return { kind: "created", accountId, at };
  // A pending action has a result only after a failed attempt: every other transition to it clears the result.
  if (!isAtRest || result === null || attempts === 0) return null;
  const { durationMs, lastError: error } = result;
  return { kind: "attempted", accountId, at, host, next: status === "pending" ? "retry" : status, durationMs, error };
}

/** The numbers of one time slot of the overview. */
export interface OverviewSlot {
  readonly at: Date;
  readonly created: number;
  /** Actions that completed in it. */
  readonly completed: number;
  readonly failed: number;
  readonly attempts: number;
  /** Duration of attempts in milliseconds; null: there was none. */
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

/** A host where attempts failed, counted since its first remembered failure. */
export interface FailingHost {
  readonly host: string;
  readonly failed: number;
  readonly attempts: number;
  readonly lastError: string;
  readonly lastFailedAt: Date;
}

/** What an account did in the last day. */
export interface Overview {
  /** Nothing before this is counted. */
  readonly since: Date;
  /** Older changes are still being read. */
  readonly isReading: boolean;
  /** Oldest first, without gaps; the last one is not over yet. */
  readonly slots: readonly OverviewSlot[];
  readonly slotMs: number;
  /** Duration of all attempts; null: there was none. */
  readonly latency: { readonly p50Ms: number; readonly p95Ms: number; readonly p99Ms: number } | null;
  /** Most failures first. */
  readonly hosts: readonly FailingHost[];
}

/** The retries of an account that wait for their time. */
export interface ScheduledRetry {
  readonly count: number;
  /** Due already: they wait for a free slot. */
  readonly due: number;
  /** There may be more: only a bounded number was read. */
  readonly isCut: boolean;
  /** The hosts whose next retry comes first. */
  readonly hosts: readonly { readonly host: string; readonly count: number; readonly nextAt: Date }[];
}

type Attempted = Extract<Happened, { readonly kind: "attempted" }>;

/** Numbers of one slot; latencies take memory only when there are some. */
interface Slot {
  created: number;
  completed: number;
  failed: number;
  attempts: number;
  latencies: Uint32Array | null;
}

interface Host {
  readonly failed: Uint32Array;
  readonly attempts: Uint32Array;
  lastError: string;
  lastFailedMs: number;
}

/** The number of the slot that a time belongs to. */
export function slotOf(at: Date): number {
  return Math.floor(at.getTime() / OVERVIEW_SLOT_MS);
}

/**
 * What one account did in the last day: a ring of slots, and a ring for each host that failed lately. Adding takes
 * constant time; memory is bounded (some 30 kB).
 */
export class AccountTally {
  readonly #slots: Slot[] = Array.from({ length: OVERVIEW_SLOTS }, emptySlot);
  readonly #hosts = new Map<string, Host>();
  #newest: number;

  constructor(now: Date) {
    this.#newest = slotOf(now);
  }

  /** Moves to the slot of `now` and clears what is older than a day. */
  advance(now: Date): void {
    const number = slotOf(now);
    // After a day without changes, or a clock set back by one, nothing that was counted is shown any more.
    if (Math.abs(number - this.#newest) >= OVERVIEW_SLOTS) {
      for (let at = 0; at < OVERVIEW_SLOTS; at += 1) this.#slots[at] = emptySlot();
      this.#hosts.clear();
      this.#newest = number;
    }
    while (this.#newest < number) {
      this.#newest += 1;
      this.#clear(this.#newest % OVERVIEW_SLOTS);
    }
  }

  /** Counts a change within the current day; anything else is ignored. */
  add(counted: Happened): void {
    const number = slotOf(counted.at);
    if (number <= this.#newest - OVERVIEW_SLOTS || number > this.#newest) return;
    const slot = this.#slotAt(number);
    if (counted.kind === "created") {
      slot.created += 1;
      return;
    }
    slot.attempts += 1;
    if (counted.next !== "retry") slot[counted.next] += 1;
    if (counted.durationMs !== null) {
      slot.latencies ??= new Uint32Array(LATENCY_STEPS);
      addOne(slot.latencies, latencyStepOf(counted.durationMs));
    }
    this.#addToHost(counted, number % OVERVIEW_SLOTS);
  }

  /** What is shown of it now. */
  view(now: Date): Pick<Overview, "slots" | "latency" | "hosts"> {
    this.advance(now);
    const all = new Uint32Array(LATENCY_STEPS);
    const slots: OverviewSlot[] = [];
    for (let number = this.#newest - OVERVIEW_SLOTS + 1; number <= this.#newest; number += 1) {
      const { latencies, ...counts } = this.#slotAt(number);
      latencies?.forEach((count, step) => (all[step] = (all[step] ?? 0) + count));
      const at = new Date(number * OVERVIEW_SLOT_MS);
      slots.push({
        at,
        ...counts,
        p50Ms: latencies && percentileMs(latencies, 0.5),
        p95Ms: latencies && percentileMs(latencies, 0.95),
      });
    }
    return { slots, latency: latencyOf(all), hosts: this.#failing() };
  }

  #clear(at: number): void {
    this.#slots[at] = emptySlot();
    for (const [name, host] of this.#hosts) {
      host.failed[at] = 0;
      host.attempts[at] = 0;
      if (sumOf(host.failed) === 0) this.#hosts.delete(name);
    }
  }

  #slotAt(number: number): Slot {
    return this.#slots[number % OVERVIEW_SLOTS] ?? emptySlot();
  }

  /** Hosts that never failed are not remembered. */
  #addToHost({ host: name, error, at }: Attempted, slot: number): void {
    let host = this.#hosts.get(name);
    if (host === undefined) {
      if (error === null) return;
      if (this.#hosts.size >= FAILING_HOSTS_MAX) this.#forgetHost();
      host = { failed: emptyCounts(), attempts: emptyCounts(), lastError: error, lastFailedMs: at.getTime() };
      this.#hosts.set(name, host);
    }
    addOne(host.attempts, slot);
    if (error === null) return;
    addOne(host.failed, slot);
    if (at.getTime() < host.lastFailedMs) return;
    host.lastError = error;
    host.lastFailedMs = at.getTime();
  }

  /** Removes the host whose last failure is oldest. */
  #forgetHost(): void {
    const oldest = [...this.#hosts].toSorted(([, a], [, b]) => a.lastFailedMs - b.lastFailedMs)[0];
    if (oldest !== undefined) this.#hosts.delete(oldest[0]);
  }

  #failing(): readonly FailingHost[] {
    return [...this.#hosts]
      .map(([host, { failed, attempts, lastError, lastFailedMs }]) => ({
        host,
        failed: sumOf(failed),
        attempts: sumOf(attempts),
        lastError,
        lastFailedAt: new Date(lastFailedMs),
      }))
      .toSorted((a, b) => b.failed - a.failed || b.lastFailedAt.getTime() - a.lastFailedAt.getTime())
      .slice(0, FAILING_HOSTS_SHOWN_MAX);
  }
}

function latencyOf(counts: Uint32Array): Overview["latency"] {
  const [p50Ms, p95Ms, p99Ms] = [0.5, 0.95, 0.99].map((share) => percentileMs(counts, share));
  if (typeof p50Ms !== "number" || typeof p95Ms !== "number" || typeof p99Ms !== "number") return null;
  return { p50Ms, p95Ms, p99Ms };
}

function emptySlot(): Slot {
  return { created: 0, completed: 0, failed: 0, attempts: 0, latencies: null };
}

function emptyCounts(): Uint32Array {
  return new Uint32Array(OVERVIEW_SLOTS);
}

function addOne(counts: Uint32Array, at: number): void {
  counts[at] = (counts[at] ?? 0) + 1;
}

function sumOf(counts: Uint32Array): number {
  return counts.reduce((all, count) => all + count, 0);
}

/** Four steps per doubling: a percentile is off by a tenth at most. */
const STEPS_PER_DOUBLING = 4;

/** Enough steps from one millisecond to an hour, the longest attempt that the settings allow. */
export const LATENCY_STEPS = 22 * STEPS_PER_DOUBLING;

/** The step that a duration belongs to. */
export function latencyStepOf(ms: number): number {
  const step = ms < 1 ? 0 : Math.floor(Math.log2(ms) * STEPS_PER_DOUBLING);
  return Math.min(step, LATENCY_STEPS - 1);
}

/** The duration that this share of all does not exceed, in milliseconds; null: none was counted. */
export function percentileMs(counts: Uint32Array, share: number): number | null {
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (all === 0) return null;
  const wanted = Math.max(1, Math.ceil(all * share));
  let seen = 0;
  const step = counts.findIndex((count) => (seen += count) >= wanted);
  // The middle of the step.
  return Math.round(2 ** ((step + 0.5) / STEPS_PER_DOUBLING));
}
