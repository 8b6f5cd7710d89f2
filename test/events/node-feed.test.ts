import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Action } from "../../src/core/action.ts";
import {
  NODE_CHANGES_MAX,
  NODE_LOADS_MAX,
  NODE_PAGES_MAX,
  NODE_POLL_MS,
  NODE_READ_MS_MIN,
} from "../../src/core/limits.ts";
import { createBus } from "../../src/core/bus.ts";
import { NodeFeed } from "../../src/events/node-feed.ts";
import { type ChangedAction, type ChangedPage, StoreUnavailable } from "../../src/core/store.ts";
import { FakeClock } from "../support/clock.ts";
import { anAction } from "../support/factory.ts";

/** A timeline that others write, and a node that reads it. */
class World {
  readonly clock = new FakeClock();
  readonly bus = createBus();
  readonly streaming = new Set<string>();
  /** Accounts whose streams were woken, in order. */
  readonly woken: string[] = [];
  /** Ids of the actions that were loaded. */
  readonly loaded: string[] = [];
  reads = 0;
  looks = 0;
  /** Changes from here on belong to a transaction that others wait for. */
  heldBackFrom = Number.POSITIVE_INFINITY;
  isAway = false;
  readonly brokenIds = new Set<string>();
  fault = new Error("broken");
  readonly faults: string[] = [];
  readonly #rows: ChangedAction[] = [];
  readonly #actions = new Map<string, Action>();
  onHint = () => {};
  onGap = () => {};
  isListening = true;
  readonly feed: NodeFeed;

