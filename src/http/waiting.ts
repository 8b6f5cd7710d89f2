import { REQUEST_ARRIVAL_MS_MAX } from "../domain/limits.ts";
import type { Clock } from "../ports/clock.ts";
import { drainBody } from "./rest.ts";
import type { RequestContext } from "./visit.ts";

/** Bun counts in seconds, and looks every four. */
export const IDLE_SECONDS = REQUEST_ARRIVAL_MS_MAX / 1_000;

export interface WaitingDeps {
  readonly clock: Clock;
  /** How long a request may take to arrive; `IDLE_SECONDS` unless it is given. */
  readonly arrivalSeconds?: number;
  /** The service stops: whoever waits gets what there is. */
  readonly draining: AbortSignal;
}

/**
 * Runs something that may take longer than a request may be silent. `stop` is aborted when the client goes away or the
 * service stops. The body has to be in by now: without its time limit a dripped one would live as long as it likes.
 */
export async function whileWaiting<T>(
  context: RequestContext,
  { clock, draining, arrivalSeconds = IDLE_SECONDS }: WaitingDeps,
  work: (stop: AbortSignal) => Promise<T>,
): Promise<T> {
  const { request, server } = context;
  context.kind = "wait";
  if (context.isBodyUnread) await drainBody(request, clock);
  const end = new AbortController();
  const stop = () => end.abort();
  if (request.signal.aborted || draining.aborted) stop();
  request.signal.addEventListener("abort", stop);
  draining.addEventListener("abort", stop);
  server?.timeout(request, 0);
  try {
    return await work(end.signal);
  } finally {
    request.signal.removeEventListener("abort", stop);
    draining.removeEventListener("abort", stop);
    // Bun does not bring it back by itself: the connection would stay open for good (measured).
    server?.timeout(request, arrivalSeconds);
  }
}
