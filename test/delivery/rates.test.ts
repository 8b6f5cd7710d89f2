import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { RATE_BURST_MS } from "../../src/core/limits.ts";
import { TokenBucket } from "../../src/delivery/token-bucket.ts";
import { shareOfRate } from "../../src/runtime/membership.ts";

/** The times at which calls begin that never stop asking, when they are asked for after these pauses. */
function beginnings(perSecond: number, pausesMs: readonly number[]): readonly number[] {
  let nowMs = 0;
  const bucket = new TokenBucket(perSecond, nowMs);
  const begun: number[] = [];
  for (const pauseMs of pausesMs) {
    nowMs += pauseMs;
    for (; bucket.has(nowMs); bucket.take()) begun.push(nowMs);
  }
  return begun;
}

/** The most of these times in one second. */
function mostInASecond(times: readonly number[]): number {
  let most = 0;
  let first = 0;
  for (const [index, time] of times.entries()) {
    while (time - (times[first] ?? 0) >= 1_000) first += 1;
    most = Math.max(most, index - first + 1);
  }
  return most;
}

const pauses = fc.array(fc.oneof(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 0, max: 3_000 })), {
  minLength: 1,
  maxLength: 400,
});

describe("a token bucket", () => {
  test("lets no more calls begin in any second than its rate, however it is asked", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2_000 }), pauses, (rate, pausesMs) => {
        expect(mostInASecond(beginnings(rate, pausesMs))).toBeLessThanOrEqual(rate);
      }),
    );
  });

  test.each([100, 1_000, 2_000])("of %d a second counts its first calls in the rate", (rate) => {
    expect(beginnings(rate, [0])).toHaveLength((rate * RATE_BURST_MS) / 1_000);
    expect(
      mostInASecond(
        beginnings(
          rate,
          Array.from({ length: 3_000 }, () => 1),
        ),
      ),
    ).toBeLessThanOrEqual(rate);
  });

  test.each([
    [1, 60],
    [10, 600],
    [1_000, 60_000],
  ])("of %d a second lets nearly so many begin in a minute, not fewer", (rate, calls) => {
    const begun = beginnings(
      rate,
      Array.from({ length: 60_000 }, () => 1),
    ).length;
    expect(begun).toBeGreaterThanOrEqual(0.98 * calls);
    expect(begun).toBeLessThanOrEqual(1.001 * calls);
  });

  test("of less than one a second waits longer than that between two", () => {
    expect(beginnings(0.01, [0, 50_000, 49_999, 1, 99_999, 1])).toEqual([0, 100_000, 200_000]);
  });

  test("says when the next call may begin, and counts what did not begin back", () => {
    const bucket = new TokenBucket(2, 0);
    expect([bucket.isFull(0), bucket.nextMs(0)]).toEqual([true, 0]);
    bucket.take();
    expect([bucket.has(499), bucket.nextMs(100), bucket.has(500)]).toEqual([false, 500, true]);
    bucket.take();
    bucket.giveBack(1);
    expect(bucket.has(500)).toBe(true);
    bucket.giveBack(9);
    bucket.take();
    expect(bucket.has(500)).toBe(false);
    const many = new TokenBucket(1_000, 0);
    while (many.has(0)) many.take();
    many.giveBack(1);
    many.take();
    expect(many.has(0)).toBe(false);
  });

  test("begins no new burst when its rate is changed, and goes on at the new one", () => {
    const bucket = new TokenBucket(1, 0);
    bucket.take();
    bucket.setRate(10, 0);
    expect([bucket.has(99), bucket.has(100)]).toEqual([false, true]);
    bucket.setRate(1_000, 100);
    bucket.setRate(1, 100);
    bucket.take();
    expect(bucket.has(1_000)).toBe(false);
  });

  test("takes a clock that stands still or goes back for no time", () => {
    const bucket = new TokenBucket(1, 1_000);
    bucket.take();
    expect([bucket.has(0), bucket.has(1_500), bucket.has(2_000)]).toEqual([false, false, true]);
  });
});

test("nodes share a rate equally, as far as they call the host", () => {
  expect([shareOfRate(12, 64, 3), shareOfRate(12, 2, 3), shareOfRate(12, 1, 3), shareOfRate(12, 64, 1)]).toEqual([
    4, 6, 12, 12,
  ]);
});
