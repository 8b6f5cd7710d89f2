import { describe, expect, test } from "bun:test";
import { type Action, type ActionRequest, NO_EXTRAS } from "../../src/core/action.ts";
import type { Outcome } from "../../src/core/outcome.ts";
import type { Caller } from "../../src/core/roles.ts";
import type { Store } from "../../src/core/store.ts";
import type { Sender } from "../../src/outbound/sender.ts";
import type { RuleDefinition } from "../../src/rules/schemas.ts";
import { answering } from "../actions/senders.ts";
import { FakeClock } from "../support/clock.ts";
import { type Engine, openEngine, requestFor } from "../support/engine.ts";
import { eventually } from "../support/eventually.ts";
import { answered } from "../support/factory.ts";
import { NODES_ENV, SharedStore } from "../support/nodes.ts";
import { temporaryFolder } from "../support/store.ts";

const MINUTE_MS = 60_000;

const NOT_SENT: Outcome = { kind: "not_sent", fault: "refused" };

const agentOf = (engine: Engine): Caller => ({
  ...engine.owner,
  keyId: "key_agent",
  keyName: "agent",
  role: "agent",
  actor: "key:agent",
});

/** An action that a key with the role agent creates, due in so many minutes. */
async function delayed(
  engine: Engine,
  minutes = 1,
  request: Partial<ActionRequest> = {},
  agent: Caller = agentOf(engine),
): Promise<Action> {
  const runAt = engine.clock.now().getTime() + minutes * MINUTE_MS;
  const asked = requestFor({ extras: { ...NO_EXTRAS, runAt }, ...request });
  return (await engine.actionService.create(agent, asked)).action;
}

const rule = (engine: Engine, definition: Partial<RuleDefinition> = {}) =>
  engine.services.ruleService.add(engine.owner, { name: "R", effect: "hold", ...definition }, null);

/** The store, whose writes that have an action held again are never done: the process dies in the middle. */
function losingHolds(onLost: () => void) {
  return (store: Store): Store => ({
    ...store,
    actions: {
      ...store.actions,
      apply(write) {
        if (write.change.after.status !== "awaiting_approval") return store.actions.apply(write);
        onLost();
        return new Promise(() => {});
      },
    },
  });
}

test("an attempt that a crash ended before its hold was written is held the next time", async () => {
  await using folder = await temporaryFolder();
  const lost = Promise.withResolvers<void>();
  const dead = answering(answered(200));
  const before = await openEngine({ folder: folder.path, sender: dead, wrapStore: losingHolds(lost.resolve) });
  const { id } = await delayed(before);
  await rule(before);
  before.clock.advance(MINUTE_MS);
  await lost.promise;
  await before.abandon();

  const sender = answering(answered(200));
  await using after = await openEngine({ folder: folder.path, sender, clock: before.clock });
  after.clock.advance(MINUTE_MS);
  const held = await after.saw(id, { status: "awaiting_approval" });
  expect(held).toMatchObject({ attempts: 1, policy: { effect: "hold", by: "rule", name: "R" } });
  expect([dead.sent, sender.sent]).toEqual([[], []]);
  await after.actionService.approve(after.owner, id, null);
  await after.saw(id, { status: "completed", attempts: 2 });
});

test("what was not sent by its first attempts is held before the first that would be", async () => {
  await using engine = await openEngine({ sender: answering(NOT_SENT) });
  const { id } = await delayed(engine);
  engine.clock.advance(MINUTE_MS);
  await engine.saw(id, { status: "pending", attempts: 1 });
  await rule(engine);
  engine.clock.advance(MINUTE_MS);
  await engine.saw(id, { status: "awaiting_approval", attempts: 1 });
});

test("what a target may have received is not held between two attempts", async () => {
  for (const outcome of [answered(503), { kind: "unknown", fault: "closed" }] satisfies Outcome[]) {
    await using engine = await openEngine({ sender: answering(outcome) });
    const { id } = await delayed(engine);
    engine.clock.advance(MINUTE_MS);
    await engine.saw(id, { status: "pending", attempts: 1 });
    await rule(engine);
    engine.clock.advance(MINUTE_MS);
    await engine.saw(id, { status: "pending", attempts: 2 });
  }
});