  constructor() {
    const unlessAway =
      <T>(answer: () => T) =>
      async () => {
        if (this.isAway) throw new StoreUnavailable();
        return answer();
      };
    this.feed = new NodeFeed({
      clock: this.clock,
      bus: this.bus,
      streams: {
        changed: ({ accountId }) => void this.woken.push(accountId),
        accounts: () => this.streaming.keys(),
        hasStreams: (accountId) => this.streaming.has(accountId),
      },
      onRowsElsewhere: () => void (this.looks += 1),
      actions: {
        position: unlessAway(() => this.#settled),
        findById: (id) => unlessAway(() => this.#load(id))(),
      },
      cluster: {
        changedSince: (position, limit) => unlessAway(() => this.#page(position, limit))(),
        findRevisions: (ids) =>
          unlessAway(
            () =>
              new Map(ids.flatMap((id) => [this.#actions.get(id)].flatMap((one) => (one ? [[id, one.revision]] : [])))),
          )(),
        listen: async (onHint, onGap) => {
          if (!this.isListening) return null;
          [this.onHint, this.onGap] = [onHint, onGap];
          return async () => {
            this.onHint = () => {};
          };
        },
      },
      log: { warn: (event) => void this.faults.push(event), error: (event) => void this.faults.push(event) },
      metrics: { taskFailed: (task) => void this.faults.push(task) },
    });
  }

  get #settled(): number {
    return Math.min(this.#rows.length, this.heldBackFrom - 1);
  }

  #load(id: string): Action | null {
    this.loaded.push(id);
    if (this.brokenIds.has(id)) throw this.fault;
    return this.#actions.get(id) ?? null;
  }

  #page(after: number, limit: number): ChangedPage {
    this.reads += 1;
    const changes = this.#rows.slice(after, after + limit);
    const position = Math.max(after, Math.min(after + changes.length, this.#settled));
    return { changes, position, isLast: position === this.#rows.length };
  }

  /** Another node commits a change. */
  commit(action: Action): void {
    this.#actions.set(action.id, action);
    const { id: actionId, accountId, revision } = action;
    this.#rows.push({ seq: this.#rows.length + 1, actionId, accountId, revision });
  }

  /** The revisions that somebody hears who watches the action. */
  watch(action: Action): { readonly heard: number[]; readonly unwatch: () => void } {
    const heard: number[] = [];
    return { heard, unwatch: this.bus.watch(action.id, ({ revision }) => void heard.push(revision)) };
  }

  /** Lets time pass, and what it set in motion end. */
  async pass(ms: number): Promise<void> {
    this.clock.advance(ms);
    for (let turns = 0; turns < 20; turns += 1) await nextTurn();
  }

  async hint(): Promise<void> {
    this.onHint();
    await this.pass(0);
  }
}

let world: World;

beforeEach(() => {
  world = new World();
});

afterEach(async () => {
  world.onGap();
  await world.feed.stop();
  const { looks } = world;
  world.onHint();
  expect([world.clock.timers, world.looks]).toEqual([0, looks]);
});

const begun = async (prepare: (world: World) => void = () => {}): Promise<World> => {
  prepare(world);
  await world.feed.start();
  await world.pass(NODE_READ_MS_MIN);
  return world;
};

const revised = (action: Action, revision: number): Action => ({ ...action, revision });

describe("the feed of other nodes' changes", () => {
  test("tells who watches an action of a change as soon as a hint comes", async () => {
    const action = anAction();
    await begun();
    const { heard } = world.watch(action);
    world.commit(revised(action, 2));
    await world.hint();
    expect(heard).toEqual([2]);
  });

  test("tells it within two seconds where no hints come", async () => {
    const action = anAction();
    await begun((it) => (it.isListening = false));
    const { heard } = world.watch(action);
    world.commit(revised(action, 2));
    await world.pass(NODE_POLL_MS);
    expect(heard).toEqual([2]);
  });

  test("reads once for many hints that come together", async () => {
    const action = anAction();
    await begun();
    world.watch(action);
    for (let hints = 0; hints < 50; hints += 1) {
      world.commit(revised(action, 2 + hints));
      world.onHint();
    }
    await world.pass(0);
    await world.hint();
    expect(world.reads).toBe(1);
    await world.pass(NODE_READ_MS_MIN);
    expect(world.reads).toBe(2);
    await world.pass(NODE_POLL_MS - 2 * NODE_READ_MS_MIN);
    expect(world.reads).toBe(2);
  });

  test("reads nothing while nobody waits, and what came meanwhile does no harm", async () => {
    const action = anAction();
    await begun();
    for (let revision = 2; revision < 100; revision += 1) world.commit(revised(action, revision));
    await world.hint();
    await world.pass(NODE_POLL_MS);
    expect([world.reads, world.loaded]).toEqual([0, []]);
    const { heard } = world.watch(action);
    world.bus.saw(action.id, 99);
    await world.hint();
    expect([heard, world.loaded]).toEqual([[], []]);
    world.commit(revised(action, 100));
    await world.pass(NODE_READ_MS_MIN);
    await world.hint();
    expect(heard).toEqual([100]);
  });

  test("misses nothing that was committed between the last poll and the first who waits", async () => {
    const [action, other] = [anAction(), anAction()];
    await begun();
    world.commit(revised(other, 2));
    const { heard } = world.watch(action);
    world.commit(revised(action, 2));
    await world.pass(NODE_POLL_MS);
    expect(heard).toEqual([2]);
  });

  test("loads no action that nobody watches", async () => {
    const [action, other] = [anAction(), anAction()];
    await begun();
    world.watch(action);
    world.commit(revised(other, 2));
    world.commit(revised(action, 2));
    await world.hint();
    expect(world.loaded).toEqual([action.id]);
  });

  test("tells no revision twice: neither this node's own nor one that it reads again", async () => {
    const action = anAction();
    await begun();
    const { heard } = world.watch(action);
    world.commit(revised(action, 2));
    world.bus.publish(revised(action, 2));
    await world.hint();
    expect([heard, world.loaded]).toEqual([[2], []]);
    world.heldBackFrom = 2;
    world.commit(revised(action, 3));
    for (let turn = 0; turn < 5; turn += 1) {
      await world.pass(NODE_READ_MS_MIN);
      await world.hint();
    }
    expect([heard, world.loaded]).toEqual([[2, 3], [action.id]]);
  });

  test("tells watchers of what a transaction holds back, and wakes streams when it has ended", async () => {
    const action = anAction();
    await begun();
    world.streaming.add(action.accountId);
    const { heard } = world.watch(action);
    world.heldBackFrom = 1;
    world.commit(revised(action, 2));
    await world.hint();
    expect([heard, world.woken]).toEqual([[2], []]);
    await world.pass(NODE_READ_MS_MIN);
    expect(world.woken).toEqual([]);
    world.heldBackFrom = Number.POSITIVE_INFINITY;
    // No further hint: it looks again by itself.
    await world.pass(4 * NODE_READ_MS_MIN);
    expect(world.woken).toEqual([action.accountId]);
  });

  test("reads less and less often while a long transaction holds everything back", async () => {
    const action = anAction();
    await begun();
    world.watch(action);
    world.heldBackFrom = 1;
    world.commit(revised(action, 2));
    await world.hint();
    for (let ms = 0; ms < 30_000; ms += NODE_READ_MS_MIN) await world.pass(NODE_READ_MS_MIN);
    expect(world.reads).toBeLessThan(30);
    expect(world.reads).toBeGreaterThan(14);
  });

  test("tells watchers even when more is held back than it reads at a time", async () => {
    const [action, other] = [anAction(), anAction()];
    await begun();
    const { heard } = world.watch(action);
    world.heldBackFrom = 1;
    for (let rows = 0; rows < NODE_CHANGES_MAX; rows += 1) world.commit(revised(other, rows));
    world.commit(revised(action, 7));
    await world.hint();
    expect(heard).toEqual([7]);
  });

  test("wakes the streams of the account for this node's own changes too", async () => {
    const action = anAction();
    await begun();
    world.streaming.add(action.accountId);
    world.commit(revised(action, 1));
    world.bus.publish(action);
    await world.pass(0);
    expect(world.woken).toEqual([action.accountId]);
    world.commit(revised(action, 2));
    await world.pass(NODE_READ_MS_MIN);
    await world.hint();
    expect(world.woken).toEqual([action.accountId, action.accountId]);
  });

  test("skips to the newest when it fell behind, and tells what ended meanwhile", async () => {
    const [action, other] = [anAction(), anAction()];
    await begun();
    world.streaming.add(other.accountId);
    const { heard } = world.watch(action);
    world.commit(revised(action, 5));
    const rows = NODE_PAGES_MAX * NODE_CHANGES_MAX + 1;
    for (let row = 0; row < rows; row += 1) world.commit(revised(other, 2));
    world.commit(revised(action, 6));
    await world.hint();
    await world.pass(NODE_READ_MS_MIN);
    expect(heard.at(-1)).toBe(6);
    expect(world.reads).toBe(NODE_PAGES_MAX);
    // Once for each page, and once for what it skipped.
    expect(world.woken).toEqual(Array.from({ length: NODE_PAGES_MAX + 1 }, () => other.accountId));
    expect(world.faults).toEqual(["nodes.feed_skipped"]);
    const { reads } = world;
    world.commit(revised(action, 7));
    await world.pass(NODE_READ_MS_MIN);
    await world.hint();
    expect([heard.at(-1), world.reads]).toEqual([7, reads + 1]);
  });

  test("reads when the connection for hints is back: some were lost", async () => {
    const action = anAction();
    await begun();
    const { heard } = world.watch(action);
    world.commit(revised(action, 2));
    world.onGap();
    await world.pass(0);
    expect(heard).toEqual([2]);
  });

  test("goes on when the store is back", async () => {
    const action = anAction();
    await begun();
    const { heard } = world.watch(action);
    world.isAway = true;
    world.commit(revised(action, 2));
    await world.hint();
    await world.pass(NODE_POLL_MS);
    world.isAway = false;
    await world.pass(NODE_POLL_MS);
    expect([heard, world.faults]).toEqual([[2], []]);
  });

  test("loads an action again for which the store was away, and so many at a time at most", async () => {
    const [action, ...others] = Array.from({ length: NODE_LOADS_MAX + 1 }, () => anAction());
    if (action === undefined) return;
    await begun();
    const { heard } = world.watch(action);
    world.fault = new StoreUnavailable();
    world.brokenIds.add(action.id);
    world.commit(revised(action, 2));
    await world.hint();
    world.brokenIds.clear();
    for (const other of others) world.watch(other);
    for (const other of others) world.commit(revised(other, 2));
    world.loaded.splice(0);
    await world.pass(NODE_READ_MS_MIN);
    await world.hint();
    expect([heard, world.loaded.length, world.faults]).toEqual([[2], NODE_LOADS_MAX, []]);
    await world.pass(NODE_READ_MS_MIN);
    expect(world.loaded).toHaveLength(NODE_LOADS_MAX + 1);
  });

  test("starts while the store is away, and knows then what ended before it was back", async () => {
    const action = anAction();
    world.commit(revised(action, 2));
    const { heard } = world.watch(action);
    await begun((it) => (it.isAway = true));
    expect(heard).toEqual([]);
    world.isAway = false;
    await world.pass(NODE_POLL_MS);
    expect(heard).toEqual([2]);
  });

  test("tells of the others when one action can't be read", async () => {
    const actions = Array.from({ length: 20 }, () => anAction());
    await begun();
    const watched = actions.map((action) => world.watch(action));
    for (const action of actions.slice(0, 6)) world.brokenIds.add(action.id);
    for (const action of actions) world.commit(revised(action, 2));
    await world.hint();
    expect(watched.map(({ heard }) => heard.length)).toEqual(actions.map((_, at) => (at < 6 ? 0 : 1)));
    expect(world.faults).toContain("nodes.feed_failed");
  });

  test("says that rows of others may be due after a hint, and after a poll that found changes", async () => {
    await begun();
    const before = world.looks;
    await world.hint();
    expect(world.looks).toBe(before + 1);
    await world.pass(NODE_POLL_MS);
    expect(world.looks).toBe(before + 1);
    world.commit(anAction());
    await world.pass(NODE_POLL_MS);
    expect(world.looks).toBe(before + 2);
  });
});
