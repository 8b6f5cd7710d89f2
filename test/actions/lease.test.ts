import { expect, test } from "bun:test";
import { attemptMs } from "../../src/core/outcome.ts";
import { ATTEMPT_MS_MIN, LEASE_GRACE_MS, LEASE_WRITE_MS } from "../../src/core/limits.ts";

const NOW = new Date("2026-01-01T12:00:00.000Z");

const within = (leftMs: number, timeoutMs = 30_000) =>
  attemptMs({ leaseUntil: new Date(NOW.getTime() + leftMs) }, NOW, timeoutMs);

test("an attempt has its own limit, and ends while its lease leaves time to write the result down", () => {
  expect(within(30_000 + LEASE_GRACE_MS)).toBe(30_000);
  expect(within(30_000 + LEASE_WRITE_MS)).toBe(30_000);
  expect(within(29_999 + LEASE_WRITE_MS)).toBe(29_999);
  expect(within(ATTEMPT_MS_MIN + LEASE_WRITE_MS)).toBe(ATTEMPT_MS_MIN);
  // A wall clock that was set back makes none longer.
  expect(within(3_600_000)).toBe(30_000);
});

test("it does not begin with less than the least time, without a lease or after it", () => {
  expect(within(ATTEMPT_MS_MIN + LEASE_WRITE_MS - 1)).toBe(0);
  expect([within(0), within(-3_600_000), attemptMs({ leaseUntil: null }, NOW, 30_000)]).toEqual([0, 0, 0]);
  // Where the limit itself is shorter than that, it is all that an attempt needs.
  expect([within(100 + LEASE_WRITE_MS, 100), within(99 + LEASE_WRITE_MS, 100)]).toEqual([100, 0]);
});
