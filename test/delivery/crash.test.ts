import { expect, test } from "bun:test";
import type { Outcome } from "../../src/core/outcome.ts";
import { settle } from "../../src/core/settle.ts";
import { answering, holding } from "../actions/senders.ts";
import { openEngine } from "../support/engine.ts";
import { answered } from "../support/factory.ts";
import { newFolders } from "../support/shared.ts";

const newFolder = newFolders();

const OK: Outcome = answered(200);

/** A process that dies in the middle of an attempt of a new action, and the next one on the same files. */
async function dieInFlight(retries: number) {
  const folder = newFolder();
  const dead = holding();
  const before = await openEngine({ folder, sender: dead.sender });
  const { id } = await before.create({ retries });
  await dead.began;
  await before.abandon();
  const sender = answering(OK);
  return { id, sender, after: await openEngine({ folder, sender }) };
}

test("an attempt that a crash interrupted is unknown, and sent again while attempts remain", async () => {
  const { id, after, sender } = await dieInFlight(3);
  await using engine = after;
  const waiting = await engine.get(id);
  expect(waiting).toMatchObject({ status: "pending", attempts: 1 });
  expect(waiting.result?.lastError).toBe("The attempt was interrupted; the target may have received it.");
  engine.clock.advance(2_000);
  await engine.saw(id, { status: "completed", attempts: 2 });
  expect(sender.sent).toHaveLength(1);
});

test("what a crash interrupted is counted, but not as an attempt that took no time", async () => {
  const { after } = await dieInFlight(1);
  await using engine = after;
  const text = await engine.renderMetrics();
  expect(text).toContain('outgate_attempts_total{outcome="unknown",next="failed"} 1\n');
  expect(text).not.toContain('outgate_attempt_duration_seconds_count{outcome="unknown"}');
});

test("the result of an owner whose lease was taken over ends the action all the same, and is in the log first", async () => {
  const { sender, end } = holding();
  await using engine = await openEngine({ sender });
  const { id } = await engine.create({ retries: 2 });
  const active = await engine.saw(id, { status: "active" });
  // Somebody else held the lease to be over, and wrote the end of the attempt.
  const orphans = await engine.store.actions.orphans(null, 10, null);
  expect(orphans.map((orphan) => orphan.revision)).toEqual([active.revision]);
  const change = settle(active, {
    outcome: { kind: "unknown", fault: "interrupted" },
    now: engine.clock.now(),
    durationMs: null,
    timeoutMs: 30_000,
    backoff: { baseMs: 2_000, capMs: 3_600_000 },
    chance: 0.5,
  });
  expect(await engine.store.actions.apply({ change, at: engine.clock.now(), outbox: [] })).toBe(true);
  end(OK);
  await engine.loop.drain(1_000);
  expect(await engine.get(id)).toMatchObject({ status: "completed", attempts: 1 });
  const lines = engine.lines.filter(({ event }) => event.startsWith("action.") && event !== "action.created");
  expect(lines).toMatchObject([
    { event: "action.attempted", fields: { outcome: "answered", code: 200 } },
    { event: "action.fenced", fields: { run: 1, attempt: 1, outcome: "answered", code: 200 } },
    { event: "action.late_result", fields: { attempt: 1, effect: "settled", status: "completed" } },
  ]);
  expect(sender.sent).toHaveLength(1);
});