test("a rule about the time of day is asked when a delayed call is sent, also where it was written long before", async () => {
  await using engine = await openEngine({ sender: answering(answered(200)) });
  // It is midnight.
  await rule(engine, { between: { from: "18:00", to: "24:00", timezone: "UTC" } });
  engine.clock.advance(2 * MINUTE_MS);
  const [byDay, byNight] = [await delayed(engine, 60), await delayed(engine, 18 * 60)];
  expect([byDay.status, byNight.status]).toEqual(["pending", "pending"]);
  engine.clock.advance(60 * MINUTE_MS);
  await engine.saw(byDay.id, { status: "completed" });
  engine.clock.advance(17 * 60 * MINUTE_MS);
  await engine.saw(byNight.id, { status: "awaiting_approval", attempts: 0 });
});

test("a rule about the time of day is asked before a further attempt, however soon after the create", async () => {
  const settings = { retryBaseMs: 2_000 };
  await using engine = await openEngine({ sender: answering(NOT_SENT, answered(200)), settings });
  // It is midnight.
  await rule(engine, { between: { from: "18:00", to: "24:00", timezone: "UTC" } });
  engine.clock.advance(18 * 60 * MINUTE_MS - 1_000);
  const { id } = (await engine.actionService.create(agentOf(engine), requestFor({}))).action;
  await engine.saw(id, { status: "pending", attempts: 1 });
  engine.clock.advance(3_000);
  await engine.saw(id, { status: "awaiting_approval", attempts: 1 });
});

test("delayed calls that were not counted at their create are counted when they are sent, and beyond the limit held", async () => {
  const sender = answering(answered(200));
  await using engine = await openEngine({ sender });
  // It is midnight: by day, the second rule counts nothing.
  const older = await delayed(engine, 60);
  await rule(engine, { more_than: { count: 2, minutes: 5, same: "key" } });
  const afternoon = { from: "12:00", to: "18:00", timezone: "UTC" };
  await rule(engine, { between: afternoon, more_than: { count: 1, minutes: 60, same: "host" } });
  const newer = [await delayed(engine, 60), await delayed(engine, 60)];
  expect(newer.map(({ status }) => status)).toEqual(["pending", "pending"]);
  const atNoon = [await delayed(engine, 13 * 60), await delayed(engine, 13 * 60)];
  engine.clock.advance(60 * MINUTE_MS);
  for (const { id } of newer) await engine.saw(id, { status: "completed" });
  await engine.saw(older.id, { status: "awaiting_approval", attempts: 0 });
  engine.clock.advance(12 * 60 * MINUTE_MS);
  await eventually(() => (sender.sent.length === 3 ? true : null), "one call in the afternoon");
  const statuses = async () =>
    (await Promise.all(atNoon.map(({ id }) => engine.actionService.get(engine.owner, id)))).map(({ status }) => status);
  await eventually(async () => ((await statuses()).includes("awaiting_approval") ? true : null), "a held call");
  expect((await statuses()).toSorted()).toEqual(["awaiting_approval", "completed"]);
  // A person decides on it, whatever was counted.
  await engine.actionService.approve(engine.owner, older.id, null);
  await engine.saw(older.id, { status: "completed" });
});

test("a run that an agent has begun again is held before its first send, and not one of whoever may approve it", async () => {
  await using engine = await openEngine({ sender: answering(answered(200)), starts: false });
  const { actionService } = engine;
  const [first, second] = [await delayed(engine), await delayed(engine)];
  for (const [{ id }, caller] of [
    [first, agentOf(engine)],
    [second, engine.owner],
  ] as const) {
    await actionService.cancel(caller, id, null);
    await actionService.retry(caller, id, null);
  }
  await rule(engine);
  await engine.start();
  await engine.saw(second.id, { status: "completed", run: 2 });
  await engine.saw(first.id, { status: "awaiting_approval", run: 2, attempts: 0 });
});

