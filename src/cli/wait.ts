import { setTimeout as pause } from "node:timers/promises";
import { backoffMs } from "../client/backoff.ts";
import type { OutgateClient } from "../client/client.ts";
import { OutgateError } from "../client/error.ts";
import type { FollowOptions } from "../client/follow.ts";
import type { Action } from "../contract/action.ts";

/** The longest that the service lets one request wait (spec "Limits"). */
const WAIT_SECONDS_MAX = 120;
/** The pauses between answers that come at once although nothing has ended: the service has no room for one more waiter. */
const PAUSE_MS_MIN = 500;
const PAUSE_MS_MAX = 10_000;
/** An answer that took as much of its wait was one that waited. */
const WAITED_SHARE = 0.5;

export function hasEnded({ status }: Action): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** What time it is, and how it passes. */
export interface Time {
  readonly nowMs: () => number;
  readonly pause: (ms: number) => Promise<unknown>;
}

const REAL_TIME: Time = { nowMs: () => performance.now(), pause: (ms) => pause(ms) };

/**
 * The action when it has ended, or what it is when the seconds are over. The service holds each request until then; where
 * it answers at once, or refuses for the moment, the next request waits, longer each time and as long as it was told.
 */
export async function waitForEnd(
  client: Pick<OutgateClient, "getAction">,
  action: Action,
  seconds: number,
  time: Time = REAL_TIME,
): Promise<Action> {
  const untilMs = time.nowMs() + seconds * 1_000;
  let now = action;
  let hasty = 0;
  while (!hasEnded(now)) {
    const beganMs = time.nowMs();
    const left = Math.ceil((untilMs - beganMs) / 1_000);
    if (left <= 0) return now;
    const waitSeconds = Math.min(WAIT_SECONDS_MAX, left);
    const answer = await client.getAction(now.id, { waitSeconds }).catch(unlessPassing);
    if (!(answer instanceof OutgateError)) now = answer;
    const hasWaited = time.nowMs() - beganMs >= WAITED_SHARE * waitSeconds * 1_000;
    if (hasEnded(now) || hasWaited) {
      hasty = 0;
      continue;
    }
    const toldMs = answer instanceof OutgateError ? (answer.retryAfterMs ?? 0) : 0;
    const pauseMs = Math.max(toldMs, backoffMs(hasty, { baseMs: PAUSE_MS_MIN, capMs: PAUSE_MS_MAX }));
    hasty += 1;
    const leftMs = untilMs - time.nowMs();
    // Whoever could not ask again in time is told why.
    if (pauseMs >= leftMs && answer instanceof OutgateError) throw answer;
    await time.pause(Math.max(0, Math.min(pauseMs, leftMs)));
  }
  return now;
}

/** The service is there and says that it has no room just now: that ends no wait. */
function unlessPassing(error: unknown): OutgateError {
  if (error instanceof OutgateError && (error.code === "rate_limited" || error.code === "unavailable")) return error;
  throw error;
}

/** Events, with the first of them on its way: whatever happens from here on is told. */
export async function openStream(client: OutgateClient, options: FollowOptions) {
  let opened = () => {};
  const isOpen = new Promise<void>((resolve) => (opened = resolve));
  const events = client.streamEvents({ ...options, onOpen: () => opened() });
  const first = events.next();
  await Promise.race([isOpen, first]);
  return { events, first };
}
