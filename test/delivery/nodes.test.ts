import { describe, expect, test } from "bun:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { NO_HOST_SETTINGS } from "../../src/api/host-settings.ts";
import type { Outcome } from "../../src/core/outcome.ts";
import {
  ATTEMPT_TIMEOUT_MS_DEFAULT,
  ATTEMPT_TIMEOUT_SET_MS_MAX,
  CLOCK_READ_EVERY_MS,
  CREATE_WAIT_MS,
  HOUR_MS,
  LEASE_GRACE_MS,
  NODE_BEAT_MS,
  NODE_LIVES_MS,
  RECOVERY_INTERVAL_MS,
} from "../../src/core/limits.ts";
import type { OutboundRequest, Sender } from "../../src/outbound/sender.ts";
import { createNode } from "../../src/runtime/node.ts";
import { type Claim, StoreUnavailable } from "../../src/core/store.ts";
import { FakeClock } from "../support/clock.ts";
import { type Engine, type EngineOptions, openEngine, wrapping } from "../support/engine.ts";
import { answered } from "../support/factory.ts";
import { MemoryCluster } from "../support/memory-cluster.ts";
import { NODES_ENV, SharedStore } from "../support/nodes.ts";
import { temporaryFolder } from "../support/store.ts";
import { until } from "../support/until.ts";

const LEASE_MS = ATTEMPT_TIMEOUT_MS_DEFAULT + LEASE_GRACE_MS;

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

/** Calls that end when the test says so. */
function target() {
  const open: { readonly request: OutboundRequest; readonly end: (outcome: Outcome) => void }[] = [];
  const sender: Sender = {
    send: (request) => new Promise<Outcome>((resolve) => open.push({ request, end: resolve })),
  };
  return { sender, calls: open };
}

/** Between a call of the store and what follows from it. */
const CALM_TURNS = 5;

/** Engines on one store, each a node with clocks of its own; the wall clocks are far apart. */
async function cluster() {
  /** Calls of the store that are under way. */
  let calls = 0;
  const counting = <T extends object>(part: T): T =>
    new Proxy(part, {
      get(of, name) {
        const member: unknown = Reflect.get(of, name);
        if (typeof member === "object" && member !== null) return counting(member);
        if (typeof member !== "function") return member;
        return (...args: unknown[]) => {
          const result: unknown = Reflect.apply(member, of, args);
          if (!(result instanceof Promise)) return result;
          calls += 1;
          const over = () => void (calls -= 1);
          result.then(over, over);
          return result;
        };
      },
    });
  const folder = await temporaryFolder();
  const database = new FakeClock();
  const shared = new SharedStore(folder.path);
  const memory = new MemoryCluster(() => database.now().getTime());
  const machines = new Map<string, FakeClock>();
  const engines: { readonly engine: Engine; readonly stop: () => Promise<void> }[] = [];

  const start = async (id: string, { wrapStore, ...options }: EngineOptions & { wallAheadMs?: number } = {}) => {
    const machine = new FakeClock(new Date(database.now().getTime() + (options.wallAheadMs ?? 0)));
    machines.set(id, machine);
    const node = await createNode(id, memory, { clock: machine, log: SILENT }, async () => {});
    const of = shared.of(engines.length);
    const engine = await openEngine({
      ...options,
      env: { ...NODES_ENV, ...options.env },
      ...(engines.length === 0 && { folder: folder.path }),
      node,
      clock: machine,
      starts: false,
      wrapStore: (own) => {
        const counted = counting(of(own));
        return wrapStore?.(counted) ?? counted;
      },
    });
    engines.push({ engine, stop: () => node.stop() });
    await node.membership.start();
    await engine.start();
    return { engine, node, machine };
  };

  return {
    start,
    memory,
    database,
    /** Time passes for all but the nodes that stand still, in steps of which each waits for what the one before began. */
    async pass(ms: number, ...still: readonly string[]) {
      for (let leftMs = ms; leftMs > 0; leftMs -= 1_000) {
        const stepMs = Math.min(1_000, leftMs);
        database.stall(stepMs);
        for (const [id, machine] of machines) if (!still.includes(id)) machine.advance(stepMs);
        for (let calm = 0; calm < CALM_TURNS; calm = calls === 0 ? calm + 1 : 0) await nextTurn();
      }
    },
    /** A node that stood still for so long goes on. */
    thaw: (id: string, ms: number) => machines.get(id)?.stall(ms),
    async [Symbol.asyncDispose]() {
      // The first one's store is that of all.
      for (const { engine, stop } of engines.toReversed()) {
        await stop();
        await engine[Symbol.asyncDispose]();
      }
      await folder[Symbol.asyncDispose]();
    },
  };
}

