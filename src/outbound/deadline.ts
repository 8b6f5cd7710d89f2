import type { Address } from "../core/addresses.ts";
import type { NotSent, Outcome } from "../core/outcome.ts";
import {
  DEADLINE_LATE_MS,
  DEADLINE_LATE_SHARE,
  DEADLINE_TURN_MS,
  DEADLINE_TURNS,
  DEADLINE_TURNS_LATE,
  DEADLINE_TURNS_MAX,
} from "../core/limits.ts";
import type { HttpMethod } from "../core/target.ts";

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

/** One complete HTTP request, to which only `Host` and framing are added. */
export interface OutboundRequest {
  readonly url: string;
  readonly method: HttpMethod;
  /** In the order in which they are sent, names as written. The sender adds `Host` and framing. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string | Uint8Array<ArrayBuffer> | null;
}

/** How a request is about to leave. */
export interface Route {
  readonly isHttps: boolean;
  /** The address, which was checked and has answered. */
  readonly address: Address;
}

/** The parts of an answer that say whether its body can be searched. */
export interface AnswerHead {
  readonly status: number;
  readonly headers: Pick<Headers, "get" | "has">;
}

/** Masks what an answer may not show. */
export interface AnswerMask {
  /** Masks the beginning of a text, at least its first `charsMax` characters. */
  maskStart(text: string, charsMax: number): Promise<string>;
  /** Masks a body; bytes: they are shown as they are. Null: it can't be searched, so it is withheld. */
  maskBody(bytes: Uint8Array, isCut: boolean, head: AnswerHead): Promise<string | Uint8Array | null>;
}

/** The whole request, with what was added in the last step, and what its answer may not show. */
export interface Completed {
  readonly headers: OutboundRequest["headers"];
  readonly mask: AnswerMask;
}

export interface SendLimits {
  /** One deadline for resolving, finding an address that accepts, connecting, TLS, sending and reading the whole answer. */
  readonly timeoutMs: number;
  /** Ends the attempt early: as `stopped` when no byte can have left, otherwise as `unknown` with `interrupted`. */
  readonly stop?: AbortSignal;
  /**
   * Called right before the request is handed to its connection, after the name was resolved and an address has answered, and
   * again for each further address. Resolves when the call may leave. False: nothing is sent, and it ends as `stopped`.
   */
  readonly mayBegin?: () => boolean | Promise<boolean>;
  /** Completes the request right before `mayBegin`, or says why it is not sent. Nothing else sees what it adds. */
  readonly complete?: (route: Route) => Promise<Completed | NotSent | Stopped>;
  /**
   * The account whose open connections a POST or PATCH may use and leave open. Null or omitted: it uses a new connection.
   */
  readonly keepFor?: string | null;
}

/** Stopped, or not allowed to begin, before any byte could leave. */
export interface Stopped {
  readonly kind: "stopped";
}

/**
 * Makes one HTTP call to an address that was checked, and never repeats it. Never throws: every failure is an outcome.
 */
export interface Sender {
  send(request: OutboundRequest, limits: SendLimits): Promise<Outcome | Stopped>;
}
