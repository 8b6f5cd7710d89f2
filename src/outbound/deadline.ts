import type { SendLimits } from "../ports/sender.ts";

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