describe("a node that stands still past its lease", () => {
  test("is taken over: it settles nothing any more, and the action is sent once by each", async () => {
    await using nodes = await cluster();
    const [frozen, other] = [target(), target()];
    const { engine: a } = await nodes.start("a", { sender: frozen.sender });
    const { id } = await a.create({ retries: 2 });
    await until(() => frozen.calls.length === 1);
    const { engine: b } = await nodes.start("b", { sender: other.sender });
    await nodes.pass(LEASE_MS + RECOVERY_INTERVAL_MS + 3_000, "a");
    await until(() => other.calls.length === 1);
    nodes.thaw("a", LEASE_MS);
    frozen.calls[0]?.end(answered(500));
    await until(() => a.lines.some(({ event }) => event === "action.fenced"));
    other.calls[0]?.end(answered(200));
    expect(await b.saw(id, { status: "completed" })).toMatchObject({ attempts: 2 });
    await nodes.pass(LEASE_MS + 2 * RECOVERY_INTERVAL_MS);
    expect([frozen.calls.length, other.calls.length]).toEqual([1, 1]);
  });

  test("while the target answers it completes the action that waits for its next attempt, which is not made", async () => {
    await using nodes = await cluster();
    let isAway = false;
    const away = () => Promise.reject(new StoreUnavailable("The database is away."));
    const wrapStore = wrapping("actions", (actions) => ({
      apply: (write) => (isAway ? away() : actions.apply(write)),
    }));
    const [first, other] = [target(), target()];
    const callbacks: string[] = [];
    const taking = ({ sender }: ReturnType<typeof target>): Sender => ({
      async send(request, options) {
        if (!request.url.endsWith("/hook")) return sender.send(request, options);
        callbacks.push(String(request.body).split('"', 4)[3] ?? "");
        return answered(204);
      },
    });
    // Far beyond what the test waits.
    const env = { RETRY_BASE_MS: "600000" };
    const { engine: a } = await nodes.start("a", { sender: taking(first), wrapStore, env });
    const { id } = await a.create({ retries: 3, callback: "http://127.0.0.1:9/hook" });
    await until(() => first.calls.length === 1);
    // It is cut off from the database, another node takes its action over, and it comes back.
    isAway = true;
    const { engine: b } = await nodes.start("b", { sender: taking(other), env });
    await nodes.pass(LEASE_MS + RECOVERY_INTERVAL_MS + 3_000, "a");
    await b.saw(id, { status: "pending" });
    nodes.thaw("a", LEASE_MS);
    first.calls[0]?.end(answered(200, '{"charged":true}'));
    await until(() => a.lines.some(({ event }) => event === "action.result_kept"));
    isAway = false;
    await nodes.pass(3_000);
    await until(() => a.lines.some(({ event }) => event === "action.late_result"));
    const charged = { result: { responseBody: '{"charged":true}' } };
    expect(await b.saw(id, { status: "completed", attempts: 1 })).toMatchObject(charged);
    await until(() => callbacks.length === 1);
    await nodes.pass(LEASE_MS + 2 * RECOVERY_INTERVAL_MS);
    expect(callbacks).toEqual(["action.completed"]);
    expect(other.calls).toEqual([]);
  });

  test("sends nothing that it had claimed and not begun", async () => {
    await using nodes = await cluster();
    const [frozen, other] = [target(), target()];
    const held = Promise.withResolvers<void>();
    const wrapStore = wrapping("actions", (actions) => ({
      create: async (creation) => {
        const created = await actions.create(creation);
        await held.promise;
        return created;
      },
    }));
    const { engine: a } = await nodes.start("a", { sender: frozen.sender, wrapStore });
    const creating = a.create({ retries: 2 });
    const { engine: b } = await nodes.start("b", { sender: other.sender });
    await nodes.pass(LEASE_MS + RECOVERY_INTERVAL_MS + 3_000, "a");
    await until(() => other.calls.length === 1);
    nodes.thaw("a", LEASE_MS);
    held.resolve();
    const { id } = await creating;
    await until(() => a.lines.some(({ event }) => event === "action.fenced"));
    other.calls[0]?.end(answered(200));
    await b.saw(id, { status: "completed" });
    expect([frozen.calls.length, other.calls.length]).toEqual([0, 1]);
  });
});

test("the database's clock is set forward: nothing of a live node is ended before its real lease is over", async () => {
  await using nodes = await cluster();
  const [one, two] = [target(), target()];
  const { engine: a } = await nodes.start("a", { sender: one.sender });
  await nodes.start("b", { sender: two.sender });
  await nodes.pass(2 * NODE_BEAT_MS);
  const { id } = await a.create({ retries: 2 });
  await until(() => one.calls.length === 1);
  nodes.database.jump(60_000);
  await nodes.pass(ATTEMPT_TIMEOUT_MS_DEFAULT - 1_000);
  one.calls[0]?.end(answered(200));
  await a.saw(id, { status: "completed", attempts: 1 });
  expect(two.calls).toHaveLength(0);
});

