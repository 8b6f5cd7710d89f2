import { RetryLater } from "../core/domain-error.ts";
import {
  CHANNEL_TEST_EVERY_MS,
  CHANNEL_TESTERS_REMEMBERED_MAX,
  CHANNEL_TESTS_PER_HOUR_MAX,
  HOUR_MS,
} from "../core/limits.ts";
import type { Clock } from "../core/clock.ts";
import { RecentMap } from "../core/maps.ts";

/**
 * Limits messages that somebody requests and that are sent at once, not through the outbox with its own limits. Throws
 * `RetryLater` within `CHANNEL_TEST_EVERY_MS` of the sender's last one (an account's or a person's), and beyond
 * `CHANNEL_TESTS_PER_HOUR_MAX` in an hour. `what` begins the refusal: "This account has just tested channels."
 */
export function createMessageLimit(clock: Pick<Clock, "monotonicMs">, what: string): (sender: string) => void {
  const sentBy = new RecentMap<readonly number[]>(CHANNEL_TESTERS_REMEMBERED_MAX);
  return (sender) => {
    const nowMs = clock.monotonicMs();
    const recent = (sentBy.get(sender) ?? []).filter((atMs) => nowMs - atMs < HOUR_MS);
    const [oldest = nowMs, newest = Number.NEGATIVE_INFINITY] = [recent[0], recent.at(-1)];
    const isFull = recent.length >= CHANNEL_TESTS_PER_HOUR_MAX;
    const waitMs = isFull ? oldest + HOUR_MS - nowMs : newest + CHANNEL_TEST_EVERY_MS - nowMs;
    if (waitMs > 0) {
      const seconds = Math.ceil(waitMs / 1_000);
      throw new RetryLater(`${what} Try again in ${seconds} s.`, seconds);
    }
    sentBy.set(sender, [...recent, nowMs]);
  };
}
