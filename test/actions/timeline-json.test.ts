import { expect, test } from "bun:test";
import { compile } from "../../src/api/check.ts";
import { TimelineJson } from "../../src/api/list-schemas.ts";
import { timelineJson } from "../../src/receipts/action-json.ts";
import type { ActionStatus } from "../../src/core/action.ts";
import type { TimelineEvent } from "../../src/core/timeline.ts";
import { anAttempt, NOON } from "../support/factory.ts";

const timeline = compile(TimelineJson);

const ATTEMPT = anAttempt(2, {
  response_code: 302,
  error: "The target answered with a redirect (302); redirects are never followed.",
  next_retry_at: "2026-03-04T12:00:04.000Z",
  location: "/elsewhere",
});

test.each<[TimelineEvent, ActionStatus]>([
  [{ type: "created", actor: "key:ann" }, "awaiting_approval"],
  [{ type: "held" }, "awaiting_approval"],
  [{ type: "approved", actor: "key:boss", reason: "fine" }, "pending"],
  [{ type: "rejected", actor: "key:boss", reason: null }, "cancelled"],
  [{ type: "started" }, "active"],
  [ATTEMPT, "pending"],
  [
    { ...ATTEMPT, outcome: "unknown", response_code: null, duration_ms: null, next_retry_at: null, location: null },
    "failed",
  ],
  [{ type: "retried", actor: "key:ann", reason: null }, "pending"],
  [{ type: "cancelled", actor: "system", reason: null }, "cancelled"],
  [{ type: "completed" }, "completed"],
  [{ type: "failed" }, "failed"],
  [
    { type: "callback", event: "action.completed", delivered: true, attempts: 1, error: null, next_retry_at: null },
    "completed",
  ],
])("a timeline shows %o with its place, time and run", (event, status) => {
  const shown: unknown = JSON.parse(timelineJson([{ seq: 7, at: NOON, run: 2, status, event }]));
  expect(shown).toEqual({ data: [{ seq: 7, at: "2026-03-04T12:00:00.000Z", run: 2, status, ...event }] });
  expect(timeline.issues(shown)).toEqual([]);
});
