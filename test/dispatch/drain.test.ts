import { expect, test } from "bun:test";
import type { Outcome } from "../../src/domain/outcome.ts";
import type { Sender } from "../../src/ports/sender.ts";
import { verifies } from "../spec/verifies.ts";
import { openEngine } from "../support/engine.ts";
import { Target } from "../support/target.ts";

test("a stop lets what is in flight end and claims nothing more", async () => {
  verifies("decision.11.sigterm");
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
  expect(await engine.desk.get(engine.owner, first.id)).toMatchObject({ status: "completed" });
  expect(await engine.desk.get(engine.owner, second.id)).toMatchObject({ status: "pending", attempts: 0 });
  expect(target.received).toHaveLength(1);
  expect(engine.clock.timers).toBe(0);
});

test("what outlasts the drain limit is interrupted and recorded as unknown", async () => {
  verifies("hostile.5.stop-bounded");
  const arrived = Promise.withResolvers<void>();
  const sender: Sender = {
    send: (_request, { stop }) => {
      arrived.resolve();
      return new Promise<Outcome>((resolve) => {
        stop?.addEventListener("abort", () => resolve({ kind: "unknown", fault: "interrupted" }));
      });
    },
  };
  await using engine = await openEngine({ sender });
  const { id } = await engine.create({});
  await arrived.promise;
  const drained = engine.drain(30_000);
  engine.clock.advance(30_000);
  await drained;
  expect(await engine.desk.get(engine.owner, id)).toMatchObject({ status: "pending", attempts: 1 });
  expect(await engine.happenings(id)).toContainEqual(expect.objectContaining({ type: "attempt", outcome: "unknown" }));
});
