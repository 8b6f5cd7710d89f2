import { describe, expect, test } from "bun:test";
import { setImmediate as turn } from "node:timers/promises";
import { type Caller } from "../../src/core/roles.ts";
import { openEngine, requestFor } from "../support/engine.ts";
import { answered } from "../support/factory.ts";
import { Target } from "../support/target.ts";
import { refusalOf } from "./callers.ts";
import { answering } from "./senders.ts";

describe("a retry", () => {
  test("of a failed action is a new run: counted anew, nothing left of the last one, the same key at the target", async () => {
    await using target = new Target(500, 500, 200);
    await using engine = await openEngine();
    const { id, createdAt } = await engine.create({ url: target.url, retries: 2 });
    await engine.saw(id, { status: "pending", attempts: 1 });
    engine.clock.advance(2_000);
    const failed = await engine.saw(id, { status: "failed", attempts: 2 });
    expect(failed.startedAt).toEqual(createdAt);
    engine.clock.advance(60_000);
    const retried = await engine.actionService.retry(engine.owner, id, "it is up again");
    expect(retried).toMatchObject({
      status: "pending",
      run: 2,
      attempts: 0,
      dueAt: engine.clock.now(),
      startedAt: null,
      finishedAt: null,
      result: null,
      createdAt,
    });
    const done = await engine.saw(id, { status: "completed" });
    expect(done).toMatchObject({ run: 2, attempts: 1, result: { responseCode: 200 } });
    // Compared apart, here and elsewhere: toMatchObject takes any two dates for equal.
    expect(done.startedAt).toEqual(engine.clock.now());
    const told = (await engine.actionService.timeline(engine.owner, id)).map(
      ({ run, event }) => `${run} ${event.type}`,
    );
    expect(told).toEqual([
      "1 created",
      "1 started",
      "1 attempt",
      "1 started",
      "1 attempt",
      "1 failed",
      "2 retried",
      "2 started",
      "2 attempt",
      "2 completed",
    ]);
    const keys = target.received.map(({ headers }) => headers.get("idempotency-key"));
    expect(keys).toEqual([id, id, id]);
    expect(target.received.map(({ headers }) => headers.get("x-outgate-attempt"))).toEqual(["1", "2", "1"]);
  });

  test("of a cancelled action sends what was not sent", async () => {
    const sender = answering(answered(200));
    await using engine = await openEngine({ sender, starts: false });
    const { id } = await engine.create({});
    await engine.actionService.cancel(engine.owner, id, null);
    expect(await engine.actionService.retry(engine.owner, id, null)).toMatchObject({
      status: "pending",
      run: 2,
      finishedAt: null,
    });
    await engine.loop.start();
    await engine.saw(id, { status: "completed", run: 2, attempts: 1 });
    expect(sender.sent).toHaveLength(1);
  });

  test("has all its attempts again, and no more", async () => {
    const sender = answering(answered(500));
    await using engine = await openEngine({ sender });
    const { id } = await engine.create({ retries: 3 });
    for (const run of [1, 2]) {
      for (const attempts of [1, 2]) {
        await engine.saw(id, { status: "pending", attempts, run });
        engine.clock.advance(60_000);
      }
      await engine.saw(id, { status: "failed", attempts: 3, run });
      expect(sender.sent).toHaveLength(3 * run);
      if (run === 1) await engine.actionService.retry(engine.owner, id, null);
    }
    engine.clock.advance(86_400_000);
    await turn();
    expect(sender.sent).toHaveLength(6);
  });

  test("of what needs a yes is held again, whatever happened before: one yes releases one run", async () => {
    const sender = answering(answered(500), answered(200));
    await using engine = await openEngine({ sender });
    const { actionService, owner, clock } = engine;
    const { id } = await engine.create({ approve: true, retries: 1 });
    await actionService.approve(owner, id, null);
    await engine.saw(id, { status: "failed" });

    const held = await actionService.retry(owner, id, null);
    expect(held).toMatchObject({
      status: "awaiting_approval",
      run: 2,
      attempts: 0,
      dueAt: null,
      approvedAt: null,
      approvedBy: null,
      result: null,
    });
    clock.advance(86_400_000);
    await turn();
    expect(sender.sent).toHaveLength(1);

    // After a person's no a retry sends nothing either.
    await actionService.cancel(owner, id, "no");
    expect(await actionService.retry(owner, id, null)).toMatchObject({ status: "awaiting_approval", run: 3 });
    clock.advance(86_400_000);
    await turn();
    expect(sender.sent).toHaveLength(1);

    await actionService.approve(owner, id, null);
    await engine.saw(id, { status: "completed", run: 3, attempts: 1 });
    expect(sender.sent).toHaveLength(2);
  });

  test("twice at once begins one run", async () => {
    const sender = answering(answered(500), answered(200));
    await using engine = await openEngine({ sender });
    const { id } = await engine.create({ retries: 1 });
    await engine.saw(id, { status: "failed" });
    const refusals = await Promise.all(
      [1, 2, 3].map(() => refusalOf(engine.actionService.retry(engine.owner, id, null))),
    );
    expect(refusals.filter((refusal) => refusal?.code === "not_retryable")).toHaveLength(2);
    expect(refusals.filter((refusal) => refusal === null)).toHaveLength(1);
    await engine.saw(id, { status: "completed", run: 2 });
    expect(sender.sent).toHaveLength(2);
  });
});

