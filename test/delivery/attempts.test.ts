import { expect, test } from "bun:test";
import type { Outcome } from "../../src/core/outcome.ts";
import { settle } from "../../src/core/settle.ts";
import type { Claim, Queue, Store } from "../../src/core/store.ts";
import type { Sender } from "../../src/outbound/sender.ts";
import { answering, holding } from "../actions/senders.ts";
import { FakeClock } from "../support/clock.ts";
import { openEngine, wrapping } from "../support/engine.ts";
import { answered } from "../support/factory.ts";
import { newFolders } from "../support/shared.ts";
import { Target } from "../support/target.ts";

test("every attempt carries the same ids, its own number and a signature over its own time", async () => {
  const sender = answering({ kind: "not_sent", fault: "refused" });
  await using engine = await openEngine({ sender });
  const { id } = await engine.create({ body: '{"a":1}', headers: { "user-agent": "Agent/1", "X-Plan": "b" } });
  await engine.saw(id, { status: "pending", attempts: 1 });
  engine.clock.advance(2_000);
  await engine.saw(id, { status: "pending", attempts: 2 });
  const [first, second] = sender.sent.map(({ headers }) => new Headers(headers.map(([name, value]) => [name, value])));
  for (const headers of [first, second]) {
    expect(headers?.get("webhook-id")).toBe(id);
    expect(headers?.get("idempotency-key")).toBe(id);
    expect(headers?.get("user-agent")).toMatch(/^Agent\/1 Outgate\/\d/);
    expect(headers?.get("content-type")).toBe("application/json");
    expect(headers?.get("x-plan")).toBe("b");
  }
  expect([first?.get("x-outgate-attempt"), second?.get("x-outgate-attempt")]).toEqual(["1", "2"]);
  expect(first?.get("webhook-timestamp")).not.toBe(second?.get("webhook-timestamp"));
  expect(first?.get("webhook-signature")).not.toBe(second?.get("webhook-signature"));
});

test("ten thousand sleeping retries hold one timer each for alarm, sweep and rescue", async () => {
  await using engine = await openEngine({
    sender: answering({ kind: "not_sent", fault: "refused" }),
    env: { RATE_LIMIT_PER_SECOND: "0" },
  });
  const created = await Promise.all(Array.from({ length: 2_000 }, () => engine.create({})));
  await Promise.all(created.map(({ id }) => engine.saw(id, { status: "pending", attempts: 1 })));
  // Of actions, of callbacks and of mails.
  expect(engine.clock.timers).toBeLessThanOrEqual(3 * 3);
});

test("what is ours is set over whatever a caller sent under the same name, but for an Idempotency-Key", async () => {
  const sender = answering({ kind: "not_sent", fault: "refused" });
  await using engine = await openEngine({ sender });
  const own = { "idempotency-key": "theirs" };
  const headers = { ...own, "Webhook-Id": "forged", "webhook-signature": "v1,forged", "x-outgate-attempt": "9" };
  const { id } = await engine.create({ headers });
  await engine.saw(id, { status: "pending", attempts: 1 });
  const sent = sender.sent[0]?.headers ?? [];
  const valuesOf = (name: string) =>
    sent.filter(([sentName]) => sentName.toLowerCase() === name).map(([, value]) => value);
  expect(valuesOf("idempotency-key")).toEqual(["theirs"]);
  expect(valuesOf("webhook-id")).toEqual([id]);
  expect(valuesOf("x-outgate-attempt")).toEqual(["1"]);
  expect(valuesOf("webhook-signature")).toEqual([expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/)]);
});

const TIMED_OUT: Outcome = { kind: "unknown", fault: "timed_out" };

/** A store whose commits take so long by the wall clock, and a sender that tells how long its calls may take. */
function slowCommits(slowMs: number) {
  const clock = new FakeClock();
  const timeouts: number[] = [];
  const sender: Sender = {
    async send(_request, { timeoutMs }) {
      timeouts.push(timeoutMs);
      return TIMED_OUT;
    },
  };
  const slow = async <T>(written: Promise<T>): Promise<T> => {
    const result = await written;
    clock.advance(slowMs);
    return result;
  };
  const slowly = <Row, Q extends Queue<Row>>(queue: Q): Q => ({
    ...queue,
    claimDue: (claim: Claim) => slow(queue.claimDue(claim)),
  });
  const wrapStore = (store: Store): Store => ({
    ...store,
    actions: { ...slowly(store.actions), create: (creation) => slow(store.actions.create(creation)) },
    outbox: { ...store.outbox, callbacks: slowly(store.outbox.callbacks) },
  });
  return { clock, sender, wrapStore, timeouts };
}

test("an attempt whose claim took long to commit is cut by its lease, and says after how long", async () => {
  const { timeouts, ...options } = slowCommits(12_000);
  await using engine = await openEngine(options);
  const { id } = await engine.create({ retries: 2 });
  const first = await engine.saw(id, { status: "pending", attempts: 1 });
  expect(first.result?.lastError).toBe("The target did not answer within 28 seconds.");
  engine.clock.advance(2_000);
  await engine.saw(id, { status: "failed", attempts: 2 });
  // The first was claimed with its create, the second by a claim of its own.
  expect(timeouts).toEqual([28_000, 28_000]);
});

test("so is that of a callback", async () => {
  const { timeouts, ...options } = slowCommits(12_000);
  await using engine = await openEngine(options);
  const { id } = await engine.create({ approve: true, callback: "http://127.0.0.1:9/done" });
  const [told] = await engine.told(id, "callback", 1);
  expect(told).toMatchObject({ error: "The target did not answer within 28 seconds." });
  expect(timeouts).toEqual([28_000]);
});

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

test("a stop lets what is in flight end and claims nothing more", async () => {
  const gate = Promise.withResolvers<void>();
  await using target = new Target(async () => {
    await gate.promise;
    return new Response("done");
  });
  await using engine = await openEngine();
  const first = await engine.create({ url: target.url });
  await target.saw(1);
  const drained = engine.drain(30_000);
  const second = await engine.create({ url: target.url });
  gate.resolve();
  await drained;
  expect(await engine.get(first.id)).toMatchObject({ status: "completed" });
  expect(await engine.get(second.id)).toMatchObject({ status: "pending", attempts: 0 });
  expect(target.received).toHaveLength(1);
  expect(engine.clock.timers).toBe(0);
});

test("a stop waits for an action that is created and claimed while it begins", async () => {
  const [stored, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const wrapStore = wrapping("actions", (actions) => ({
    create: async (creation) => {
      const created = await actions.create(creation);
      stored.resolve();
      await answer.promise;
      return created;
    },
  }));
  await using engine = await openEngine({ sender: answering(answered(200)), wrapStore });
  const creating = engine.create({});
  await stored.promise;
  const drained = engine.drain(30_000);
  answer.resolve();
  const { id } = await creating;
  await drained;
  expect(await engine.get(id)).toMatchObject({ status: "completed", attempts: 1 });
});

test("what outlasts the drain limit is interrupted and recorded as unknown", async () => {
  const { sender, began } = holding();
  await using engine = await openEngine({ sender });
  const { id } = await engine.create({});
  await began;
  const drained = engine.drain(30_000);
  engine.clock.advance(30_000);
  await drained;
  expect(await engine.get(id)).toMatchObject({ status: "pending", attempts: 1 });
  expect(await engine.events(id)).toContainEqual(expect.objectContaining({ type: "attempt", outcome: "unknown" }));
});
