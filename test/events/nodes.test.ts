import { afterEach, describe, expect, test } from "bun:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { NODE_LOOK_MS_MIN, NODE_POLL_MS, NODE_READ_MS_MIN } from "../../src/core/limits.ts";
import { positionText } from "../../src/events/feed.ts";
import type { Sender } from "../../src/outbound/deadline.ts";
import { FakeClock } from "../support/clock.ts";
import { type Engine as Node, openEngine } from "../support/engine.ts";
import { answered } from "../support/factory.ts";
import { NODES_ENV, SharedStore } from "../support/nodes.ts";
import { temporaryFolder } from "../support/store.ts";
import { changesAfter, lineOf, readUntil } from "./changes.ts";

interface NodesOptions {
  readonly hasHints?: boolean;
  /** Of the first node; the second one has many slots. */
  readonly slots?: number;
  readonly sender?: Sender;
}

const opened = new AsyncDisposableStack();
let stack = opened;

afterEach(async () => {
  await stack.disposeAsync();
  stack = new AsyncDisposableStack();
});

/** Two nodes on one database, each with its own bus, scheduler and feed; time passes 20 times as fast. */
async function openNodes({ hasHints = true, slots = 64, sender }: NodesOptions = {}) {
  stack = new AsyncDisposableStack();
  const { path } = stack.use(await temporaryFolder());
  const shared = new SharedStore(path, { hasHints });
  const clock = new FakeClock();
  let sent = 0;
  const send = async () => answered((sent += 1) % 5 === 0 ? 500 : 200);
  const options = { clock, sender: sender ?? { send } };
  const env = { ...NODES_ENV, DISPATCH_CONCURRENCY: String(slots) };
  const a = stack.use(await openEngine({ ...options, folder: path, env, wrapStore: shared.of(0) }));
  const b = stack.use(await openEngine({ ...options, env: NODES_ENV, wrapStore: shared.of(1) }));
  const pass = async (ms: number) => {
    clock.advance(ms);
    for (let turns = 0; turns < 20; turns += 1) await nextTurn();
  };
  return { a, b, clock, shared, pass };
}

/** Lets time pass until the work is done. */
async function passing<T>(clock: FakeClock, work: Promise<T>): Promise<T> {
  const timer = setInterval(() => clock.advance(NODE_READ_MS_MIN), 1);
  try {
    return await work;
  } finally {
    clearInterval(timer);
  }
}

describe.each([true, false])("on two nodes, with hints: %s,", (hasHints) => {
  test("a wait on one ends when a person decides on the other and the call is answered", async () => {
    const { a, b, clock } = await openNodes({ hasHints });
    const { id } = await a.create({ approve: true });
    const waiting = a.actionService.wait(a.owner, id, { waitMs: 100_000 });
    await nextTurn();
    const startedMs = clock.monotonicMs();
    await b.actionService.approve(b.owner, id, null);
    expect(await passing(clock, waiting)).toMatchObject({ status: "completed" });
    expect(clock.monotonicMs() - startedMs).toBeLessThan(2 * NODE_POLL_MS);
  });

  test("a stream on one tells what happens on both, once and in the order of the commits", async () => {
    const { a, b, clock } = await openNodes({ hasHints });
    const from = await a.store.actions.position();
    const stream = await a.feed.open(a.owner, null);
    const work = Promise.all([lives(a, 40), lives(b, 40)]);
    await passing(clock, work);
    const expected = await changesAfter(a, from);
    const told = await passing(clock, readUntil(stream, expected.at(-1)?.seq ?? 0));
    stream.end();
    expect(expected.length).toBeGreaterThan(200);
    expect(told.map(lineOf)).toEqual(expected.map(lineOf));
    // Its reader connects to the other node from the middle of it.
    const middle = expected[100]?.seq ?? 0;
    const other = await b.feed.open(b.owner, positionText(middle));
    const rest = await passing(clock, readUntil(other, expected.at(-1)?.seq ?? 0));
    other.end();
    expect(rest.map(lineOf)).toEqual(expected.slice(101).map(lineOf));
  });
});

describe("on two nodes", () => {
  test("a stream waits for a change that is held back, also for one of its own node", async () => {
    const { a, b, shared, pass } = await openNodes();
    const stream = await a.feed.open(a.owner, null);
    const told: string[] = [];
    const reading = (async () => {
      while (told.length < 2) told.push(...((await stream.next())?.changes ?? []).map(({ action }) => action.id));
    })();
    shared.heldBackFrom = (await a.store.actions.position()) + 1;
    const { id } = await a.create({ approve: true });
    const { id: second } = await b.create({ approve: true });
    for (let turns = 0; turns < 10; turns += 1) await pass(NODE_READ_MS_MIN);
    expect(told).toEqual([]);
    shared.heldBackFrom = null;
    await pass(NODE_POLL_MS);
    await reading;
    expect(told).toEqual([id, second]);
    stream.end();
  });

  test("a wait hears of the end even while a transaction holds the timeline back", async () => {
    const { a, b, shared, clock } = await openNodes();
    const { id } = await a.create({ approve: true });
    const waiting = a.actionService.wait(a.owner, id, { waitMs: 100_000 });
    await nextTurn();
    shared.heldBackFrom = (await a.store.actions.position()) + 1;
    await b.actionService.cancel(b.owner, id, null);
    expect(await passing(clock, waiting)).toMatchObject({ status: "cancelled" });
    expect(clock.monotonicMs()).toBeLessThan(NODE_POLL_MS);
  });

  test("what one node has no slots for is sent by the other about a second later", async () => {
    const held = Promise.withResolvers<void>();
    let open = 0;
    const send = async () => {
      open += 1;
      if (open === 1) await held.promise;
      return answered(200);
    };
    const { a, b, clock } = await openNodes({ slots: 1, sender: { send } });
    const blocked = await a.create({ url: "http://127.0.0.1:9/slow" });
    await passing(clock, a.saw(blocked.id, { status: "active" }));
    const startedMs = clock.monotonicMs();
    const creates = Array.from({ length: 5 }, () => a.create({ url: "http://127.0.0.1:9/next" }));
    const waiting = await passing(clock, Promise.all(creates));
    await passing(clock, Promise.all(waiting.map(({ id }) => b.saw(id, { status: "completed" }))));
    expect(clock.monotonicMs() - startedMs).toBeLessThan(2 * NODE_LOOK_MS_MIN);
    expect((await a.get(blocked.id)).status).toBe("active");
    held.resolve();
    await passing(clock, a.saw(blocked.id, { status: "completed" }));
  });
});

/** Settled lives of so many actions. */
async function lives(node: Node, count: number): Promise<void> {
  const one = async (_: unknown, at: number) => {
    const { id } = await node.create({ retries: 1, approve: at % 3 === 0 });
    if (at % 3 === 0) await node.actionService.approve(node.owner, id, null);
    await Promise.race([node.saw(id, { status: "completed" }), node.saw(id, { status: "failed" })]);
  };
  await Promise.all(Array.from({ length: count }, one));
}