describe("the database's clock is set back by hours", () => {
  test("what a dead node held is sent again as soon as its real lease must be over", async () => {
    await using nodes = await cluster();
    const [dead, other] = [target(), target()];
    const { engine: a } = await nodes.start("a", { sender: dead.sender });
    await nodes.start("b", { sender: other.sender });
    await nodes.pass(2 * NODE_BEAT_MS);
    await a.create({ retries: 2 });
    await until(() => dead.calls.length === 1);
    nodes.database.jump(-2 * HOUR_MS);
    await nodes.pass(LEASE_MS - 1_000, "a");
    expect(other.calls).toHaveLength(0);
    // A host may allow the longest timeout, which the other node waits for from when it knows.
    const longestMs = ATTEMPT_TIMEOUT_SET_MS_MAX - ATTEMPT_TIMEOUT_MS_DEFAULT;
    await nodes.pass(longestMs + CLOCK_READ_EVERY_MS + 2 * RECOVERY_INTERVAL_MS + 2_000, "a");
    await until(() => other.calls.length === 1);
  });

  test("nothing of a live node is ended by one that starts then", async () => {
    await using nodes = await cluster();
    const [one, two] = [target(), target()];
    const { engine: a } = await nodes.start("a", { sender: one.sender });
    const { id } = await a.create({ retries: 2 });
    await until(() => one.calls.length === 1);
    nodes.database.jump(-2 * HOUR_MS);
    await nodes.start("b", { sender: two.sender });
    await nodes.pass(2 * RECOVERY_INTERVAL_MS);
    expect(await a.get(id)).toMatchObject({ status: "active" });
    one.calls[0]?.end(answered(200));
    await a.saw(id, { status: "completed", attempts: 1 });
  });

  test.each(["has not", "could not"])(
    "nothing of a node that has read the clock since is ended by one that %s",
    async (why) => {
      await using nodes = await cluster();
      const [one, two] = [target(), target()];
      await nodes.start("a", { sender: one.sender });
      nodes.database.jump(-2 * HOUR_MS);
      const { engine: b } = await nodes.start("b", { sender: two.sender });
      if (why === "could not") nodes.memory.now = () => Promise.reject(new StoreUnavailable("Slow."));
      await nodes.pass(NODE_BEAT_MS - 1_000);
      const { id } = await b.create({ retries: 2 });
      await nodes.pass(2_000);
      await until(() => one.calls.length + two.calls.length === 1);
      expect(await b.get(id)).toMatchObject({ status: "active" });
    },
  );
});

test("what a dead node held is sent again within its lease, a recovery and the back-off, and not before its lease", async () => {
  await using nodes = await cluster();
  const [dead, other] = [target(), target()];
  // Half a minute apart: no wall clock matters.
  const { engine: a } = await nodes.start("a", { sender: dead.sender, wallAheadMs: 30_000 });
  await nodes.start("b", { sender: other.sender, wallAheadMs: -30_000 });
  await nodes.pass(2 * NODE_BEAT_MS);
  await a.create({ retries: 2 });
  await until(() => dead.calls.length === 1);
  await nodes.pass(LEASE_MS - 1_000, "a");
  expect(other.calls).toHaveLength(0);
  // The back-off after the first attempt is two seconds.
  await nodes.pass(1_000 + RECOVERY_INTERVAL_MS + 2_000 + 1_000, "a");
  await until(() => other.calls.length === 1);
});

