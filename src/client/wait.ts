import type { Action } from "./api.ts";
import { isTemporary, OutgateError, pause, retryDelayMs } from "./transport.ts";
import type { CallOptions, WaitOptions } from "./types.ts";

/** Less than the minute after which proxies often end a silent request. */
const LONG_POLL_SECONDS = 50;

/** The pauses between requests if the service answers at once, because too many are waiting. */
const PAUSE_MS_MIN = 500;

const PAUSE_MS_MAX = 10_000;

/** A response counts as waited for if it took at least this share of its wait. */
const WAITED_SHARE = 0.5;

/** Replaced in tests. */
interface Time {
  readonly nowMs: () => number;
  readonly pause: (ms: number, signal?: AbortSignal) => Promise<void>;
}

const REAL_TIME: Time = { nowMs: () => performance.now(), pause };

export function isEnded({ status }: Action): boolean {
  return ["completed", "failed", "cancelled"].includes(status);
}

/**
 * Waits for the end of an action, at most `seconds`, and returns its state. The service holds each request until the end. If
 * it answers at once, refuses for now or is away, pauses before the next request: longer each time, and at least `Retry-After`.
 */
export async function waitForEnd(
  getAction: (id: string, options: WaitOptions) => Promise<Action>,
  action: Action,
  seconds: number,
  options: CallOptions = {},
  time: Time = REAL_TIME,
): Promise<Action> {
  const untilMs = time.nowMs() + seconds * 1_000;
  let latest = action;
  let shortWaits = 0;
  while (!isEnded(latest)) {
    const beganMs = time.nowMs();
    const left = Math.ceil((untilMs - beganMs) / 1_000);
    if (left <= 0) return latest;
    const waitSeconds = Math.min(LONG_POLL_SECONDS, left);
    const answer = await getAction(latest.id, { ...options, waitSeconds }).catch((error: unknown) => {
      // Also where its reason is an error of the client.
      options.signal?.throwIfAborted();
      return temporaryError(error);
    });
    if (!(answer instanceof OutgateError)) latest = answer;
    const isLong = time.nowMs() - beganMs >= WAITED_SHARE * waitSeconds * 1_000;
    const hasWaited = isLong && !(answer instanceof OutgateError);
    if (isEnded(latest) || hasWaited) {
      shortWaits = 0;
      continue;
    }
    const retryAfterMs = answer instanceof OutgateError ? (answer.retryAfterMs ?? 0) : 0;
    const pauseMs = Math.max(retryAfterMs, retryDelayMs(shortWaits, { baseMs: PAUSE_MS_MIN, capMs: PAUSE_MS_MAX }));
    shortWaits += 1;
    const leftMs = untilMs - time.nowMs();
    // No time is left for another request, so report the error.
    if (pauseMs >= leftMs && answer instanceof OutgateError) throw answer;
    await time.pause(Math.max(0, Math.min(pauseMs, leftMs)), options.signal);
  }
  return latest;
}

/** Returns an error that may pass, as while the service restarts and a proxy answers for it. Throws any other. */
export function temporaryError(error: unknown): OutgateError {
  if (isTemporary(error) || (error instanceof OutgateError && error.code === "not_outgate")) return error;
  throw error;
}
