import { describe, expect, test } from "bun:test";
import { type Caller } from "../../src/core/roles.ts";
import { openEngine } from "../support/engine.ts";
import { answered } from "../support/factory.ts";
import { Target } from "../support/target.ts";
import { refusalOf } from "./callers.ts";
import { answering } from "./senders.ts";

describe("a retry", () => {
  test("of a failed action is sent under the same key, and its attempts count anew", async () => {
    await using target = new Target(500, 500, 200);
    await using engine = await openEngine();
    const { id } = await engine.create({ url: target.url, retries: 2 });
    await engine.saw(id, { status: "pending", attempts: 1 });
    engine.clock.advance(2_000);
    await engine.saw(id, { status: "failed", attempts: 2 });
    engine.clock.advance(60_000);
    await engine.actionService.retry(engine.owner, id, "it is up again");
    const done = await engine.saw(id, { status: "completed" });
    expect(done).toMatchObject({ run: 2, attempts: 1, result: { responseCode: 200 } });
    // Compared apart, here and elsewhere: toMatchObject takes any two dates for equal.
    expect(done.startedAt).toEqual(engine.clock.now());
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
