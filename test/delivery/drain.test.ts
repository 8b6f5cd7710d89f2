import { expect, test } from "bun:test";
import { answering, holding } from "../actions/senders.ts";
import { answered } from "../support/factory.ts";
import { openEngine, wrapping } from "../support/engine.ts";
import { Target } from "../support/target.ts";

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
