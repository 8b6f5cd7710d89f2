import {
  DEADLINE_LATE_MS,
  DEADLINE_LATE_SHARE,
  DEADLINE_TURN_MS,
  DEADLINE_TURNS,
  DEADLINE_TURNS_LATE,
  DEADLINE_TURNS_MAX,
} from "../core/limits.ts";
import type { SendLimits } from "./sender.ts";

/** Why we ended an attempt early; null while we did not. */
export type EarlyEnd = "timed_out" | "interrupted" | null;

/**
 * One deadline and one stop signal for a whole attempt: resolving, finding an address, connecting, TLS, sending and
 * reading.
 */
export interface Deadline {
  readonly signal: AbortSignal;
  endedBy(): EarlyEnd;
  /** Milliseconds until it aborts; never less than 0. */
  leftMs(): number;
  /** Releases the timer and the stop signal. Call it at the end of every attempt. */
  close(): void;
}

/**
 * Starts the deadline, which ends after `timeoutMs` or when `stop` aborts. Its signal then aborts; after a timeout, only once
 * what had arrived was read, since a process that was frozen gets its timers before its sockets.
 */
export function openDeadline({ timeoutMs, stop }: SendLimits): Deadline {
  const controller = new AbortController();
  const endMs = performance.now() + timeoutMs;
  let cause: EarlyEnd = null;
  const end = (by: "timed_out" | "interrupted") => {
    cause ??= by;
    controller.abort();
  };
  const interrupt = () => end("interrupted");
  const cancel = afterReading(timeoutMs, () => end("timed_out"));
  if (stop?.aborted === true) interrupt();
  else stop?.addEventListener("abort", interrupt);
  return {
    signal: controller.signal,
    endedBy() {
      // Nothing new begins after the deadline, although what has arrived is still being read.
      if (cause === null && performance.now() >= endMs) cause = "timed_out";
      return cause;
    },
    leftMs: () => Math.max(0, endMs - performance.now()),
    close() {
      cancel();
      stop?.removeEventListener("abort", interrupt);
    },
  };
}

/**
 * Calls `ring` after `ms` and some further turns of the event loop, in which sockets are read. A long turn counts as one, so
 * that our own work takes none of them away. Returns a function that cancels it.
 */
export function afterReading(ms: number, ring: () => void): () => void {
  const dueMs = performance.now() + ms;
  const turn = (left: number) => {
    if (left > 0) timer = setTimeout(turn, DEADLINE_TURN_MS, left - 1);
    else ring();
  };
  let timer = setTimeout(() => {
    turn(turnsToRead(performance.now() - dueMs));
  }, ms);
  return () => clearTimeout(timer);
}

/** In how many turns sockets are read before a deadline that rang this late ends anything. */
export function turnsToRead(lateMs: number): number {
  if (lateMs <= DEADLINE_LATE_MS) return DEADLINE_TURNS;
  const turns = Math.ceil((lateMs * DEADLINE_LATE_SHARE) / DEADLINE_TURN_MS);
  return Math.min(DEADLINE_TURNS_MAX, Math.max(DEADLINE_TURNS_LATE, turns));
}
