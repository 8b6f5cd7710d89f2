import { describe, expect, test } from "bun:test";
import { setImmediate as turn } from "node:timers/promises";
import type { Store } from "../../src/core/store.ts";
import { openEngine } from "../support/engine.ts";
import { answered } from "../support/factory.ts";
import { as, refusalOf } from "../actions/callers.ts";
import { answering } from "../actions/senders.ts";

test("an approve releases a held action at once, says who and when, and it is sent", async () => {
  const sender = answering(answered(200));
  await using engine = await openEngine({ sender });
  const { id } = await engine.create({ approve: true });
  engine.clock.advance(1_000);
  const approver = as("approver", engine.owner);
  const approved = await engine.actionService.approve(approver, id, "looks right");
  expect(approved).toMatchObject({
    status: "pending",
    attempts: 0,
    dueAt: engine.clock.now(),
    approvedAt: engine.clock.now(),
    approvedBy: "key:approver",
  });
  const done = await engine.saw(id, { status: "completed" });
  expect([done.approvedAt, done.approvedBy]).toEqual([approved.approvedAt, "key:approver"]);
  expect(sender.sent).toHaveLength(1);
  expect(await engine.events(id)).toContainEqual({
    type: "approved",
    actor: "key:approver",
    reason: "looks right",
  });
});

describe("a decision on what was seen", () => {
  test("is written down with the way that it came", async () => {
    await using engine = await openEngine({ starts: false });
    const agent = { ...as("agent", engine.owner), scope: "account", via: "elicitation" } as const;
    const [one, other] = [await engine.create({ approve: true }), await engine.create({ approve: true })];
    await engine.actionService.approve(agent, one.id, "yes", { run: one.run, isHeld: true });
    await engine.actionService.cancel(agent, other.id, null, { run: other.run, isHeld: true });
    const told = { actor: "key:agent", via: "elicitation" } as const;
    expect((await engine.events(one.id)).at(-1)).toEqual({ type: "approved", reason: "yes", ...told });
    expect((await engine.events(other.id)).at(-1)).toEqual({ type: "rejected", reason: null, ...told });
  });
});

describe("a cancel", () => {
  test("of a held action is a rejection, and nothing is ever sent", async () => {
    const sender = answering(answered(200));
    await using engine = await openEngine({ sender });
    const { id } = await engine.create({ approve: true });
    const cancelled = await engine.actionService.cancel(engine.owner, id, "no");
    expect(cancelled).toMatchObject({
      status: "cancelled",
      finishedAt: engine.clock.now(),
      startedAt: null,
      approvedAt: null,
    });
    expect((await engine.events(id)).at(-1)).toEqual({ type: "rejected", actor: "key:owner", reason: "no" });
    engine.clock.advance(86_400_000);
    await turn();
    expect(sender.sent).toEqual([]);
  });

  test("between two attempts ends the action: what was due is not sent", async () => {
    const sender = answering(answered(503));
    await using engine = await openEngine({ sender });
    const { id } = await engine.create({});
    await engine.saw(id, { status: "pending", attempts: 1 });
    const cancelled = await engine.actionService.cancel(engine.owner, id, null);
    expect(cancelled).toMatchObject({ status: "cancelled", attempts: 1, dueAt: null, result: { responseCode: 503 } });
    expect((await engine.events(id)).at(-1)).toEqual({ type: "cancelled", actor: "key:owner", reason: null });
    engine.clock.advance(60_000);
    await turn();
    expect(sender.sent).toHaveLength(1);
    expect(await engine.actionService.get(engine.owner, id)).toEqual(cancelled);
  });
});

describe("a decision whose write is overtaken", () => {
  /** A store that lets something else happen between the reading and the writing of a decision. */
  const overtaken =
    (before: (write: number) => Promise<boolean>) =>
    (store: Store): Store => {
      let writes = 0;
      const apply: Store["actions"]["apply"] = async (write) => {
        if (!(await before((writes += 1)))) return store.actions.apply(write);
        return false;
      };
      return { ...store, actions: { ...store.actions, apply } };
    };

  test("is decided again on what is true by then", async () => {
    let id = "";
    const overtake = async (write: number) => {
      // The second write is that of the cancel below, and has the field for itself.
      if (write === 1) await engine.actionService.cancel(engine.owner, id, "first");
      return false;
    };
    await using engine = await openEngine({ starts: false, wrapStore: overtaken(overtake) });
    id = (await engine.create({ approve: true })).id;
    expect(await refusalOf(engine.actionService.approve(engine.owner, id, "late"))).toMatchObject({
      code: "not_approvable",
    });
    expect((await engine.events(id)).map(({ type }) => type)).toEqual(["created", "held", "rejected"]);
  });

  test("three times over is given up without a trace", async () => {
    const overtake = async () => true;
    await using engine = await openEngine({ starts: false, wrapStore: overtaken(overtake) });
    const { id } = await engine.create({ approve: true });
    let heard = 0;
    engine.bus.subscribe(() => (heard += 1));
    expect(await refusalOf(engine.actionService.approve(engine.owner, id, null))).toMatchObject({
      code: "unavailable",
    });
    expect(heard).toBe(0);
    expect((await engine.actionService.get(engine.owner, id)).status).toBe("awaiting_approval");
  });
});
