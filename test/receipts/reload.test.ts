import { describe, expect, test } from "bun:test";
import { ACTION_STATUSES, isTerminal } from "../../src/core/action.ts";
import { RECEIPT_RELOAD_SECONDS_MAX, RECEIPT_RELOAD_SECONDS_MIN } from "../../src/core/limits.ts";
import { receiptReloadSeconds } from "../../src/receipts/history.ts";
import { later, NOON } from "../support/factory.ts";

const HELD = { status: "awaiting_approval", dueAt: null } as const;

const SECOND = 1_000;

describe("a receipt is loaded again", () => {
  test.each([
    [0, 2],
    [40, 2],
    [60, 3],
    [600, 30],
    [1_200, 60],
    [86_400, 60],
  ])("%d s after the last change: after %d s", (waited, seconds) => {
    expect(receiptReloadSeconds(HELD, NOON, later(waited * SECOND))).toBe(seconds);
  });

  test("right after an attempt that is due", () => {
    const waits = { status: "pending", dueAt: later(630 * SECOND) } as const;
    expect(receiptReloadSeconds(waits, NOON, later(600 * SECOND))).toBe(30);
    expect(receiptReloadSeconds(waits, NOON, later(620 * SECOND))).toBe(11);
    expect(receiptReloadSeconds(waits, NOON, later(630 * SECOND))).toBe(32);
  });

  test("as long as it has not ended, within its bounds, whatever the clocks say", () => {
    const delays = [-1_000_000, -1, 0, 0.1, 59.9, 1e9].map((seconds) => later(seconds * SECOND));
    const cases = ACTION_STATUSES.flatMap((status) =>
      delays.flatMap((now) => [null, NOON, ...delays].map((dueAt) => ({ status, dueAt, now }))),
    );
    for (const { now, ...action } of cases) {
      const reloads = receiptReloadSeconds(action, NOON, now);
      const isWithin =
        Number.isInteger(reloads) &&
        (reloads ?? 0) >= RECEIPT_RELOAD_SECONDS_MIN &&
        (reloads ?? 0) <= RECEIPT_RELOAD_SECONDS_MAX;
      expect({ ...action, now, isRight: isTerminal(action.status) ? reloads === null : isWithin }).toMatchObject({
        isRight: true,
      });
    }
  });
});
