import { describe, expect, test } from "bun:test";
import { NODE_BEAT_MS, NODE_JOIN_BEAT_MS, NODE_LIVES_MS } from "../../src/core/limits.ts";
import { NodeMembership } from "../../src/runtime/membership.ts";
import { differingSettings } from "../../src/runtime/node.ts";
import { FakeClock } from "../support/clock.ts";
import { MemoryCluster } from "../support/memory-cluster.ts";

const SECOND_MS = 1_000;

/** Nodes on one database. Each has timers of its own, so that a test can let one stand still. */
function nodes() {
  const database = new FakeClock();
  const cluster = new MemoryCluster(() => database.now().getTime());
  const all = new Map<string, FakeClock>();
  const missed = new Map<string, number>();
  const backs: string[] = [];
  const state = { isRefused: false };
  const open = (id: string) => {
    const timers = new FakeClock(database.now());
    let tell = () => {};
    const clock = {
      isSure: true,
      onSure: (listener: () => void) => void (tell = listener),
      becomeSure: () => {
        clock.isSure = true;
        tell();
      },
      now: () => database.now(),
      after: (delayMs: number, run: () => void) => timers.after(delayMs, run),
    };
    const self = { id, startedAt: database.now(), version: "1" };
    const logged: unknown[] = [];
    const note = (event: string, fields?: object) => void logged.push({ event, ...fields });
    const onBack = async () => {
      backs.push(id);
      if (state.isRefused) throw new Error("The key was changed.");
    };
    const membership = new NodeMembership({ cluster, self, clock, log: { info: note, warn: note }, onBack });
    all.set(id, timers);
    return { membership, clock, logged };
  };
  return {
    database,
    cluster,
    /** Which nodes joined or returned, and whether they may. */
    backs,
    state,
    open,
    /** Time passes in steps, for all nodes but those that stand still. */
    pass: async (ms: number, ...still: readonly string[]) => {
      for (let leftMs = ms; leftMs > 0; leftMs -= SECOND_MS / 4) {
        database.stall(SECOND_MS / 4);
        for (const [id, timers] of all) {
          // What should have rung meanwhile rings when it goes on.
          const missedMs = (missed.get(id) ?? 0) + SECOND_MS / 4;
          if (!still.includes(id)) timers.stall(missedMs);
          missed.set(id, still.includes(id) ? missedMs : 0);
        }
        for (let turns = 0; turns < 10; turns += 1) await Promise.resolve();
      }
    },
    timers: (id: string) => all.get(id)?.timers,
  };
}