describe("calls to one host", () => {
  const env = { DISPATCH_PER_HOST: "4" };

  test("are shared by the nodes that live, and those of a node that left go to the others", async () => {
    await using nodes = await cluster();
    const [one, two] = [target(), target()];
    const { engine: a } = await nodes.start("a", { sender: one.sender, env });
    const { node: b } = await nodes.start("b", { sender: two.sender, env });
    await nodes.pass(2 * NODE_BEAT_MS);
    for (let n = 0; n < 2; n += 1) await a.create({});
    await nodes.pass(CREATE_WAIT_MS);
    for (let n = 0; n < 8; n += 1) await a.create({});
    await nodes.pass(3_000);
    await until(() => one.calls.length === 2 && two.calls.length === 2);
    await nodes.pass(3_000);
    expect([one.calls.length, two.calls.length]).toEqual([2, 2]);
    await b.stop();
    await nodes.pass(NODE_BEAT_MS);
    await until(() => one.calls.length === 4);
    await nodes.pass(NODE_BEAT_MS);
    expect([one.calls.length, two.calls.length]).toEqual([4, 2]);
  });

  test("are none of a node that comes until the others know of it, and of no more than the limit from then on", async () => {
    await using nodes = await cluster();
    const [one, two] = [target(), target()];
    const { engine: a } = await nodes.start("a", { sender: one.sender, env });
    for (let n = 0; n < 4; n += 1) await a.create({});
    await nodes.pass(CREATE_WAIT_MS);
    for (let n = 0; n < 6; n += 1) await a.create({});
    await until(() => one.calls.length === 4);
    const { engine: b } = await nodes.start("b", { sender: two.sender, env });
    await nodes.pass(NODE_BEAT_MS - 1_000);
    await b.create({});
    expect(two.calls).toHaveLength(0);
    await nodes.pass(NODE_BEAT_MS);
    // Its part; what the other one had under way above its own ends first.
    await until(() => two.calls.length === 2);
    for (const { end } of one.calls.slice(0, 2)) end(answered(200));
    await nodes.pass(3_000);
    expect([one.calls.length, two.calls.length]).toEqual([4, 2]);
  });

  test("are no more than the account allows either, while those of before a node came go on", async () => {
    await using nodes = await cluster();
    const [one, two] = [target(), target()];
    const { engine: a } = await nodes.start("a", { sender: one.sender });
    for (const host of ["127.0.0.1:9", "127.0.0.1:10"])
      await a.hostService.put(a.owner, host, { ...NO_HOST_SETTINGS, maxConcurrent: 4 });
    for (let n = 0; n < 10; n += 1) await a.create({});
    await until(() => one.calls.length === 4);
    const { node } = await nodes.start("b", { sender: two.sender });
    await nodes.pass(2 * NODE_BEAT_MS);
    expect(node.share.mayClaim()).toBe(true);
    await nodes.pass(3 * NODE_BEAT_MS);
    expect([one.calls.length, two.calls.length]).toEqual([4, 0]);
    // They hold up no other host.
    const url = "http://127.0.0.1:10/";
    for (let n = 0; n < 4; n += 1) await a.create({ url });
    await nodes.pass(2 * NODE_BEAT_MS);
    expect(two.calls.map(({ request }) => request.url)).toEqual([url, url]);
    for (const { end } of one.calls.slice(0, 2)) end(answered(200));
    await nodes.pass(2 * NODE_BEAT_MS);
    await until(() => two.calls.length === 4);
    expect(one.calls).toHaveLength(6);
  });

  test("of which there is one at a time stay one at a time, whichever node the action came to", async () => {
    await using nodes = await cluster();
    const [one, two] = [target(), target()];
    const single = { DISPATCH_PER_HOST: "1" };
    const { engine: a } = await nodes.start("a", { sender: one.sender, env: single });
    const { engine: b } = await nodes.start("b", { sender: two.sender, env: single });
    await nodes.pass(2 * NODE_BEAT_MS);
    for (let n = 0; n < 3; n += 1) {
      for (const engine of [a, b]) await engine.create({});
      await nodes.pass(CREATE_WAIT_MS);
    }
    await nodes.pass(NODE_LIVES_MS);
    expect(one.calls.length + two.calls.length).toBe(1);
    const calls = () => [...one.calls, ...two.calls];
    for (let ended = 0; ended < 6; ended += 1) {
      await until(() => calls().length === ended + 1);
      calls()[ended]?.end(answered(200));
      await nodes.pass(1_000);
    }
  });
});

test("a node whose claim was lost takes none from another node that claimed at the same moment", async () => {
  await using nodes = await cluster();
  const [one, two] = [target(), target()];
  let isLost = false;
  const wrapStore = wrapping("actions", (actions) => ({
    claimDue: async (claim: Claim) => {
      if (!isLost) return actions.claimDue(claim);
      isLost = false;
      throw new StoreUnavailable("The answer was lost; nothing was claimed.");
    },
  }));
  const env = { DISPATCH_PER_HOST: "2" };
  const { engine: a } = await nodes.start("a", { sender: one.sender, env, wrapStore });
  const { engine: b } = await nodes.start("b", { sender: two.sender, env });
  await nodes.pass(2 * NODE_BEAT_MS);
  // Both slots are taken, so that a further action is claimed by a claim and not by its create.
  await a.create({});
  await b.create({});
  await until(() => one.calls.length === 1 && two.calls.length === 1);
  await nodes.pass(CREATE_WAIT_MS);
  await a.create({});
  // The other node finds it.
  await nodes.pass(NODE_BEAT_MS);
  isLost = true;
  // At one time by the database's clock: both claims have the same lease.
  for (const { calls } of [one, two]) calls[0]?.end(answered(200));
  await until(() => !isLost && two.calls.length === 2);
  await nodes.pass(3 * RECOVERY_INTERVAL_MS);
  expect(a.lines.filter(({ event }) => event === "action.not_started")).toEqual([]);
  expect([one.calls.length, two.calls.length]).toEqual([1, 2]);
});
