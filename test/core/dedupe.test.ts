import { describe, expect, test } from "bun:test";
import type { Action, ActionRequest, ActionStatus } from "../../src/core/action.ts";
import { openEngine, requestFor } from "../support/engine.ts";
import { answered } from "../support/factory.ts";
import { Target } from "../support/target.ts";
import { anotherOwner } from "../actions/callers.ts";
import { answering, holding } from "../actions/senders.ts";

const DAY_MS = 86_400_000;

type Engine = Awaited<ReturnType<typeof openEngine>>;

const KEYS = [
  ["Idempotency-Key", { idempotencyKey: "k1" }],
  ["dedupe", { dedupe: "k1" }],
] as const satisfies readonly (readonly [string, Partial<ActionRequest>])[];

describe.each(KEYS)("creates with the same %s", (_name, key) => {
  test("a hundred at once make one action, found ninety-nine times and delivered once", async () => {
    await using target = new Target(200);
    await using engine = await openEngine();
    const request = requestFor({ ...key, url: target.url });
    const answers = await Promise.all(
      Array.from({ length: 100 }, () => engine.actionService.create(engine.owner, request)),
    );
    const [id, ...others] = new Set(answers.map(({ action }) => action.id));
    expect(others).toEqual([]);
    expect(answers.filter(({ differs }) => differs === undefined)).toHaveLength(1);
    expect(answers.filter(({ differs }) => differs?.length === 0)).toHaveLength(99);
    await engine.saw(id ?? "", { status: "completed", attempts: 1 });
    engine.clock.advance(60_000);
    expect(target.received).toHaveLength(1);
    expect(await engine.events(id ?? "")).toHaveLength(4);
  });

  test("mean one action for 24 h from its creation, and not a millisecond longer", async () => {
    await using engine = await openEngine({ starts: false });
    const first = await engine.create(key);
    engine.clock.jump(DAY_MS - 1);
    expect((await engine.create(key)).id).toBe(first.id);
    engine.clock.jump(1);
    const next = await engine.create(key);
    expect(next.id).not.toBe(first.id);
    engine.clock.jump(DAY_MS - 1);
    expect((await engine.create(key)).id).toBe(next.id);
  });

  test("mean an action of the caller's own account, by the whole key", async () => {
    await using engine = await openEngine({ starts: false });
    const mine = await engine.create(key);
    const theirs = await engine.actionService.create(await anotherOwner(engine), requestFor(key));
    expect(theirs.differs).toBeUndefined();
    expect(theirs.action.id).not.toBe(mine.id);
    const [name] = Object.keys(key);
    for (const other of ["K1", "k1 ", "k"]) {
      expect((await engine.create({ [String(name)]: other })).id).not.toBe(mine.id);
    }
    expect((await engine.create(key)).id).toBe(mine.id);
  });

  test("answer with the action as it is now, and what differs", async () => {
    await using engine = await openEngine({ sender: answering(answered(201, '{"n":1.0}')) });
    const { id } = await engine.create(key);
    const now = await engine.saw(id, { status: "completed" });
    const answer = await engine.actionService.create(engine.owner, requestFor({ ...key, approve: true, retries: 5 }));
    expect(answer).toEqual({ action: now, differs: ["retries", "approve"] });
  });
});

/** Brings a new action with these keys into a status, by the service and the engine alone. */
async function inStatus(engine: Engine, status: ActionStatus, key: Partial<ActionRequest>): Promise<Action> {
  const { actionService, owner } = engine;
  const isHeld = status === "awaiting_approval" || status === "cancelled";
  const { id } = await engine.create({ ...key, approve: isHeld, retries: 1, url: `http://127.0.0.1:9/${status}` });
  if (status === "cancelled") await actionService.cancel(owner, id, null);
  return engine.saw(id, { status });
}

describe("a key of an action that is", () => {
  const sender = () => ({
    send: async ({ url }: { url: string }) => {
      if (url.endsWith("/active")) await stopped.promise;
      return answered(url.endsWith("/failed") ? 500 : 200);
    },
  });
  let stopped = Promise.withResolvers<void>();

  test.each([
    ["active", true, true],
    ["awaiting_approval", true, true],
    ["completed", true, true],
    ["cancelled", true, true],
    ["failed", true, false],
  ] as const)("%s: Idempotency-Key matches: %p, dedupe matches: %p", async (status, byIdempotency, byDedupe) => {
    stopped = Promise.withResolvers();
    await using engine = await openEngine({ sender: sender() });
    const one = await inStatus(engine, status, { idempotencyKey: "k" });
    const other = await inStatus(engine, status, { dedupe: "k" });
    expect((await engine.create({ idempotencyKey: "k", approve: true })).id === one.id).toBe(byIdempotency);
    expect((await engine.create({ dedupe: "k", approve: true })).id === other.id).toBe(byDedupe);
    stopped.resolve();
  });
});

test("Idempotency-Key is asked before dedupe when the two mean different actions", async () => {
  await using engine = await openEngine({ starts: false });
  const byDedupe = await engine.create({ dedupe: "d" });
  const byKey = await engine.create({ idempotencyKey: "k" });
  const both = await engine.actionService.create(engine.owner, requestFor({ dedupe: "d", idempotencyKey: "k" }));
  expect(both.action.id).toBe(byKey.id);
  expect(both.differs).toEqual(["dedupe"]);
  // A new Idempotency-Key does not make a new action of what means the same thing.
  const again = await engine.actionService.create(engine.owner, requestFor({ dedupe: "d", idempotencyKey: "new" }));
  expect(again.action.id).toBe(byDedupe.id);
});

test("a create whose answer was lost is sent again and finds its action, delivered once", async () => {
  await using target = new Target(200);
  await using engine = await openEngine();
  const request = requestFor({ url: target.url, idempotencyKey: "k1", body: '{"a":1}' });
  const lost = await engine.actionService.create(engine.owner, request);
  await engine.saw(lost.action.id, { status: "completed" });
  const again = await engine.actionService.create(engine.owner, request);
  expect(again.action).toMatchObject({ id: lost.action.id, status: "completed" });
  expect(again.differs).toEqual([]);
  engine.clock.advance(60_000);
  expect(target.received).toHaveLength(1);
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
  expect((await engine.actionService.get(engine.owner, id)).retries).toBe(3);
  end(answered(200));
  await engine.saw(id, { status: "completed" });
});

test("without a key equal creates are different actions", async () => {
  const sender = answering(answered(200));
  await using engine = await openEngine({ sender });
  const actions = await Promise.all(Array.from({ length: 10 }, () => engine.create({})));
  await Promise.all(actions.map(({ id }) => engine.saw(id, { status: "completed" })));
  expect(new Set(actions.map(({ id }) => id)).size).toBe(10);
  expect(sender.sent).toHaveLength(10);
});
