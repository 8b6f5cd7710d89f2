import { expect, test } from "bun:test";
import { openEngine } from "../support/engine.ts";
import { answered } from "../support/factory.ts";
import { answering } from "./senders.ts";

test("a timeline tells everything that happened, oldest first, with run, time and the status after it", async () => {
  const redirect = { ...answered(302), location: "/elsewhere" };
  const sender = answering(redirect, { kind: "unknown", fault: "closed" }, answered(204));
  await using engine = await openEngine({ sender });
  const { actionService, owner, clock } = engine;
  const { id } = await engine.create({ approve: true, retries: 2 });
  clock.advance(1_000);
  await actionService.approve(owner, id, "go\non");
  await engine.saw(id, { status: "pending", attempts: 1 });
  clock.advance(2_000);
  await engine.saw(id, { status: "failed", attempts: 2 });
  clock.advance(1_000);
  await actionService.retry(owner, id, "again");
  await actionService.cancel(owner, id, null);
  await actionService.retry(owner, id, null);
  await actionService.approve(owner, id, null);
  await engine.saw(id, { status: "completed", run: 3 });

  const entries = await actionService.timeline(owner, id);
  expect(entries.map(({ run, at, status, event }) => [run, secondsOf(at), status, event])).toEqual([
    [1, 0, "awaiting_approval", { type: "created", actor: "key:owner" }],
    [1, 0, "awaiting_approval", { type: "held" }],
    [1, 1, "pending", { type: "approved", actor: "key:owner", reason: "go\non" }],
    [1, 1, "active", { type: "started" }],
    [
      1,
      1,
      "pending",
      {
        type: "attempt",
        attempt: 1,
        outcome: "answered",
        response_code: 302,
        error: "The target answered with a redirect (302); redirects are never followed.",
        duration_ms: 0,
        next_retry_at: "2026-01-01T00:00:03.000Z",
        location: "/elsewhere",
      },
    ],
    [1, 3, "active", { type: "started" }],
    [
      1,
      3,
      "failed",
      {
        type: "attempt",
        attempt: 2,
        outcome: "unknown",
        response_code: null,
        error: "The target closed the connection before the whole answer came.",
        duration_ms: 0,
        next_retry_at: null,
        location: null,
      },
    ],
    [1, 3, "failed", { type: "failed" }],
    [2, 4, "awaiting_approval", { type: "retried", actor: "key:owner", reason: "again" }],
    [2, 4, "awaiting_approval", { type: "held" }],
    [2, 4, "cancelled", { type: "rejected", actor: "key:owner", reason: null }],
    [3, 4, "awaiting_approval", { type: "retried", actor: "key:owner", reason: null }],
    [3, 4, "awaiting_approval", { type: "held" }],
    [3, 4, "pending", { type: "approved", actor: "key:owner", reason: null }],
    [3, 4, "active", { type: "started" }],
    [
      3,
      4,
      "completed",
      {
        type: "attempt",
        attempt: 1,
        outcome: "answered",
        response_code: 204,
        error: null,
        duration_ms: 0,
        next_retry_at: null,
        location: null,
      },
    ],
    [3, 4, "completed", { type: "completed" }],
  ]);
  const places = entries.map(({ seq }) => seq);
  expect(places).toEqual([...new Set(places)].toSorted((a, b) => a - b));
});

function secondsOf(at: Date): number {
  return (at.getTime() - Date.parse("2026-01-01T00:00:00.000Z")) / 1_000;
}