describe("what only the client of an agent has approved", () => {
  /** The agent's key over MCP, whose client says that its person agreed. */
  const elicited = (engine: Engine): Caller => ({ ...agentOf(engine), via: "elicitation", isAgentCall: true });

  test("is held where a rule holds it when it is due", async () => {
    await using engine = await openEngine({ sender: answering(answered(200)) });
    // It is midnight.
    await rule(engine, { between: { from: "18:00", to: "24:00", timezone: "UTC" } });
    engine.clock.advance(2 * MINUTE_MS);
    const { actionService } = engine;
    const byClient = await delayed(engine, 18 * 60, { approve: true });
    const byOwner = await delayed(engine, 18 * 60, { approve: true });
    await actionService.approve(elicited(engine), byClient.id, null);
    await actionService.approve(engine.owner, byOwner.id, null);
    engine.clock.advance(18 * 60 * MINUTE_MS);
    await engine.saw(byOwner.id, { status: "completed" });
    const held = await engine.saw(byClient.id, { status: "awaiting_approval", attempts: 0 });
    expect(held).toMatchObject({ approvedBy: null, policy: { by: "rule" } });
    const again = await actionService.approve(elicited(engine), byClient.id, null).catch((error: unknown) => error);
    expect(again).toMatchObject({ code: "forbidden" });
    await actionService.approve(engine.owner, byClient.id, null);
    await engine.saw(byClient.id, { status: "completed" });
  });

  test("is counted in each run, and held beyond the limit", async () => {
    const sender = answering(answered(422));
    await using engine = await openEngine({ sender });
    await rule(engine, { more_than: { count: 2, minutes: 60, same: "key" } });
    engine.clock.advance(2 * MINUTE_MS);
    const { actionService } = engine;
    const { id } = (await actionService.create(agentOf(engine), requestFor({ approve: true, retries: 1 }))).action;
    await actionService.approve(elicited(engine), id, null);
    for (const run of [2, 3]) {
      await engine.saw(id, { status: "failed", run: run - 1 });
      await actionService.retry(agentOf(engine), id, null);
      await actionService.approve(elicited(engine), id, null);
    }
    await engine.saw(id, { status: "awaiting_approval", run: 3, attempts: 0 });
    expect(sender.sent).toHaveLength(2);
  });
});

test("a rule that another node has just written holds a delayed call, one in a queue, and one whose first attempt was not sent", async () => {
  await using folder = await temporaryFolder();
  const shared = new SharedStore(folder.path);
  const options = { env: { ...NODES_ENV, RETRY_BASE_MS: "100" }, clock: new FakeClock() };
  const sender = answering(NOT_SENT, answered(200));
  await using one = await openEngine({ ...options, folder: folder.path, wrapStore: shared.of(0), starts: false });
  const { id } = await delayed(one);
  await using other = await openEngine({ ...options, sender, wrapStore: shared.of(1) });
  const tried = (await other.actionService.create(agentOf(other), requestFor({}))).action;
  await other.saw(tried.id, { status: "pending", attempts: 1 });
  const { pause } = await other.pauseService.pause(other.owner, { keyId: null, reason: null });
  const queued = (await other.actionService.create(agentOf(other), requestFor({}))).action;
  await rule(one);
  await other.pauseService.resume(other.owner, pause.id);
  await other.saw(queued.id, { status: "awaiting_approval", attempts: 0 });
  options.clock.advance(200);
  await other.saw(tried.id, { status: "awaiting_approval", attempts: 1 });
  options.clock.advance(MINUTE_MS);
  await other.saw(id, { status: "awaiting_approval", attempts: 0 });
  expect(sender.sent).toHaveLength(1);
});

test.each([60, 0])(
  "what waited while the clock was set back by %d minutes meets the rules and ends of grants since",
  async (back) => {
    const sender = answering(answered(200));
    await using engine = await openEngine({ sender });
    const { actionService, owner, services } = engine;
    const agent = { ...agentOf(engine), hold: "writes" } as const;
    const { id } = (await actionService.create(agent, requestFor({}))).action;
    await actionService.approve(owner, id, null, undefined, { minutes: 600, calls: 2 });
    await engine.saw(id, { status: "completed" });
    const { pause } = await services.pauseService.pause(owner, { keyId: null, reason: null });
    const refused = (await actionService.create(owner, requestFor({}))).action;
    const held = (await actionService.create(agent, requestFor({}))).action;
    expect(held).toMatchObject({ status: "pending", policy: { by: "grant" } });

    engine.clock.jump(-back * MINUTE_MS);
    const [grant] = await services.grantService.list(owner);
    await services.grantService.end(owner, grant?.id ?? "");
    const when = 'key.role == "owner"';
    await rule(engine, { effect: "refuse", when });
    await services.pauseService.resume(owner, pause.id);
    engine.clock.advance(back * 2_000);
    await engine.saw(held.id, { status: "awaiting_approval", attempts: 0 });
    await engine.saw(refused.id, { status: "cancelled", attempts: 0 });
    expect(sender.sent).toHaveLength(1);
  },
);

