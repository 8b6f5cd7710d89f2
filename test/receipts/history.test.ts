import { describe, expect, test } from "bun:test";
import { ACTION_STATUSES, isTerminal } from "../../src/core/action.ts";
import { RECEIPT_RELOAD_SECONDS_MAX, RECEIPT_RELOAD_SECONDS_MIN } from "../../src/core/limits.ts";
import type { TimelineEntry, TimelineEvent } from "../../src/core/timeline.ts";
import { partIn, receiptHistory, receiptReloadSeconds } from "../../src/receipts/receipt.ts";
import { anAttempt, later, NOON } from "../support/factory.ts";

const ATTEMPT = anAttempt(1, { response_code: 500 });

function timelineOf(events: readonly TimelineEvent[]): readonly TimelineEntry[] {
  return events.map((event, at) => ({ seq: at + 1, at: NOON, run: 1, status: "pending", event }));
}

/** Each attempt with its beginning and its end. */
const runs = (count: number) =>
  timelineOf(Array.from({ length: count }, () => [{ type: "started" }, ATTEMPT, { type: "failed" }] as const).flat());

const attemptsOf = (entries: readonly TimelineEntry[]) => entries.filter(({ event }) => event.type === "attempt");

describe("the part of a timeline that a receipt shows", () => {
  test("is all of it while it has fifty attempts", () => {
    const timeline = runs(50);
    expect(receiptHistory(timeline, 0)).toMatchObject({ entries: timeline, hasEarlier: false, earlierAttempts: 0 });
  });

  test("begins behind the fifty-first newest attempt, and its count is of all", () => {
    const timeline = runs(51);
    const newest = receiptHistory(timeline, 0);
    expect(attemptsOf(newest.entries)).toHaveLength(50);
    expect(newest).toMatchObject({ part: 0, hasEarlier: true, attempts: 51, earlierAttempts: 1 });
    expect(newest.entries.at(-1)).toEqual(timeline.at(-1));
  });

  test("has at most 300 entries, also where nothing was attempted", () => {
    const timeline = timelineOf(Array.from({ length: 301 }, () => ({ type: "held" }) as const));
    expect(receiptHistory(timeline, 0).entries).toEqual(timeline.slice(1));
    expect(receiptHistory(timeline, 1).entries).toEqual(timeline.slice(0, 1));
  });

  test.each([0, 1, 49, 50, 51, 100, 313])("leaves nothing out and shows nothing twice: %i attempts", (count) => {
    const timeline = runs(count);
    const parts: TimelineEntry[][] = [];
    for (let part = 0; parts.length === 0 || receiptHistory(timeline, part - 1).hasEarlier; part += 1) {
      parts.unshift([...receiptHistory(timeline, part).entries]);
    }
    expect(parts.flat()).toEqual([...timeline]);
    // Beyond the oldest part there is the oldest one.
    expect(receiptHistory(timeline, 9_999).entries).toEqual(parts[0] ?? []);
  });

  test.each([
    ["", 0],
    ["earlier=2", 2],
    ["earlier=-1", 0],
    ["earlier=99999", 0],
    ["earlier=1e3", 0],
    ["reload=off&earlier=1", 1],
  ])("is asked for by a short number: %j", (search, part) => {
    expect(partIn(search)).toBe(part);
  });
});

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
