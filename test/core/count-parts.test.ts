import { describe, expect, test } from "bun:test";
import { CountParts } from "../../src/core/account-rules.ts";
import { aRuleCount } from "../support/factory.ts";

interface Part {
  readonly start: number;
  amount: bigint;
}

describe("parts of counts", () => {
  test("are found from one time to another, in whatever order they were added, each by its count", () => {
    const parts = new CountParts<Part>();
    const add = (start: number, subject = "s") => {
      const part = parts.at({ ruleId: "rul_a", subject, start }, () => ({ start, amount: 0n }));
      part.amount += 1n;
    };
    for (const start of [50, 10, 30, 20, 40, 30]) add(start);
    add(30, "t");
    const within = (from: number, to: number, subject = "s") =>
      parts.within({ ruleId: "rul_a", subject, from, to }).map(({ start, amount }) => [start, Number(amount)]);
    expect(within(20, 40)).toEqual([
      [20, 1],
      [30, 2],
      [40, 1],
    ]);
    expect(within(21, 29)).toEqual([]);
    expect(within(0, 10)).toEqual([[10, 1]]);
    expect(within(0, Number.MAX_SAFE_INTEGER, "t")).toEqual([[30, 1]]);
    expect(within(0, 99, "u")).toEqual([]);
  });

  test("are beyond a limit together with what a request adds", () => {
    const parts = new CountParts<Part>();
    const count = aRuleCount({ start: 10, from: 5, to: 15, amount: "2", limit: "4" });
    for (const start of [4, 5, 15, 16]) parts.at({ ...count, start }, () => ({ start, amount: 1n }));
    expect(parts.isBeyond(count)).toBe(false);
    parts.at(count, () => ({ start: 10, amount: 1n }));
    expect(parts.isBeyond(count)).toBe(true);
    expect(parts.isBeyond({ ...count, from: 6 })).toBe(false);
  });
});