describe("a node", () => {
  test("claims at once where it is the only one", async () => {
    const { membership } = nodes().open("a");
    expect(membership.mayClaim()).toBe(false);
    await membership.start();
    expect(membership.mayClaim()).toBe(true);
    expect(membership.nodes).toEqual(["a"]);
  });

  test("that comes claims only when the others know of it", async () => {
    const { open, pass } = nodes();
    const { membership: a } = open("a");
    await a.start();
    await pass(SECOND_MS);
    const { membership: b } = open("b");
    await b.start();
    expect([b.mayClaim(), b.nodes, a.nodes]).toEqual([false, ["a", "b"], ["a"]]);
    // Until the beat of the other one, and until it has seen that.
    await pass(NODE_BEAT_MS - SECOND_MS - SECOND_MS / 4);
    expect([b.mayClaim(), a.nodes]).toEqual([false, ["a"]]);
    await pass(2 * NODE_JOIN_BEAT_MS);
    expect([b.mayClaim(), a.nodes, a.mayClaim()]).toEqual([true, ["a", "b"], true]);
  });

  test("that comes is settled when each other has reported, since it counts this one, that it has no more calls to a host than its share", async () => {
    const { open, pass } = nodes();
    const { membership: a } = open("a");
    let over: readonly string[] = [];
    a.reportOver(() => over);
    await a.start();
    expect(a.isSettled("x")).toBe(true);
    const { membership: b } = open("b");
    await b.start();
    // What it reports when it first counts the other one is from before.
    const settled = () => ["x", "y", "z"].filter((host) => b.isSettled(host));
    a.onChange(() => void (over = ["x", "y"]));
    await pass(NODE_BEAT_MS);
    expect([b.mayClaim(), settled(), a.isSettled("x")]).toEqual([true, [], true]);
    await pass(3 * NODE_BEAT_MS);
    expect(settled()).toEqual(["z"]);
    let changes = 0;
    b.onChange(() => void (changes += 1));
    over = ["y", "z"];
    await pass(2 * NODE_BEAT_MS);
    expect([settled(), changes]).toEqual([["x", "z"], 1]);
    over = ["x"];
    await pass(2 * NODE_BEAT_MS);
    expect(settled()).toEqual(["x", "y", "z"]);
  });

  test("that comes just before the database's clock is set back claims when the others know of it", async () => {
    const { open, pass, database } = nodes();
    await open("a").membership.start();
    await pass(NODE_BEAT_MS - SECOND_MS / 2);
    const { membership } = open("b");
    await membership.start();
    database.jump(-3_600_000);
    await pass(2 * NODE_BEAT_MS);
    expect(membership.mayClaim()).toBe(true);
  });

  test("that comes just before the database's clock is set back hears of the others' calls as soon", async () => {
    const { open, pass, database } = nodes();
    await open("a").membership.start();
    await pass(NODE_BEAT_MS - SECOND_MS / 2);
    const { membership } = open("b");
    await membership.start();
    await pass(2 * NODE_JOIN_BEAT_MS);
    expect([membership.mayClaim(), membership.isSettled("x")]).toEqual([true, false]);
    database.jump(SECOND_MS - NODE_LIVES_MS);
    await pass(2 * NODE_BEAT_MS);
    expect(membership.isSettled("x")).toBe(true);
  });

  test("that comes just before that clock is set back by seconds takes no earlier report for a later one", async () => {
    const { open, pass, database } = nodes();
    await open("a").membership.start();
    await pass(NODE_BEAT_MS + SECOND_MS / 2);
    const { membership } = open("b");
    await membership.start();
    database.jump(-3 * SECOND_MS);
    await pass(NODE_BEAT_MS - SECOND_MS);
    expect(membership.mayClaim()).toBe(false);
    await pass(3 * SECOND_MS);
    expect(membership.mayClaim()).toBe(true);
  });

  test("that died is missed after its time, and holds up none that comes for longer", async () => {
    const { open, pass } = nodes();
    const { membership: a } = open("a");
    await a.start();
    await pass(NODE_BEAT_MS);
    const { membership: b } = open("b");
    await b.start();
    await pass(NODE_LIVES_MS - NODE_BEAT_MS, "a");
    expect(b.mayClaim()).toBe(false);
    await pass(NODE_BEAT_MS + NODE_JOIN_BEAT_MS, "a");
    expect([b.mayClaim(), b.nodes]).toEqual([true, ["b"]]);
  });

  test("that stood still for longer than it lives claims nothing until the others know of it again", async () => {
    const { open, pass } = nodes();
    const { membership: a } = open("a");
    const { membership: b } = open("b");
    await a.start();
    await b.start();
    await pass(3 * NODE_BEAT_MS);
    expect([a.mayClaim(), b.mayClaim(), b.isSettled("x")]).toEqual([true, true, true]);
    await pass(NODE_LIVES_MS + NODE_BEAT_MS, "b");
    // Before any timer of it has rung.
    expect([a.nodes, b.mayClaim()]).toEqual([["a"], false]);
    await pass(SECOND_MS / 4);
    expect([b.mayClaim(), b.isSettled("x")]).toEqual([false, false]);
    await pass(NODE_BEAT_MS + NODE_JOIN_BEAT_MS);
    expect([a.nodes, b.mayClaim()]).toEqual([["a", "b"], true]);
  });

  test("is checked when it joins and when it returns, and claims nothing unless that succeeds", async () => {
    const { open, pass, backs, state } = nodes();
    const { membership: a } = open("a");
    await a.start();
    await pass(2 * NODE_BEAT_MS);
    expect(backs).toEqual(["a"]);
    state.isRefused = true;
    await pass(NODE_LIVES_MS + NODE_BEAT_MS, "a");
    await pass(SECOND_MS / 4);
    expect([backs, a.mayClaim()]).toEqual([["a", "a"], false]);
    state.isRefused = false;
    await pass(NODE_BEAT_MS);
    expect([backs, a.mayClaim()]).toEqual([["a", "a", "a"], true]);
  });

  test("claims nothing once it could not say for its time that it lives, nor while its clock is in doubt", async () => {
    const { open, pass, cluster } = nodes();
    const { membership, clock, logged } = open("a");
    await membership.start();
    clock.isSure = false;
    expect(membership.mayClaim()).toBe(false);
    clock.isSure = true;
    cluster.isAway = true;
    await pass(NODE_BEAT_MS);
    expect(membership.mayClaim()).toBe(true);
    await pass(NODE_LIVES_MS - NODE_BEAT_MS);
    expect(membership.mayClaim()).toBe(false);
    expect(logged).toContainEqual({ event: "node.beat_failed", node: "a" });
    cluster.isAway = false;
    await pass(NODE_BEAT_MS);
    expect(membership.mayClaim()).toBe(true);
  });

  test("tells that it may claim again when its clock is in doubt no more", async () => {
    const { membership, clock } = nodes().open("a");
    await membership.start();
    const may: boolean[] = [];
    membership.onChange(() => may.push(membership.mayClaim()));
    clock.isSure = false;
    expect(membership.mayClaim()).toBe(false);
    clock.becomeSure();
    expect(may).toEqual([true]);
  });

  test("starts while the database is away, and claims when it is back", async () => {
    const { open, pass, cluster } = nodes();
    cluster.isAway = true;
    const { membership } = open("a");
    await membership.start();
    expect(membership.mayClaim()).toBe(false);
    cluster.isAway = false;
    await pass(NODE_JOIN_BEAT_MS);
    expect(membership.mayClaim()).toBe(true);
  });

  test("that stops is gone for the others at their next beat, claims nothing and leaves no timer", async () => {
    const { open, pass, timers } = nodes();
    const { membership: a } = open("a");
    const { membership: b } = open("b");
    await a.start();
    await b.start();
    await pass(NODE_BEAT_MS);
    const changes: (readonly string[])[] = [];
    a.onChange(() => changes.push(a.nodes));
    await b.stop();
    expect([b.mayClaim(), timers("b")]).toEqual([false, 0]);
    await pass(NODE_BEAT_MS);
    expect(changes).toEqual([["a"]]);
  });
});

test("a node that starts with other settings than the one before says which, but for those that are its own", async () => {
  const kept = new Map<string, string | null>();
  const facts = {
    read: async (name: string) => kept.get(name) ?? null,
    write: async (values: object) => Object.entries(values).forEach(([name, value]) => kept.set(name, value)),
  };
  const start = (perHost: string, port: string, isSet = true) =>
    differingSettings(facts, [
      { name: "PORT", value: port, isSet },
      { name: "DISPATCH_PER_HOST", value: perHost, isSet },
      { name: "METRICS_TOKEN", value: null, isSet },
    ]);
  expect([await start("8", "1"), await start("8", "2")]).toEqual([[], []]);
  expect(await start("9", "2")).toEqual([expect.stringMatching(/^DISPATCH_PER_HOST is not as on /)]);
  expect(await start("9", "2")).toEqual([]);
  expect(await start("9", "2", false)).toHaveLength(2);
});
