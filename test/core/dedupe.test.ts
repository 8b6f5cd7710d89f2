import { describe, expect, test } from "bun:test";
import type { ActionRequest } from "../../src/core/action.ts";
import { openEngine, requestFor } from "../support/engine.ts";
import { answered } from "../support/factory.ts";
import { answering, holding } from "../actions/senders.ts";

const KEYS = [
  ["Idempotency-Key", { idempotencyKey: "k1" }],
  ["dedupe", { dedupe: "k1" }],
] as const satisfies readonly (readonly [string, Partial<ActionRequest>])[];

describe.each(KEYS)("creates with the same %s", (_name, key) => {
  test("answer with the action as it is now, and what differs", async () => {
    await using engine = await openEngine({ sender: answering(answered(201, '{"n":1.0}')) });
    const { id } = await engine.create(key);
    const now = await engine.saw(id, { status: "completed" });
    const answer = await engine.actionService.create(engine.owner, requestFor({ ...key, approve: true, retries: 5 }));
    expect(answer).toEqual({ action: now, differs: ["retries", "approve"] });
  });
});

test("a matching create writes nothing: no second row, no second entry in the timeline, no news", async () => {
  const { sender, began, end } = holding();
  await using engine = await openEngine({ sender });
  const { id } = await engine.create({ dedupe: "d" });
  await began;
  const before = await engine.events(id);
  let heard = 0;
  const unsubscribe = engine.bus.subscribe(() => (heard += 1));
  await engine.create({ dedupe: "d", retries: 7 });
  unsubscribe();
  expect(heard).toBe(0);
  expect(await engine.events(id)).toEqual(before);
  expect((await engine.get(id)).retries).toBe(3);
  end(answered(200));
  await engine.saw(id, { status: "completed" });
});
