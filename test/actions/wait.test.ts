import { DomainError } from "../../src/core/domain-error.ts";
import { describe, expect, test } from "bun:test";
import { setImmediate as turn } from "node:timers/promises";
import { cancel } from "../../src/core/changes.ts";
import { WAITERS_PER_ACCOUNT_MAX } from "../../src/core/limits.ts";
import { openEngine, wrapping } from "../support/engine.ts";
import { answered, writeOf } from "../support/factory.ts";
import { anotherOwner, as, refusalOf } from "./callers.ts";
import { answering, holding } from "./senders.ts";

const WAIT = { waitMs: 30_000 };

/** A store whose reading of actions can be counted and held up. */
function watched() {
  const state = { finds: 0, beforeAnswer: async () => {} };
  const wrapStore = wrapping("actions", (actions) => ({
    find: async (accountId, id) => {
      state.finds += 1;
      const action = await actions.find(accountId, id);
      await state.beforeAnswer();
      return action;
    },
  }));
  return { state, wrapStore };
}

function isPending(work: Promise<unknown>): boolean {
  return Bun.peek.status(work) === "pending";
}

describe("a wait", () => {
  test("resolves when the action is completed, with its result, having read once", async () => {
    const { state, wrapStore } = watched();
    const { sender, began, end } = holding();
    await using engine = await openEngine({ sender, wrapStore });
    const { id } = await engine.create({});
    await began;
    const timers = engine.clock.timers;
    const waiting = engine.actionService.wait(engine.owner, id, WAIT);
    await turn();
    expect(isPending(waiting)).toBe(true);
    engine.clock.advance(1_500);
    end(answered(201, '{"n":1.0}'));
    const done = await waiting;
    expect(state.finds).toBe(1);
    expect(done).toMatchObject({
      status: "completed",
      attempts: 1,
      result: { responseCode: 201, responseBody: '{"n":1.0}', durationMs: 1_500 },
    });
    expect(await engine.get(id)).toEqual(done);
    expect(engine.clock.timers).toBe(timers);
  });

  test.each(["failed", "cancelled"] as const)("resolves when the action has %s", async (status) => {
    await using engine = await openEngine({ sender: answering(answered(500)), starts: false });
    const { id } = await engine.create({ retries: 1 });
    const waiting = engine.actionService.wait(engine.owner, id, WAIT);
    if (status === "cancelled") await engine.actionService.cancel(engine.owner, id, null);
    else await engine.loop.start();
    expect(await waiting).toMatchObject({ id, status });
  });

  test("sleeps through what is not the end: an approval, an attempt, a retry that is scheduled", async () => {
    await using engine = await openEngine({ sender: answering(answered(500), answered(200)) });
    const { id } = await engine.create({ approve: true });
    const waiting = engine.actionService.wait(engine.owner, id, WAIT);
    await engine.actionService.approve(engine.owner, id, null);
    await engine.saw(id, { status: "pending", attempts: 1 });
    await turn();
    expect(isPending(waiting)).toBe(true);
    engine.clock.advance(2_000);
    expect(await waiting).toMatchObject({ status: "completed", attempts: 2 });
  });

  test("answers at its deadline with the action as it is, and not a millisecond before", async () => {
    const { sender, began, end } = holding();
    await using engine = await openEngine({ sender });
    const { id } = await engine.create({});
    await began;
    const waiting = engine.actionService.wait(engine.owner, id, WAIT);
    await turn();
    engine.clock.advance(29_999);
    await turn();
    expect(isPending(waiting)).toBe(true);
    engine.clock.advance(1);
    expect(await waiting).toMatchObject({ status: "active", attempts: 1 });
    end(answered(200));
    await engine.saw(id, { status: "completed" });
  });

  test("of what is final already answers at once", async () => {
    await using engine = await openEngine({ starts: false });
    const { id } = await engine.create({});
    const cancelled = await engine.actionService.cancel(engine.owner, id, null);
    expect(await engine.actionService.wait(engine.owner, id, WAIT)).toEqual(cancelled);
    expect(engine.clock.timers).toBe(0);
  });

  test("misses nothing that happens while it reads", async () => {
    const { state, wrapStore } = watched();
    await using engine = await openEngine({ wrapStore, sender: answering(answered(200)), starts: false });
    const { id } = await engine.create({});
    // What it reads is pending; before the answer is there, the action has ended.
    state.beforeAnswer = async () => {
      state.beforeAnswer = async () => {};
      await engine.loop.start();
      const { promise, resolve } = Promise.withResolvers<void>();
      const unwatch = engine.bus.watch(id, ({ status }) => status === "completed" && resolve());
      await promise;
      unwatch();
    };
    expect(await engine.actionService.wait(engine.owner, id, WAIT)).toMatchObject({ status: "completed" });
    expect(state.finds).toBe(1);
  });

  test("reads again at its deadline, because news may be lost", async () => {
    await using engine = await openEngine({ starts: false });
    const action = await engine.create({});
    const waiting = engine.actionService.wait(engine.owner, action.id, WAIT);
    const step = cancel(action, { actor: "system", reason: null, now: engine.clock.now() });
    if (step instanceof DomainError) throw new Error(step.message);
    expect(await engine.store.actions.apply(writeOf(step, engine.clock.now()))).toBe(true);
    await turn();
    expect(isPending(waiting)).toBe(true);
    engine.clock.advance(30_000);
    expect(await waiting).toEqual(step.after);
  });

  test("ends with the stop signal, and the action goes on", async () => {
    await using engine = await openEngine({ starts: false });
    const { id } = await engine.create({});
    const stop = new AbortController();
    const waiting = engine.actionService.wait(engine.owner, id, { ...WAIT, stop: stop.signal });
    await turn();
    expect(isPending(waiting)).toBe(true);
    stop.abort();
    expect(await waiting).toMatchObject({ status: "pending" });
    expect(await engine.actionService.wait(engine.owner, id, { ...WAIT, stop: stop.signal })).toMatchObject({
      status: "pending",
    });
    expect(engine.clock.timers).toBe(0);
    expect((await engine.events(id)).map(({ type }) => type)).toEqual(["created"]);
  });

  test("for what is not the caller's, or not there at all, is told so and leaves nothing behind", async () => {
    await using engine = await openEngine({ starts: false });
    const { id } = await engine.create({});
    const other = await anotherOwner(engine);
    expect(await refusalOf(engine.actionService.wait(other, id, WAIT))).toEqual({
      code: "not_found",
      message: "There is no such action.",
    });
    expect(await refusalOf(engine.actionService.wait(engine.owner, "act_0", WAIT))).toMatchObject({
      code: "not_found",
    });
    expect(engine.clock.timers).toBe(0);
  });
});

