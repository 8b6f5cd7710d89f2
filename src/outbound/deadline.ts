import type { HttpMethod } from "../actions/action.ts";
import type { Outcome } from "../actions/outcome.ts";

/** Why an attempt was cut short by us; null while it was not. */
export type Cut = "timed_out" | "interrupted" | null;

/** One clock and one stop for a whole attempt: resolving, finding an address, connecting, TLS, sending and reading. */
export interface Deadline {
  readonly signal: AbortSignal;
  cut(): Cut;
  /** Milliseconds until it aborts; never less than 0. */
  leftMs(): number;
  /** Lets go of the timer and of the stop signal; every attempt ends with it. */
  close(): void;
}

/** Starts the clock. Aborts `timeoutMs` from now, or when the stop comes. */
export function openDeadline({ timeoutMs, stop }: SendLimits): Deadline {
  const controller = new AbortController();
  const endMs = performance.now() + timeoutMs;
  let cause: Cut = null;
  const end = (by: "timed_out" | "interrupted") => {
    cause ??= by;
    controller.abort();
  };
  const interrupt = () => end("interrupted");
  const timer = setTimeout(end, timeoutMs, "timed_out");
  if (stop?.aborted === true) interrupt();
  else stop?.addEventListener("abort", interrupt);
  return {
    signal: controller.signal,
    cut: () => cause,
    leftMs: () => Math.max(0, endMs - performance.now()),
    close() {
      clearTimeout(timer);
      stop?.removeEventListener("abort", interrupt);
    },
  };
}

/** One HTTP request, complete: what is listed here goes out and nothing is added but framing. */
export interface OutboundRequest {
  readonly url: string;
  readonly method: HttpMethod;
  /** In the order in which they are sent; names as written. `Host` and framing are the sender's. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: string | null;
}

export interface SendLimits {
  /** One deadline for resolving, finding an address that accepts, connecting, TLS, sending and reading the whole answer. */
  readonly timeoutMs: number;
  /** Ends the attempt early: as `stopped` where no byte can have left, else as `unknown` and `interrupted`. */
  readonly stop?: AbortSignal;
}

/** The stop came before any byte could leave: nothing was tried. */
export interface Stopped {
  readonly kind: "stopped";
}

/** Makes one HTTP call, once, to an address that was judged. Never throws: whatever happens is an outcome. */
export interface Sender {
  send(request: OutboundRequest, limits: SendLimits): Promise<Outcome | Stopped>;
}
