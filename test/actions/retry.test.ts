import { describe, expect, test } from "bun:test";
import { type Caller } from "../../src/core/roles.ts";
import { openEngine } from "../support/engine.ts";
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
});

describe("a retry gets no key past its hold", () => {
  test("and says first that there is nothing to retry", async () => {
    await using engine = await openEngine({ starts: false });
    const { id } = await engine.create({ method: "POST" });
    const agent: Caller = { ...engine.owner, role: "agent", hold: "all" };
    expect(await refusalOf(engine.actionService.retry(agent, id, null))).toMatchObject({ code: "not_retryable" });
  });
});
