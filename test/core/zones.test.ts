import { describe, expect, test } from "bun:test";
import { periodAt } from "../../src/core/zones.ts";

describe("an hour, a day and a month of a zone", () => {
  const period = (per: "hour" | "day" | "month", times: readonly string[], zone = "Europe/Berlin") =>
    new Set(times.map((time) => periodAt(new Date(time), per, zone))).size;

  test("begin and end by its clocks", () => {
    expect(period("day", ["2026-03-03T23:00:00Z", "2026-03-04T22:59:59.999Z"])).toBe(1);
    expect(period("day", ["2026-03-04T22:59:59.999Z", "2026-03-04T23:00:00Z"])).toBe(2);
    expect(period("month", ["2026-01-31T22:59:59Z", "2026-01-31T23:00:00Z"])).toBe(2);
    expect(period("month", ["2026-01-31T23:00:00Z", "2026-02-28T22:59:59Z"])).toBe(1);
    expect(period("hour", ["2026-03-04T05:29:59Z", "2026-03-04T05:30:00Z"], "Asia/Kolkata")).toBe(2);
    expect(period("hour", ["2026-03-04T05:30:00Z", "2026-03-04T06:29:59Z"], "Asia/Kolkata")).toBe(1);
  });

  test("are right on the days that change the clocks", () => {
    // 29 March has 23 hours, 25 October 25; the hour from two to three comes twice then.
    expect(period("day", ["2026-03-28T23:00:00Z", "2026-03-29T21:59:59Z"])).toBe(1);
    expect(period("day", ["2026-03-29T21:59:59Z", "2026-03-29T22:00:00Z"])).toBe(2);
    expect(period("day", ["2026-10-24T22:00:00Z", "2026-10-25T22:59:59Z"])).toBe(1);
    expect(period("day", ["2026-10-25T22:59:59Z", "2026-10-25T23:00:00Z"])).toBe(2);
    expect(period("hour", ["2026-10-25T00:00:00Z", "2026-10-25T00:59:59Z"])).toBe(1);
    expect(period("hour", ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"])).toBe(2);
    expect(period("month", ["2026-10-31T22:59:59Z", "2026-10-31T23:00:00Z"])).toBe(2);
  });
});
