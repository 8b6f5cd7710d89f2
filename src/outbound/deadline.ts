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
 * Starts the deadline: it is over after `timeoutMs`, or when `stop` aborts. Its signal then aborts, after a timeout only
 * when what had arrived was read: a process that stood still hears of its timers before its sockets.
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
      // Nothing new begins after it, even though what has arrived is still being read.
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
 * Calls `ring` after so many milliseconds and some further turns of the event loop, in which sockets are read. A turn that
 * is held up counts as one, so that work of our own takes none of them away. Returns a function that cancels it.
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

/** The turns in which sockets are read before a deadline ends anything that rang so late. */
export function turnsToRead(lateMs: number): number {
  if (lateMs <= DEADLINE_LATE_MS) return DEADLINE_TURNS;
  const turns = Math.ceil((lateMs * DEADLINE_LATE_SHARE) / DEADLINE_TURN_MS);
  return Math.min(DEADLINE_TURNS_MAX, Math.max(DEADLINE_TURNS_LATE, turns));
}

/** One complete HTTP request: nothing is added to it but `Host` and framing. */
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
  /** It was checked, and has answered. */
  readonly address: Address;
}

/** What says whether a body can be searched. */
export interface AnswerHead {
  readonly status: number;
  readonly headers: Pick<Headers, "get" | "has">;
}

/** What an answer may not show. */
export interface AnswerMask {
  /** The beginning of a text: at least its first `charsMax` characters are read. */
  maskStart(text: string, charsMax: number): Promise<string>;
  /** Null: it can't be told what is in it, so that it is withheld. */
  maskBody(bytes: Uint8Array, isCut: boolean, head: AnswerHead): Promise<string | null>;
}

/** The whole request, of which the sender knew only a part, and what its answer may not show. */
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
   * Asked right before the request is handed to its connection, after names are resolved and an address has answered.
   * False: nothing is sent, and it ends as `stopped`. Asked again before each further address.
   */
  readonly mayBegin?: () => boolean;
  /** Completes the request, right before `mayBegin` is asked; or says why it is not sent. Nothing else sees what it adds. */
  readonly complete?: (route: Route) => Promise<Completed | NotSent | Stopped>;
  /**
   * The account on whose open connections it may go if it is a POST or PATCH, leaving its own open after it. Null or
   * omitted: it has a connection of its own.
   */
  readonly keepFor?: string | null;
}

/** Stopped, or not let begin, before any byte could leave: nothing was tried. */
export interface Stopped {
  readonly kind: "stopped";
}

/**
 * Makes one HTTP call to an address that was checked, and never repeats it. Never throws: every failure is an outcome.
 */
export interface Sender {
  send(request: OutboundRequest, limits: SendLimits): Promise<Outcome | Stopped>;
}
