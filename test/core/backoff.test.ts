import { afterEach, describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { SEED } from "../support/long.ts";
import { backoffMs, retryAfterMs } from "../../src/core/retry.ts";

const NO_JITTER = 0.5;

const HOUR_MS = 3_600_000;

const BACKOFF = { baseMs: 2_000, capMs: HOUR_MS };

const DAY_MS = 24 * HOUR_MS;

describe("the delay after a failure", () => {
  test("doubles from 2 s to the cap of an hour, and stays there", () => {
    const delays = Array.from({ length: 13 }, (_, at) => backoffMs(at + 1, BACKOFF, NO_JITTER));
    const doubled = [2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048].map((seconds) => seconds * 1_000);
    expect(delays).toEqual([...doubled, HOUR_MS, HOUR_MS]);
    expect(backoffMs(100, BACKOFF, NO_JITTER)).toBe(HOUR_MS);
  });

  test.each([
    [0, 0.8],
    [0.25, 0.9],
    [0.5, 1],
    [0.75, 1.1],
  ])("with the chance %d is %d times the plain one", (chance, factor) => {
    expect(backoffMs(1, BACKOFF, chance)).toBe(2_000 * factor);
    expect(backoffMs(100, BACKOFF, chance)).toBeCloseTo(HOUR_MS * factor, 3);
  });

  test("is within 20 % of the plain one, whatever the chance, and at least a millisecond", () => {
    console.log(`back-off: seed ${SEED}`);
    const failures = fc.integer({ min: 1, max: 100 });
    const chances = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    const bases = fc.integer({ min: 1, max: DAY_MS });
    const property = fc.property(failures, chances, bases, bases, (n, chance, baseMs, capMs) => {
      const delayMs = backoffMs(n, { baseMs, capMs }, chance);
      const plainMs = Math.min(capMs, baseMs * 2 ** (n - 1));
      expect(Number.isSafeInteger(delayMs)).toBe(true);
      expect(delayMs).toBeGreaterThanOrEqual(Math.max(1, Math.round(0.8 * plainMs)));
      expect(delayMs).toBeLessThanOrEqual(Math.max(1, Math.round(1.2 * plainMs)));
    });
    fc.assert(property, { seed: SEED, numRuns: 2_000 });
  });
});

describe("Retry-After", () => {
  const now = new Date("2026-01-01T00:00:00.000Z");
  const zone = process.env["TZ"] ?? "UTC";

  afterEach(() => {
    process.env["TZ"] = zone;
  });

  test.each([
    ["2", 2_000],
    ["120", 120_000],
    [" 7 ", 7_000],
    ["0", 1_000],
    ["2.0", 2_000],
    ["64.5701", 64_571],
    ["86400", DAY_MS],
    ["86401", DAY_MS],
    ["259200", DAY_MS],
    ["9".repeat(64), DAY_MS],
    ["Thu, 01 Jan 2026 00:01:30 GMT", 90_000],
    ["Thursday, 01-Jan-26 00:01:30 GMT", 90_000],
    ["Thu Jan  1 00:01:30 2026", 90_000],
    ["Tuesday, 06-Jan-26 00:00:00 GMT", DAY_MS],
    ["Thu, 01 Jan 2026 00:00:00 GMT", 1_000],
    ["Wed, 31 Dec 2025 23:59:59 GMT", 1_000],
    ["Sun, 06 Nov 1994 08:49:37 GMT", 1_000],
    ["Sun, 04 Jan 2026 00:00:00 GMT", DAY_MS],
  ])("%p is obeyed exactly between 1 s and 24 h", (header, delayMs) => {
    expect(retryAfterMs(header, now)).toBe(delayMs);
  });

  test.each([
    [null],
    [""],
    [" "],
    ["-5"],
    ["+5"],
    ["1.5.2"],
    ["1."],
    ["1e3"],
    ["0x10"],
    ["5s"],
    ["5, 6"],
    ["soon"],
    ["1 May"],
    ["2026-01-01T00:01:30Z"],
    ["Thu"],
    ["Thu, 32 Jan 2026 00:01:30 GMT"],
    ["Thu, 01 Jan 2026 25:61:61 GMT"],
    ["Nonsday, 01 Jan 2026 00:01:30 GMT"],
  ])("%p is as if absent", (header) => {
    expect(retryAfterMs(header, now)).toBeNull();
  });

  test.each(["Asia/Tokyo", "America/New_York", "UTC"])("means the same time on a machine in %s", (place) => {
    process.env["TZ"] = place;
    expect(retryAfterMs("Thu, 01 Jan 2026 00:01:30 GMT", now)).toBe(90_000);
    expect(retryAfterMs("Thursday, 01-Jan-26 00:01:30 GMT", now)).toBe(90_000);
    expect(retryAfterMs("Thu Jan  1 00:01:30 2026", now)).toBe(90_000);
  });

  test("as a date is never earlier, to the millisecond", () => {
    const midSecond = new Date(now.getTime() + 250);
    expect(retryAfterMs("Thu, 01 Jan 2026 00:01:30 GMT", midSecond)).toBe(89_750);
  });
});
