import type { OutgateClient } from "../client/client.ts";
import type { FollowOptions } from "../client/follow.ts";
import type { Action } from "../contract/action.ts";

/** The longest that the service lets one request wait (spec "Limits"). */
const WAIT_SECONDS_MAX = 120;

export function hasEnded({ status }: Action): boolean {
  return status === "completed" || status === "failed" || status === "cancelled";
}

/** The action when it has ended, or what it is when the seconds are over; asked for as often as that takes. */
export async function waitForEnd(client: OutgateClient, action: Action, seconds: number): Promise<Action> {
  const untilMs = performance.now() + seconds * 1_000;
  let now = action;
  while (!hasEnded(now)) {
    const left = Math.ceil((untilMs - performance.now()) / 1_000);
    if (left <= 0) return now;
    now = await client.getAction(now.id, { waitSeconds: Math.min(WAIT_SECONDS_MAX, left) });
  }
  return now;
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