test("what a rule refuses when its time comes is a hit of it, as refused, and what it can't decide on as held", async () => {
  await using engine = await openEngine();
  const { id } = await delayed(engine, 1, { body: '{"amount":7}' });
  const { row } = await rule(engine, { effect: "refuse", when: "action.body.amount > 5" });
  await delayed(engine, 1, { body: "{}" });
  engine.clock.advance(MINUTE_MS);
  await engine.saw(id, { status: "cancelled" });
  const { byRule } = await engine.services.ruleService.hits(engine.owner);
  expect(byRule.get(row.id)?.map(([, effect]) => effect)).toEqual(["hold", "refuse"]);
});

describe("a delayed call that a grant let pass", () => {
  test.each([
    ["the hold of its key", "writes", false, { by: "key" }],
    ["a rule", "none", true, { by: "rule", name: "R" }],
  ] as const)("past %s is held again where the grant was ended before it is sent", async (_what, hold, isRuled, by) => {
    const sender = answering(answered(200));
    await using engine = await openEngine({ sender });
    const { actionService, owner, services } = engine;
    if (isRuled) await rule(engine);
    const agent = { ...agentOf(engine), hold };
    const runAt = engine.clock.now().getTime() + 5 * MINUTE_MS;
    const asked = requestFor({ extras: { ...NO_EXTRAS, runAt } });
    const { id } = (await actionService.create(agent, asked)).action;
    await actionService.approve(owner, id, null, undefined, { minutes: 1, calls: 2 });
    const { action } = await actionService.create(agent, asked);
    expect(action).toMatchObject({ status: "pending", policy: { by: "grant" } });

    const [grant] = await services.grantService.list(owner);
    await services.grantService.end(owner, grant?.id ?? "");
    engine.clock.advance(5 * MINUTE_MS);
    const held = await engine.saw(action.id, { status: "awaiting_approval", attempts: 0 });
    expect(held.policy).toMatchObject({ effect: "hold", ...by });
    await engine.saw(id, { status: "completed" });
    expect(sender.sent).toHaveLength(1);
    await actionService.approve(owner, action.id, null);
    await engine.saw(action.id, { status: "completed" });
  });

  test("is sent where the grant has run out of time", async () => {
    await using engine = await openEngine({ sender: answering(answered(200)) });
    const { actionService, owner } = engine;
    const agent = { ...agentOf(engine), hold: "writes" } as const;
    const asked = requestFor({ extras: { ...NO_EXTRAS, runAt: engine.clock.now().getTime() + 5 * MINUTE_MS } });
    const { id } = (await actionService.create(agent, asked)).action;
    await actionService.approve(owner, id, null, undefined, { minutes: 1, calls: 2 });
    const { action } = await actionService.create(agent, asked);
    engine.clock.advance(5 * MINUTE_MS);
    await engine.saw(action.id, { status: "completed" });
  });
});

test("a callback of an agent goes to no host that its rules do not see, also of a call made before them", async () => {
  const callbacks: string[] = [];
  const sender: Sender = {
    async send({ url }) {
      if (url.includes("hooks")) callbacks.push(url);
      return answered(200);
    },
  };
  await using engine = await openEngine({ sender });
  const { row } = await engine.services.keyService.create(engine.owner, { name: "hooked", role: "agent" });
  const agent = { ...agentOf(engine), keyId: row.id };
  const unruled = await delayed(engine, 1, { callback: "https://hooks.example.com/a" }, agent);
  engine.clock.advance(MINUTE_MS);
  await engine.saw(unruled.id, { status: "completed" });
  await eventually(() => callbacks[0] ?? null, "the first callback");

  const { id } = await delayed(engine, 1, { callback: "https://hooks.example.com/b" }, agent);
  await rule(engine, { path: "/other" });
  engine.clock.advance(MINUTE_MS);
  await engine.saw(id, { status: "completed" });
  const dropped = await eventually(async () => {
    const { entries } = await engine.services.listNotifications(engine.owner, null, 10);
    return entries.find(({ status }) => status === "given_up") ?? null;
  }, "a callback that was given up");
  expect(dropped.lastError).toContain("not listed");
  expect(callbacks).toHaveLength(1);
});
