import { expect, test } from "bun:test";
import type { ActionStatus } from "../../src/core/action.ts";
import type { TimelineEvent, TimelineEntry } from "../../src/core/timeline.ts";
import { runsOf } from "../../src/pages/attempts.tsx";
import { anAttempt, later, NOON } from "../support/factory.ts";

type Row = readonly [atMs: number, status: ActionStatus, event: TimelineEvent, run?: number];

const failed = (attempt: number) =>
  anAttempt(attempt, { response_code: 503, error: "The target answered with status 503." });

const told = (type: "callback"): TimelineEvent => ({
  type,
  event: "action.completed",
  delivered: true,
  attempts: 1,
  error: null,
  next_retry_at: null,
});

function timelineOf(...rows: readonly Row[]): readonly TimelineEntry[] {
  return rows.map(([atMs, status, event, run = 1], seq) => ({ seq, at: later(atMs), run, status, event }));
}

/** Kind, begin and end in milliseconds after noon. */
const drawn = (rows: readonly Row[], nowMs = 99_000) =>
  runsOf(timelineOf(...rows), later(nowMs)).map(({ run, spans }) => [
    run,
    spans.map(({ kind, from, to }) => `${kind} ${from.getTime() - NOON.getTime()}-${to.getTime() - NOON.getTime()}`),
  ]);

const created: TimelineEvent = { type: "created", actor: "key:agent" };

test("a run is what it was spent with, one stretch behind the other", () => {
  const rows: readonly Row[] = [
    [0, "awaiting_approval", created],
    [0, "awaiting_approval", { type: "held" }],
    [60, "pending", { type: "approved", actor: "user:ann" }],
    [65, "active", { type: "started" }],
    [70, "pending", failed(1)],
    [170, "active", { type: "started" }],
    [180, "completed", anAttempt(2)],
    [180, "completed", { type: "completed" }],
    [500, "completed", told("callback")],
  ];
  expect(drawn(rows)).toEqual([[1, ["approval 0-60", "wait 60-65", "bad 65-70", "wait 70-170", "good 170-180"]]]);
});

test("what is not over goes on to now", () => {
  expect(drawn([[0, "awaiting_approval", created]], 5_000)).toEqual([[1, ["approval 0-5000"]]]);
  expect(
    drawn(
      [
        [0, "pending", created],
        [10, "active", { type: "started" }],
      ],
      25,
    ),
  ).toEqual([[1, ["wait 0-10", "running 10-25"]]]);
});

test("each run is its own, from its retry on", () => {
  const rows: readonly Row[] = [
    [0, "pending", created],
    [1, "active", { type: "started" }],
    [4, "failed", failed(1)],
    [4, "failed", { type: "failed" }],
    [900, "pending", { type: "retried", actor: "user:ann" }, 2],
    [901, "active", { type: "started" }, 2],
    [905, "completed", anAttempt(1), 2],
  ];
  expect(drawn(rows)).toEqual([
    [1, ["wait 0-1", "bad 1-4"]],
    [2, ["wait 900-901", "good 901-905"]],
  ]);
});

test("a timeline whose beginning is lost, or that has none, is no error", () => {
  expect(drawn([])).toEqual([]);
  expect(drawn([[0, "completed", { type: "completed" }]])).toEqual([[1, []]]);
  expect(drawn([[0, "completed", told("callback")]])).toEqual([]);
});