test("one key's thousand waits leave room for another key: the oldest of them answers at once", async () => {
  await using engine = await openEngine({ starts: false });
  const { actionService, owner, clock } = engine;
  const { id } = await engine.create({});
  const flood = as("agent", owner);
  const waits = Array.from({ length: WAITERS_PER_ACCOUNT_MAX }, () => actionService.wait(flood, id, WAIT));
  const mine = actionService.wait(owner, id, WAIT);
  expect(await waits[0]).toMatchObject({ status: "pending" });
  await turn();
  expect([isPending(mine), waits.filter(isPending).length]).toEqual([true, WAITERS_PER_ACCOUNT_MAX - 1]);
  // Who has the most gets no further one for it.
  expect(await actionService.wait(flood, id, WAIT)).toMatchObject({ status: "pending" });
  expect(isPending(mine)).toBe(true);
  expect(clock.timers).toBe(WAITERS_PER_ACCOUNT_MAX);
  clock.advance(30_000);
  await Promise.all([...waits, mine]);
  expect(clock.timers).toBe(0);
});

test("beyond its account's bound a wait answers at once; others wait on, and the place comes free again", async () => {
  await using engine = await openEngine({ starts: false });
  const { actionService, owner, clock } = engine;
  const { id } = await engine.create({});
  const waits = Array.from({ length: WAITERS_PER_ACCOUNT_MAX }, () => actionService.wait(owner, id, WAIT));
  expect(await actionService.wait(owner, id, WAIT)).toMatchObject({ status: "pending" });
  expect(waits.every(isPending)).toBe(true);
  expect(clock.timers).toBe(WAITERS_PER_ACCOUNT_MAX);

  const other = await anotherOwner(engine);
  const theirs = await actionService.create(other, { ...(await actionService.get(owner, id)) });
  const theirWait = actionService.wait(other, theirs.action.id, WAIT);
  await turn();
  expect(isPending(theirWait)).toBe(true);

  clock.advance(30_000);
  await Promise.all([...waits, theirWait]);
  expect(clock.timers).toBe(0);
  const again = actionService.wait(owner, id, WAIT);
  await turn();
  expect(isPending(again)).toBe(true);
  clock.advance(30_000);
  await again;
  expect(clock.timers).toBe(0);
});