describe("a retry while its dedupe key", () => {
  test("is held by another action is refused and names it, until the day of that one is over", async () => {
    await using engine = await openEngine({ sender: answering(answered(500), answered(200)) });
    const { actionService, owner } = engine;
    const first = await engine.create({ dedupe: "d", retries: 1 });
    await engine.saw(first.id, { status: "failed" });
    const second = await engine.create({ dedupe: "d", retries: 1 });
    await engine.saw(second.id, { status: "completed" });
    const before = await engine.events(first.id);
    expect(await refusalOf(actionService.retry(owner, first.id, null))).toEqual({
      code: "not_retryable",
      message: `Action ${first.id} cannot be retried: action ${second.id} now has its dedupe key and is completed.`,
    });
    expect(await engine.events(first.id)).toEqual(before);
    engine.clock.jump(86_400_000);
    expect(await actionService.retry(owner, first.id, null)).toMatchObject({ status: "pending", run: 2 });
  });

  test("is its own again answers for it: a create with the key finds it", async () => {
    const sender = answering(answered(500));
    await using engine = await openEngine({ sender });
    const { actionService, owner } = engine;
    const first = await engine.create({ dedupe: "d", retries: 1 });
    await engine.saw(first.id, { status: "failed" });
    const second = await engine.create({ dedupe: "d", retries: 1 });
    await engine.saw(second.id, { status: "failed" });
    // Nothing is sent from here on.
    await engine.loop.drain(1_000);
    await actionService.retry(owner, first.id, null);
    expect((await engine.create({ dedupe: "d" })).id).toBe(first.id);
    expect(await refusalOf(actionService.retry(owner, second.id, null))).toMatchObject({ code: "not_retryable" });
  });

  test("was its own all along, cancelled, begins a new run", async () => {
    await using engine = await openEngine({ starts: false });
    const { id } = await engine.create({ dedupe: "d", idempotencyKey: "k" });
    await engine.actionService.cancel(engine.owner, id, null);
    expect(await engine.actionService.retry(engine.owner, id, null)).toMatchObject({ status: "pending", run: 2 });
  });

  test("is taken by a create at the same moment leaves one of the two alive, fifty times", async () => {
    await using engine = await openEngine({ sender: answering(answered(500)) });
    const { actionService, owner } = engine;
    const keys = Array.from({ length: 50 }, (_, at) => `d${at}`);
    const failed = await Promise.all(keys.map((dedupe) => engine.create({ dedupe, retries: 1 })));
    await Promise.all(failed.map(({ id }) => engine.saw(id, { status: "failed" })));
    // From here on nothing is sent, so that whoever lives stays alive.
    await engine.loop.drain(1_000);
    const ends = await Promise.all(
      failed.map(async ({ id, dedupe }, at) => {
        const later = async (turns: number) => {
          for (let waited = 0; waited < turns; waited += 1) await turn();
        };
        // In one commit the retry holds the key: only with a start is the create first.
        const isRetryLater = at % 2 === 0;
        const [refusal, created] = await Promise.all([
          later(isRetryLater ? at : 0).then(() => refusalOf(actionService.retry(owner, id, null))),
          later(isRetryLater ? 0 : at % 10).then(() => actionService.create(owner, requestFor({ dedupe }))),
        ]);
        if (refusal === null) {
          expect(created).toMatchObject({ action: { id }, differs: ["retries"] });
          return "retried";
        }
        expect(created.differs).toBeUndefined();
        expect(refusal).toMatchObject({ code: "not_retryable" });
        expect(refusal.message).toContain(created.action.id);
        expect((await actionService.get(owner, id)).status).toBe("failed");
        return "created";
      }),
    );
    const count = (end: string) => ends.filter((other) => other === end).length;
    console.log(`retry against create: ${count("retried")} retried, ${count("created")} created`);
    expect(count("retried")).toBeGreaterThan(0);
    expect(count("created")).toBeGreaterThan(0);
  });
});

describe("a retry gets no key past its hold", () => {
  test("and says first that there is nothing to retry", async () => {
    await using engine = await openEngine({ starts: false });
    const { id } = await engine.create({ method: "POST" });
    const agent: Caller = { ...engine.owner, role: "agent", hold: "all" };
    expect(await refusalOf(engine.actionService.retry(agent, id, null))).toMatchObject({ code: "not_retryable" });
  });
});
