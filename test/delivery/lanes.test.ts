import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, spyOn, test } from "bun:test";
import type { Lane } from "../../src/delivery/lane.ts";
import { type LaneClaim, Lanes, type SlotLimits } from "../../src/delivery/lanes.ts";
import { WorkInFlight } from "../../src/delivery/in-flight.ts";
import { Reservations, Leases } from "../../src/delivery/reservations.ts";
import { WHOLE_SHARE } from "../../src/runtime/membership.ts";
import type { Sender } from "../../src/outbound/sender.ts";
import type { HostLimits } from "../../src/core/host-settings.ts";
import {
  CLAIM_AHEAD_MS,
  CREATE_WAIT_MS,
  CREATE_WAIT_MS_MAX,
  CREATES_WAITING_MAX,
  LANES_MAX,
  LARGE_ROW_BYTES,
} from "../../src/core/limits.ts";
import type { LaneName } from "../../src/core/store.ts";
import { FakeClock } from "../support/clock.ts";
import { answered } from "../support/factory.ts";
import { openEngine, requestFor, wrapping } from "../support/engine.ts";
import { until } from "../support/until.ts";

const NOW = 1_000_000;

const AT = { claimMs: NOW, nowMs: NOW };

const lane = (accountId: string, host: string, keyId = "key_one"): LaneName => ({ accountId, host, keyId });

const lanesOf = (limits: Omit<SlotLimits, "largeBytes">) => new Lanes({ ...limits, largeBytes: 0 });

const add = (lanes: Lanes, name: LaneName, atMs = NOW) => lanes.add(name, new Date(atMs), false, NOW);

const next = (name: LaneName, atMs: number, isLarge = false) => ({ ...name, dueAt: new Date(atMs), isLarge });

/** Takes one slot after another until none is free: the lanes that got them. */
function takeAll(lanes: Lanes, take: (lanes: Lanes) => readonly LaneClaim[] = (all) => all.take(1)): readonly Lane[] {
  const taken: Lane[] = [];
  for (let [ask] = take(lanes); ask !== undefined; [ask] = take(lanes)) {
    taken.push(ask.lane);
  }
  return taken;
}

const hosts = (lanes: readonly Lane[]) => lanes.map(({ accountId, host }) => accountId + host);

test("accounts take turns, and in each its hosts", () => {
  const lanes = lanesOf({ total: 100, perHost: 100 });
  for (let n = 0; n < 3; n += 1) add(lanes, lane("a", "x"));
  add(lanes, lane("a", "y"));
  add(lanes, lane("b", "x"));
  expect(hosts(takeAll(lanes))).toEqual(["ax", "bx", "ay", "ax", "ax"]);
});

test.each<[string, (lanes: Lanes, all: readonly LaneName[]) => void]>([
  [
    "become due at the same time",
    (lanes, all) => {
      for (const name of all) add(lanes, name, NOW + 1);
      lanes.wake(NOW + 1);
    },
  ],
  [
    "are found due",
    (lanes, all) =>
      lanes.found(
        all.map((name) => ({ ...name, dueAt: new Date(NOW) })),
        NOW,
      ),
  ],
])("lanes of one host that %s are each looked at a few times only", (_what, open) => {
  let looks = 0;
  const isPaused = () => {
    looks += 1;
    return false;
  };
  const lanes = new Lanes({ total: 100, perHost: 9, largeBytes: 0 }, { isPaused });
  const all = Array.from({ length: 1_000 }, (_, n) => lane("a", "x", `key_${n}`));
  open(lanes, all);
  // For each other one, it would be half a million.
  expect(looks).toBeLessThanOrEqual(4 * all.length);
  expect(lanes.take(9)).toHaveLength(9);
});

test("keys with the same number of calls in flight take turns", () => {
  const lanes = lanesOf({ total: 1, perHost: 9 });
  for (const key of ["one", "two"]) for (let n = 0; n < 2; n += 1) add(lanes, lane("a", key, key));
  const turns = Array.from({ length: 4 }, () => {
    const taken = takeAll(lanes);
    for (const one of taken) lanes.release(one);
    return taken.map(({ keyId }) => keyId);
  });
  expect(turns).toEqual([["one"], ["two"], ["one"], ["two"]]);
});

test("a claim asks each lane for as many rows as it has slots, in the order of the first ones", () => {
  const lanes = lanesOf({ total: 100, perHost: 100 });
  for (let n = 0; n < 3; n += 1) add(lanes, lane("a", "x"));
  add(lanes, lane("b", "x"));
  expect(lanes.take(3).map((ask) => [ask.lane.accountId, ask.limit])).toEqual([
    ["a", 2],
    ["b", 1],
  ]);
});

test("an account alone gets three quarters of the slots, and a newcomer always finds one", () => {
  const lanes = lanesOf({ total: 256, perHost: 256 });
  for (let n = 0; n < 256; n += 1) add(lanes, lane("a", `${n}`));
  expect(takeAll(lanes)).toHaveLength(192);
  for (let n = 0; n < 100; n += 1) add(lanes, lane("b", `${n}`));
  expect(takeAll(lanes)).toHaveLength(48);
  add(lanes, lane("c", "x"));
  expect(hosts(takeAll(lanes))).toEqual(["cx"]);
});

describe("of the keys of an account", () => {
  const fill = (lanes: Lanes, key: string, count: number, of = 1) => {
    for (let n = 0; n < count; n += 1) add(lanes, lane("a", `${n % of}`, key));
  };
  /** What is taken until nothing may go any more, by key. */
  const takenBy = (lanes: Lanes) => {
    const taken = [...takeAll(lanes)];
    return { taken, of: (key: string) => taken.filter(({ keyId }) => keyId === key).length };
  };

  test("one alone takes all slots of the account; another one goes at once all the same, and a third one", () => {
    const lanes = lanesOf({ total: 256, perHost: 64 });
    fill(lanes, "flood", 600, 10);
    expect(takenBy(lanes).of("flood")).toBe(192);
    for (const key of ["second", "third"]) {
      fill(lanes, key, 1, 1);
      expect(takenBy(lanes).of(key)).toBe(1);
    }
    // What is left is for other accounts.
    for (let n = 0; n < 300; n += 1) fill(lanes, `more${n}`, 1);
    expect(takenBy(lanes).taken.length).toBeWithin(1, 14);
    add(lanes, lane("b", "x"));
    expect(hosts(takeAll(lanes))).toEqual(["bx"]);
  });

  test("one that calls a host with all of its slots leaves two of 64 to others", () => {
    const lanes = lanesOf({ total: 256, perHost: 64 });
    fill(lanes, "flood", 192);
    expect(takenBy(lanes).of("flood")).toBe(62);
    for (const key of ["second", "third", "fourth"]) fill(lanes, key, 5);
    const others = takenBy(lanes);
    expect([others.of("second"), others.of("third"), others.of("fourth")]).toEqual([1, 1, 0]);
    // A key of another account has the host's slots for itself.
    add(lanes, lane("b", "0"));
    expect(hosts(takeAll(lanes))).toEqual(["b0"]);
  });

  test("the one with the fewest in flight gets each slot that is given back, until they have the same", () => {
    for (const limits of [
      { total: 1_000, perHost: 64, hosts: 1 },
      { total: 85, perHost: 64, hosts: 40 },
    ]) {
      const lanes = lanesOf(limits);
      fill(lanes, "flood", 200, limits.hosts);
      const { taken } = takenBy(lanes);
      fill(lanes, "second", 200, limits.hosts);
      let second = takenBy(lanes).of("second");
      for (const slot of taken.splice(0, 20)) {
        lanes.release(slot);
        second += takenBy(lanes).of("second");
      }
      expect(second).toBeGreaterThanOrEqual(20);
      const flood = taken.length;
      for (const slot of taken) lanes.release(slot);
      const last = takenBy(lanes);
      // All that the first one had is shared by now.
      expect(Math.abs(last.of("flood") - (second + last.of("second")))).toBeLessThanOrEqual(2);
      expect(flood).toBeGreaterThan(last.of("flood"));
    }
  });

  test("the one with the fewest in flight of all goes before a create", () => {
    const lanes = lanesOf({ total: 100, perHost: 100 });
    fill(lanes, "first", 1);
    lanes.reserve(lane("a", "0", "busy"));
    fill(lanes, "busy", 1);
    expect(lanes.reserve(lane("a", "0", "third"))).not.toBeNull();
    expect(lanes.reserve(lane("a", "0", "third"))).toBeNull();
  });

  test("one that waits for nothing takes nothing away: a slot is never left free for it", () => {
    const lanes = lanesOf({ total: 256, perHost: 4 });
    fill(lanes, "second", 1);
    expect(takenBy(lanes).of("second")).toBe(1);
    fill(lanes, "flood", 9);
    expect(takenBy(lanes).of("flood")).toBe(3);
    // Nor for one that is paused, or that needs memory besides a slot.
    const others = new Lanes(
      { total: 256, perHost: 4, largeBytes: 0 },
      { isPaused: ({ keyId }) => keyId === "paused" },
    );
    fill(others, "paused", 1);
    others.add(lane("a", "0", "large"), new Date(NOW), true, NOW);
    fill(others, "flood", 9);
    expect(takenBy(others).of("flood")).toBe(4);
  });

  test("the one with the fewest in flight at a host goes first there, however many it has elsewhere", () => {
    const lanes = lanesOf({ total: 100, perHost: 4 });
    for (let n = 0; n < 3; n += 1) add(lanes, lane("a", "y", "busy"));
    add(lanes, lane("a", "x", "other"));
    takeAll(lanes);
    for (const key of ["other", "busy"]) add(lanes, lane("a", "x", key));
    expect(lanes.take(1).map((claim) => claim.lane.keyId)).toEqual(["busy"]);
  });
});

test("one slot in all is enough to go on, and the last of four waits for another account", () => {
  const lanes = lanesOf({ total: 1, perHost: 1 });
  for (const account of ["a", "b"]) add(lanes, lane(account, "x"));
  expect(takeAll(lanes)).toHaveLength(1);
  const four = lanesOf({ total: 4, perHost: 4 });
  for (const host of ["x", "y", "z"]) add(four, lane("a", host));
  expect(takeAll(four)).toHaveLength(3);
  add(four, lane("a", "x", "second"));
  expect(takeAll(four)).toEqual([]);
  add(four, lane("b", "x"));
  expect(hosts(takeAll(four))).toEqual(["bx"]);
});

describe("of the rows of a lane that the store has, memory knows no number:", () => {
  /** A lane that the sweep found, with a claim that took all its slots. */
  function swept(limits = { total: 40, perHost: 10 }) {
    const lanes = lanesOf(limits);
    lanes.found([{ ...lane("a", "x"), dueAt: new Date(NOW) }], NOW);
    const [ask] = lanes.take(100);
    if (ask === undefined) throw new Error("Nothing was taken.");
    return { lanes, ask };
  }

  test("a claim asks for as many as there are slots, and gives back what it did not need", () => {
    const { lanes, ask } = swept();
    expect(ask.limit).toBe(10);
    lanes.answered(ask, 3, undefined, AT);
    expect(takeAll(lanes)).toEqual([]);
    for (let n = 0; n < 9; n += 1) add(lanes, lane("a", "x"));
    expect(takeAll(lanes)).toHaveLength(7);
  });

  test("the next one looks no further back than to what this one left, and by what a commit takes", () => {
    const { lanes, ask } = swept();
    lanes.answered(ask, 3, undefined, AT);
    expect(ask.lane.dueFromMs).toBe(NOW - 2_000);
    lanes.answered(ask, 3, next(lane("a", "x"), NOW - 500), AT);
    expect(ask.lane.dueFromMs).toBe(NOW - 2_500);
    // A row that has been due for long, as after a pause, is looked for, also where this claim did not see it.
    const late = swept();
    late.lanes.found([{ ...lane("a", "x"), dueAt: new Date(NOW - 60_000) }], NOW);
    late.lanes.answered(late.ask, 10, undefined, AT);
    expect(late.ask.lane.dueFromMs).toBeLessThanOrEqual(NOW - 60_000);
    add(lanes, lane("a", "x"), NOW - 90_000);
    expect(ask.lane.dueFromMs).toBe(NOW - 90_000);
    // Of a claim that failed, nobody knows what it left.
    lanes.failed(ask, null);
    expect(ask.lane.dueFromMs).toBeLessThan(0);
  });

  test("more that are due are asked for as soon as a slot is free", () => {
    const { lanes, ask } = swept();
    lanes.answered(ask, 10, next(lane("a", "x"), NOW), AT);
    expect(takeAll(lanes)).toEqual([]);
    lanes.release(ask.lane);
    expect(takeAll(lanes)).toHaveLength(1);
    // Also where a claim got fewer than it asked for.
    const five = lanesOf({ total: 40, perHost: 10 });
    for (let n = 0; n < 5; n += 1) add(five, lane("a", "x"));
    const [first] = five.take(3);
    if (first !== undefined) five.answered(first, 1, next(lane("a", "x"), NOW), AT);
    expect(takeAll(five)).toHaveLength(9);
  });

  test("no new one goes before those, whether a claim is on its way or not", () => {
    const { lanes, ask } = swept();
    lanes.release(ask.lane);
    expect(lanes.reserve(lane("a", "x"))).toBeNull();
    lanes.answered(ask, 9, undefined, AT);
    expect(lanes.reserve(lane("a", "x"))).not.toBeNull();
  });

  test("what is stored while a claim is on its way is asked for again: the claim may not have seen it", () => {
    const { lanes, ask } = swept();
    add(lanes, lane("a", "x"));
    lanes.answered(ask, 0, undefined, AT);
    expect(takeAll(lanes)).toHaveLength(1);
    expect(takeAll(lanes)).toEqual([]);
  });

  test("what was stored or became due while a claim was on its way is asked for once", () => {
    const { lanes, ask } = swept();
    add(lanes, lane("a", "x"));
    lanes.answered(ask, 0, next(lane("a", "x"), NOW + 5), { claimMs: NOW, nowMs: NOW + 9 });
    expect([takeAll(lanes).length, lanes.earliestMs]).toEqual([1, null]);
    // Nobody told of this one: it became due meanwhile.
    const due = swept();
    due.lanes.answered(due.ask, 0, next(lane("a", "x"), NOW + 5), { claimMs: NOW, nowMs: NOW + 9 });
    expect(due.lanes.earliestMs).toBe(NOW + 5);
    // Nor of the second of these two, which the claim for the first one names.
    const two = lanesOf({ total: 40, perHost: 10 });
    add(two, lane("a", "x"));
    const [first] = two.take(1);
    if (first !== undefined) two.answered(first, 1, next(lane("a", "x"), NOW), AT);
    expect(takeAll(two)).toHaveLength(9);
    const woken = swept();
    add(woken.lanes, lane("a", "x"), NOW + 5);
    woken.lanes.wake(NOW + 5);
    woken.lanes.answered(woken.ask, 0, undefined, { claimMs: NOW, nowMs: NOW + 9 });
    expect(woken.lanes.take(100).map(({ limit }) => limit)).toEqual([10]);
  });

  test("what is due later is asked for at its time", () => {
    const { lanes, ask } = swept();
    lanes.answered(ask, 0, next(lane("a", "x"), NOW + 500), AT);
    expect(lanes.earliestMs).toBe(NOW + 500);
    lanes.wake(NOW + 499);
    expect(takeAll(lanes)).toEqual([]);
    lanes.wake(NOW + 500);
    expect(lanes.take(100).map(({ limit }) => limit)).toEqual([10]);
  });

  test("what becomes due together is asked for in every lane of a host", () => {
    const lanes = lanesOf({ total: 40, perHost: 10 });
    const keys = ["key_one", "key_two", "key_three"];
    for (const [at, key] of keys.entries()) add(lanes, lane("a", "x", key), NOW + 500 + at);
    lanes.wake(NOW + 600);
    expect(new Set(takeAll(lanes).map(({ keyId }) => keyId))).toEqual(new Set(keys));
  });

  test("a claim that failed is asked for again at its time, or left to the sweep", () => {
    const { lanes, ask } = swept();
    lanes.failed(ask, NOW + 250);
    expect(takeAll(lanes)).toEqual([]);
    lanes.wake(NOW + 250);
    const [again] = lanes.take(100);
    if (again !== undefined) lanes.failed(again, null);
    lanes.wake(NOW + 60_000);
    expect([again?.limit, takeAll(lanes)]).toEqual([10, []]);
  });
});

test("rows that were cancelled are not asked for for ever", () => {
  const lanes = lanesOf({ total: 40, perHost: 1 });
  for (let n = 0; n < 1_000; n += 1) add(lanes, lane("a", "x"));
  const [ask] = lanes.take(100);
  if (ask !== undefined) lanes.answered(ask, 0, undefined, AT);
  expect([ask?.limit, takeAll(lanes)]).toEqual([1, []]);
});

test("one account's lanes, due or asleep, never take the room of all others", () => {
  const lanes = lanesOf({ total: 10, perHost: 1 });
  for (let n = 0; n < LANES_MAX; n += 1) add(lanes, lane("a", `${n}`), NOW + 500);
  add(lanes, lane("a", "one more"), NOW + 1);
  expect(lanes.earliestMs).toBe(NOW + 500);
  add(lanes, lane("b", "x"));
  expect(hosts(takeAll(lanes))).toEqual(["bx"]);
  // Nor do those of one key the room of the account's others.
  add(lanes, lane("a", "x", "key_two"));
  expect(takeAll(lanes).map(({ keyId }) => keyId)).toEqual(["key_two"]);
});

test("a lane that was asked for a slot in vain is not kept", () => {
  const lanes = lanesOf({ total: 1, perHost: 1 });
  const taken = lanes.reserve(lane("a", "x"));
  for (let n = 0; n < 4 * LANES_MAX; n += 1) lanes.reserve(lane("a", `${n}`));
  if (taken !== null) lanes.release(taken);
  for (const host of ["y", "z"]) add(lanes, lane("a", host));
  const [first] = takeAll(lanes);
  expect(first?.host).toBe("y");
  if (first !== undefined) lanes.release(first);
  expect(hosts(takeAll(lanes))).toEqual(["az"]);
});

describe("memory for large rows", () => {
  const MAX = 8 * LARGE_ROW_BYTES;
  /** Lanes whose next row is large; each row is claimed and held as soon as it may be. */
  function claiming(bytes: number, ...names: readonly LaneName[]) {
    const lanes = new Lanes({ total: 1_000, perHost: 1_000, largeBytes: MAX });
    for (const name of names) lanes.add(name, new Date(NOW), true, NOW);
    const take = () =>
      takeAll(lanes, () => {
        const asks = lanes.takeLarge(1);
        for (const ask of asks) lanes.holdLarge(ask.lane, bytes);
        return asks;
      });
    return { lanes, take };
  }
  const many = (count: number, name: (n: number) => LaneName) => Array.from({ length: count }, (_, n) => name(n));

  test("is no matter of small rows but of those behind a large one, and a large one is none of theirs", () => {
    const { lanes } = claiming(0, lane("a", "x"));
    add(lanes, lane("a", "x"));
    add(lanes, lane("b", "x"));
    expect(hosts(takeAll(lanes))).toEqual(["bx"]);
    expect(lanes.reserve(lane("a", "x"))).toBeNull();
  });

  test("holds one row, however large it is, and nothing besides", () => {
    const { lanes, take } = claiming(10 * MAX, lane("a", "x"), lane("b", "x"));
    const [first] = take();
    expect(first?.accountId).toBe("a");
    if (first !== undefined) lanes.holdLarge(first, -10 * MAX);
    expect(hosts(take())).toEqual(["bx"]);
  });

  test("is shared: one host leaves room for the account's others, and one account for the others", () => {
    const half = LARGE_ROW_BYTES / 2;
    const one = claiming(half, ...many(40, () => lane("a", "x"))).take();
    expect(one).toHaveLength(8);
    const taken = claiming(half, ...many(40, (n) => lane("a", `h${n}`)), lane("b", "x")).take();
    expect(hosts(taken).filter((name) => name.startsWith("a"))).toHaveLength(12);
    expect(hosts(taken)).toContain("bx");
  });

  test("is never exceeded: a claim takes a row only where the largest one has room", () => {
    const takenOf = (bytes: number) => claiming(bytes, ...many(40, (n) => lane(`a${n}`, "x"))).take();
    expect(takenOf(LARGE_ROW_BYTES)).toHaveLength(8);
    expect(takenOf(0.75 * LARGE_ROW_BYTES)).toHaveLength(10);
  });

  test("is held by calls that have ended until their results are recorded", () => {
    const { lanes, take } = claiming(LARGE_ROW_BYTES / 2, lane("a", "x"));
    const [taken] = take();
    if (taken === undefined) throw new Error("None was taken.");
    lanes.release(taken);
    for (let n = 0; n < 40; n += 1) lanes.add(lane("a", "x"), new Date(NOW), true, NOW);
    expect(take()).toHaveLength(7);
  });

  test("is needed by the row behind a claim of small ones, too", () => {
    const { lanes } = claiming(0);
    add(lanes, lane("a", "x"));
    const [claim] = lanes.take(1);
    if (claim !== undefined) lanes.answered(claim, 1, next(lane("a", "x"), NOW, true), AT);
    expect([lanes.take(1).length, lanes.takeLarge(1).length]).toEqual([0, 1]);
  });
});

test("100,000 due actions of one full host make another's claim no slower", () => {
  const lanes = lanesOf({ total: 256, perHost: 64 });
  const time = (count: number) => {
    const times = Array.from({ length: count }, () => {
      const started = performance.now();
      add(lanes, lane("b", "healthy"));
      const [ask] = lanes.take(1);
      const tookMs = performance.now() - started;
      expect(ask?.lane.host).toBe("healthy");
      if (ask !== undefined) lanes.release(ask.lane);
      return tookMs;
    });
    return times.toSorted((a, b) => a - b)[Math.floor(count / 2)] ?? 0;
  };
  const aloneMs = time(200);
  for (let n = 0; n < 100_000; n += 1) add(lanes, lane("a", "slow"));
  lanes.take(1_000);
  // A look at each of them would take thousands of times as long.
  expect(time(200)).toBeLessThan(100 * aloneMs);
});

test("a create may wait for a slot while others have got one within a tenth of a second; not at a host with limits or during a pause", () => {
  const clock = { nowMs: 0 };
  const rules = { monotonicMs: () => clock.nowMs, isPaused: () => isPaused, findLimits: () => limits };
  let isPaused = false;
  let limits: HostLimits = { maxConcurrent: null, maxPerSecond: null };
  const lanes = new Lanes({ total: 100, perHost: 1, largeBytes: 0 }, rules);
  const one = lane("a", "x");
  expect(lanes.waitMs(one)).toBe(0);
  const reserved = lanes.reserve(one);
  clock.nowMs += CREATE_WAIT_MS - 1;
  expect([lanes.reserve(one), lanes.waitMs(one), lanes.waitMs(lane("a", "y"))]).toEqual([null, CREATE_WAIT_MS, 0]);
  isPaused = true;
  expect([lanes.waitMs(one), lanes.reserve(lane("a", "y"))]).toEqual([0, null]);
  isPaused = false;
  clock.nowMs += 1;
  expect(lanes.waitMs(one)).toBe(0);
  // However long the commit took.
  if (reserved !== null) lanes.began(reserved, -CREATE_WAIT_MS_MAX);
  expect(lanes.waitMs(one)).toBe(CREATE_WAIT_MS_MAX);
  if (reserved !== null) lanes.release(reserved);
  for (limits of [
    { maxConcurrent: 1, maxPerSecond: null },
    { maxConcurrent: null, maxPerSecond: 1 },
  ]) {
    const limited = lanes.reserve(one);
    expect([limited !== null, lanes.reserve(one), lanes.waitMs(one)]).toEqual([true, null, 0]);
    if (limited !== null) lanes.release(limited);
  }
});

describe("a create that finds no free slot where others have just got one", () => {
  /** Two slots, both taken by calls that end when the test says so. */
  async function openFull() {
    let claims = 0;
    const ends: (() => void)[] = [];
    const [busy, other] = ["http://127.0.0.1:1001/", "http://127.0.0.1:1002/"];
    const sender: Sender = {
      send: async ({ url }) => {
        if (url === busy) await new Promise<void>((resolve) => void ends.push(resolve));
        return answered(200);
      },
    };
    const wrapStore = wrapping("actions", (actions) => ({
      claimDue: (claim) => {
        claims += 1;
        return actions.claimDue(claim);
      },
    }));
    const engine = await openEngine({ sender, wrapStore, env: { DISPATCH_PER_HOST: "2" } });
    for (let n = 0; n < 2; n += 1) await engine.create({ url: busy });
    await until(() => ends.length === 2);
    const inTime = async (work: Promise<unknown>) => {
      let isOver = false;
      const end = () => (isOver = true);
      void work.then(end, end);
      for (let n = 0; n < 20; n += 1) await nextTurn();
      return isOver;
    };
    return { engine, busy, other, ends, inTime, claims: () => claims };
  }

  test("waits for one and takes it with its own commit, in the order of the creates; other hosts don't wait", async () => {
    const { engine, busy, other, ends, inTime, claims } = await openFull();
    await using _ = engine;
    const before = claims();
    const first = engine.create({ url: busy });
    const second = engine.create({ url: busy });
    await engine.create({ url: other });
    expect(await inTime(first)).toBe(false);
    ends.shift()?.();
    const { id } = await first;
    expect(await inTime(second)).toBe(false);
    await until(() => ends.length === 2);
    for (const end of ends.splice(0)) end();
    await engine.saw(id, { status: "completed" });
    await second;
    expect(claims()).toBe(before);
  });

  test("takes turns with those of other keys", async () => {
    const { engine, busy, ends, inTime } = await openFull();
    await using _ = engine;
    const by = (keyId: string) => engine.actionService.create({ ...engine.owner, keyId }, requestFor({ url: busy }));
    const [one, two, other] = [by("key_one"), by("key_one"), by("key_two")];
    await inTime(two);
    ends.shift()?.();
    await one;
    await until(() => ends.length === 2);
    ends.shift()?.();
    await other;
    expect(await inTime(two)).toBe(false);
    for (const end of ends.splice(0)) end();
    const { action } = await two;
    await until(() => ends.length > 0);
    for (const end of ends.splice(0)) end();
    await engine.saw(action.id, { status: "completed" });
  });

  test("is stored as pending after a tenth of a second, or when the service stops", async () => {
    const { engine, busy, ends, inTime } = await openFull();
    await using _ = engine;
    const waited = engine.create({ url: busy });
    await inTime(waited);
    engine.clock.advance(CREATE_WAIT_MS - 1);
    expect(await inTime(waited)).toBe(false);
    engine.clock.advance(1);
    expect((await engine.actionService.get(engine.owner, (await waited).id)).status).toBe("pending");
    for (const end of ends.splice(0)) end();
    await engine.saw((await waited).id, { status: "active" });
    await until(() => ends.length === 1);
    await engine.create({ url: busy });
    const stopped = engine.create({ url: busy });
    expect(await inTime(stopped)).toBe(false);
    const drained = engine.drain(0);
    expect((await stopped).status).toBe("pending");
    for (const end of ends.splice(0)) end();
    await drained;
  });
});

describe("a slot for a row that is about to be stored", () => {
  /** Hosts with one slot each. */
  function openLoop() {
    const clock = new FakeClock();
    const lanes = new Lanes({ total: 9, perHost: 1, largeBytes: 0 }, { monotonicMs: () => clock.monotonicMs() });
    const [leases, work] = [new Leases(clock, 1_000, undefined), new WorkInFlight(clock)];
    const { promise: attempted, resolve: endAttempt } = Promise.withResolvers<void>();
    const onFree = () => void (frees += 1);
    let frees = 0;
    const all = new Reservations<LaneName>({ clock, lanes, leases, work, attempt: () => attempted, onFree });
    const reserve = (id: string, keyId = id) => all.reserve({ ...lane("a", id.slice(0, 1), keyId), id }, 0);
    const take = (id: string) => {
      const reserved = reserve(id);
      if (reserved === null || reserved instanceof Promise) throw new Error("It is not free.");
      return { ...reserved, isOpen: () => leases.isOpen(reserved.claim.leaseUntil) };
    };
    const drained = async () => Promise.race([work.drain(9).then(() => true), nextTurn(false)]);
    return { clock, lanes, leases, all, reserve, take, drained, endAttempt, frees: () => frees };
  }

  test.each(["release", "fail"] as const)("is free again after a %s, and the service may stop", async (end) => {
    const { all, leases, reserve, take, drained, frees } = openLoop();
    const x = take("x");
    const second = reserve("x2");
    expect([all.has("x"), x.isOpen(), await drained()]).toEqual([true, true, false]);
    x[end]();
    // A claim whose answer was lost may have rows.
    const lost: unknown[] = [];
    expect([all.has("x"), x.isOpen(), frees(), await drained()]).toEqual([false, end === "fail", 1, true]);
    await leases.resolveLost(async (claim) => void lost.push(claim));
    expect(lost).toEqual(end === "fail" ? [{ accountIds: ["a"], lease: x.claim }] : []);
    // Those that wait come first.
    expect(reserve("x3", "x2")).toBeNull();
    all.admit();
    expect(await second).not.toBeNull();
  });

  test("is kept by the attempt of its row, for which a stop waits; others wait as long as the commit took", async () => {
    const { all, clock, reserve, take, drained, endAttempt } = openLoop();
    const x = take("x");
    clock.advance(CREATE_WAIT_MS_MAX);
    expect(reserve("x2")).toBeNull();
    x.commit(lane("a", "x"));
    expect([all.has("x"), x.isOpen(), await drained()]).toEqual([false, false, false]);
    const second = reserve("x2");
    endAttempt();
    expect([await drained(), second]).toEqual([true, expect.any(Promise)]);
  });

  test("is waited for by so many at most, each for its time, and then by no timer", async () => {
    const { clock, reserve, take } = openLoop();
    for (let round = 0; round < 2; round += 1) {
      const x = take("x");
      const waiting = Array.from({ length: CREATES_WAITING_MAX - 1 }, (_, n) => reserve(`x${n}`, `${n % 9}`));
      clock.advance(CREATE_WAIT_MS / 2);
      waiting.push(reserve("x"));
      expect(reserve("x")).toBeNull();
      clock.advance(CREATE_WAIT_MS / 2);
      expect(await Promise.all(waiting.slice(0, -1).map(async (one) => one))).toEqual(waiting.slice(1).map(() => null));
      clock.advance(CREATE_WAIT_MS);
      expect([await waiting.at(-1), clock.timers]).toEqual([null, 0]);
      x.release();
    }
  });

  test("is looked for in few lanes that get none", async () => {
    const { all, clock, lanes, reserve, take } = openLoop();
    const [, y] = [take("x"), take("y")];
    const look = spyOn(lanes, "reserve");
    const ids = ["x0", "x1", "x2", "y1", ...Array.from({ length: 20 }, (_, n) => `x1${n}`)];
    const waiting = ids.map((id) => reserve(id));
    y.release();
    look.mockClear();
    all.admit();
    expect(look).toHaveBeenCalledTimes(3 + 1 + 8);
    all.stop();
    expect(clock.timers).toBe(0);
    expect((await Promise.all(waiting.map(async (one) => one))).filter((one) => one !== null)).toHaveLength(1);
  });
});

test("slots that are given back in one turn share one claim", async () => {
  const ends: (() => void)[] = [];
  const claims: number[] = [];
  const sender: Sender = {
    send: async () => {
      await new Promise<void>((resolve) => void ends.push(resolve));
      return answered(200);
    },
  };
  const wrapStore = wrapping("actions", (actions) => ({
    claimDue: async (claim) => {
      const claimed = await actions.claimDue(claim);
      claims.push(claimed.rows.length);
      return claimed;
    },
  }));
  await using engine = await openEngine({ sender, wrapStore, env: { DISPATCH_PER_HOST: "4" } });
  const url = "http://127.0.0.1:1001/";
  const createFour = () => Promise.all(Array.from({ length: 4 }, () => engine.create({ url })));
  const created = await createFour();
  engine.clock.advance(CREATE_WAIT_MS);
  created.push(...(await createFour()));
  const turnUntil = async (count: number) => {
    await until(() => ends.length >= count);
    for (const end of ends.splice(0)) end();
  };
  await turnUntil(4);
  await turnUntil(4);
  for (const { id } of created) await engine.saw(id, { status: "completed" });
  expect(claims.filter((rows) => rows > 0)).toEqual([4]);
});

describe("slots that other nodes have a part in", () => {
  const shared = (slots: number) => {
    const share = { slots };
    const lanes = new Lanes(
      { total: 100, perHost: 64, largeBytes: 0 },
      { share: { ...WHOLE_SHARE, slotsFor: () => share.slots } },
    );
    return { lanes, share };
  };

  test("are taken up to this node's part, at a create too", () => {
    const { lanes } = shared(2);
    expect(lanes.reserve(lane("a", "x"))).not.toBeNull();
    for (let n = 0; n < 3; n += 1) add(lanes, lane("a", "x"));
    expect(takeAll(lanes)).toHaveLength(1);
    expect(lanes.reserve(lane("a", "x", "key_two"))).toBeNull();
    expect(lanes.reserve(lane("a", "y"))).not.toBeNull();
  });

  test("are divided anew: what is under way above a smaller part ends first, and a larger one is used at once", () => {
    const { lanes, share } = shared(4);
    for (let n = 0; n < 20; n += 1) add(lanes, lane("a", "x"));
    const [one, two, three, ...others] = takeAll(lanes);
    expect(others).toHaveLength(1);
    share.slots = 2;
    lanes.sharesChanged();
    for (const done of [one, two]) if (done !== undefined) lanes.release(done);
    expect(takeAll(lanes)).toHaveLength(0);
    if (three !== undefined) lanes.release(three);
    expect(takeAll(lanes)).toHaveLength(1);
    share.slots = 6;
    lanes.sharesChanged();
    expect(takeAll(lanes)).toHaveLength(4);
  });

  test("of a host that only other nodes call are none, and its lanes take no room", () => {
    const { lanes, share } = shared(0);
    add(lanes, lane("a", "x"));
    lanes.found([{ ...lane("a", "x"), dueAt: new Date(NOW) }], NOW);
    add(lanes, lane("a", "x"), NOW + 5);
    expect([takeAll(lanes).length, lanes.reserve(lane("a", "x")), lanes.earliestMs]).toEqual([0, null, null]);
    share.slots = 1;
    lanes.sharesChanged();
    add(lanes, lane("a", "x"));
    add(lanes, lane("a", "x"));
    const [taken] = takeAll(lanes);
    share.slots = 0;
    lanes.sharesChanged();
    add(lanes, lane("a", "x"));
    if (taken !== undefined) lanes.release(taken);
    expect(takeAll(lanes)).toHaveLength(0);
    // It is known again from the store.
    share.slots = 1;
    lanes.sharesChanged();
    expect(takeAll(lanes)).toHaveLength(0);
    lanes.found([{ ...lane("a", "x"), dueAt: new Date(NOW) }], NOW);
    expect(takeAll(lanes)).toHaveLength(1);
  });

  test("keep nothing of what is due later when other nodes take them over", () => {
    const { lanes, share } = shared(1);
    add(lanes, lane("a", "x"), NOW + 500);
    share.slots = 0;
    lanes.sharesChanged();
    expect(lanes.earliestMs).toBeNull();
  });
});

describe("what an account sets for a host", () => {
  const limited = (limits: Partial<HostLimits>) => {
    const state = { limits, nowMs: 0, nodes: 1, isSettled: true };
    const lanes = new Lanes(
      { total: 100, perHost: 64, largeBytes: 9 * LARGE_ROW_BYTES },
      {
        findLimits: ({ host }) => ({ maxConcurrent: null, maxPerSecond: null, ...(host === "x" && state.limits) }),
        share: { ...WHOLE_SHARE, isSettled: () => state.isSettled, rateFor: (_name, rate) => rate / state.nodes },
        monotonicMs: () => state.nowMs,
      },
    );
    return { lanes, state };
  };

  test("is the number of its slots, whichever key calls; other hosts have theirs", () => {
    const { lanes, state } = limited({ maxConcurrent: 2 });
    for (let n = 0; n < 3; n += 1) for (const key of ["one", "two"]) add(lanes, lane("a", "x", key));
    for (let n = 0; n < 3; n += 1) add(lanes, lane("a", "y"));
    const taken = takeAll(lanes);
    expect(hosts(taken).toSorted()).toEqual(["ax", "ax", "ay", "ay", "ay"]);
    expect(lanes.reserve(lane("a", "x", "key_three"))).toBeNull();
    state.limits = { maxConcurrent: 3 };
    lanes.limitsChanged("a");
    expect(takeAll(lanes)).toHaveLength(1);
    state.limits = {};
    lanes.limitsChanged("a");
    expect(takeAll(lanes)).toHaveLength(3);
  });

  test("gives no slot while other nodes have more calls there than their shares, and is told if this one has", () => {
    const { lanes, state } = limited({ maxConcurrent: 2 });
    state.isSettled = false;
    for (const host of ["x", "x", "y"]) add(lanes, lane("a", host));
    expect(hosts(takeAll(lanes))).toEqual(["ay"]);
    state.isSettled = true;
    lanes.sharesChanged();
    for (let n = 0; n < 2; n += 1) add(lanes, lane("a", "x"));
    const [first] = takeAll(lanes);
    // Calls within its share hold up no other node, also while this one waits.
    state.isSettled = false;
    lanes.sharesChanged();
    expect(lanes.overHosts).toEqual([]);
    state.limits = { maxConcurrent: 1 };
    lanes.limitsChanged("a");
    expect(lanes.overHosts).toEqual(["a x"]);
    if (first !== undefined) lanes.release(first);
    expect(lanes.overHosts).toEqual([]);
  });

  test("never exceeds the server's own limit", () => {
    const { lanes } = limited({ maxConcurrent: 1_000 });
    for (let n = 0; n < 99; n += 1) add(lanes, lane("a", "x"));
    // Two are reserved for other keys.
    expect(takeAll(lanes)).toHaveLength(62);
  });

  test.each([{ maxConcurrent: 1 }, { maxPerSecond: 1 }])("lets keys take turns where one call fits: %j", (limits) => {
    const { lanes, state } = limited(limits);
    for (const key of ["one", "two", "three"]) for (let n = 0; n < 9; n += 1) add(lanes, lane("a", "x", key));
    const turns: string[] = [];
    for (let n = 0; n < 6; n += 1) {
      const [first, ...others] = takeAll(lanes);
      expect(others).toEqual([]);
      if (first === undefined) throw new Error("None was taken.");
      turns.push(first.keyId);
      lanes.release(first);
      state.nowMs += 1_000;
      lanes.wakeHosts();
    }
    expect(turns.slice(0, 3).toSorted()).toEqual(["one", "three", "two"]);
    expect(turns.slice(3)).toEqual(turns.slice(0, 3));
  });

  test("is how many calls begin in a second; the lane sleeps until the next one", () => {
    const { lanes, state } = limited({ maxPerSecond: 4 });
    for (let n = 0; n < 3; n += 1) add(lanes, lane("a", "x"));
    const [first] = takeAll(lanes);
    expect([first?.host, lanes.nextTokenMs]).toEqual(["x", 250]);
    if (first !== undefined) lanes.release(first);
    state.nowMs = 249;
    lanes.wakeHosts();
    expect(takeAll(lanes)).toEqual([]);
    expect(lanes.reserve(lane("a", "x"))).toBeNull();
    state.nowMs = 250;
    lanes.wakeHosts();
    expect(takeAll(lanes)).toHaveLength(1);
    expect(lanes.nextTokenMs).toBe(500);
    state.limits = { maxPerSecond: 8 };
    lanes.limitsChanged("a");
    expect(lanes.nextTokenMs).toBe(375);
  });

  test("lets nothing be claimed that would wait long to leave", () => {
    const state = { waitMs: CLAIM_AHEAD_MS + 7 };
    const lanes = new Lanes(
      { total: 9, perHost: 9, largeBytes: 0 },
      {
        findLimits: () => ({ maxConcurrent: null, maxPerSecond: 1_000 }),
        beginWaitMs: () => state.waitMs,
        monotonicMs: () => 100,
      },
    );
    add(lanes, lane("a", "x"));
    expect([takeAll(lanes), lanes.nextTokenMs]).toEqual([[], 107]);
    state.waitMs = CLAIM_AHEAD_MS;
    lanes.pauseChanged("a");
    expect(takeAll(lanes)).toHaveLength(1);
  });

  test("counts no call that did not begin: of a claim that got less or failed, and of a create that was not stored", () => {
    const { lanes, state } = limited({ maxPerSecond: 1 });
    add(lanes, lane("a", "x"));
    const [empty] = lanes.take(1);
    if (empty !== undefined) lanes.answered(empty, 0, undefined, AT);
    const reserved = lanes.reserve(lane("a", "x"));
    expect(reserved).not.toBeNull();
    if (reserved !== null) lanes.unreserve(reserved);
    add(lanes, lane("a", "x"));
    const [failed] = lanes.take(1);
    if (failed !== undefined) lanes.failed(failed, null);
    add(lanes, lane("a", "x"));
    expect(lanes.take(1)).toHaveLength(1);
    add(lanes, lane("a", "x"));
    expect([lanes.take(1), state.nowMs]).toEqual([[], 0]);
  });

  test("is remembered while no row waits: another row begins no new second", () => {
    const { lanes, state } = limited({ maxPerSecond: 1 });
    const call = () => {
      const reserved = lanes.reserve(lane("a", "x"));
      if (reserved !== null) lanes.release(reserved);
      return reserved !== null;
    };
    expect([call(), call()]).toEqual([true, false]);
    state.nowMs = 1_000;
    expect([call(), call()]).toEqual([true, false]);
  });

  test("applies to large rows too, and is divided by the nodes", () => {
    const { lanes, state } = limited({ maxPerSecond: 2 });
    state.nodes = 2;
    lanes.sharesChanged();
    for (let n = 0; n < 2; n += 1) lanes.add(lane("a", "x"), new Date(NOW), true, NOW);
    expect(lanes.takeLarge(9)).toHaveLength(1);
    expect([lanes.takeLarge(9), lanes.nextTokenMs]).toEqual([[], 1_000]);
    state.nowMs = 1_000;
    lanes.wakeHosts();
    expect(lanes.takeLarge(9)).toHaveLength(1);
  });

  test("of a host that is paused sets no timer", () => {
    const state = { isPaused: true };
    const lanes = new Lanes(
      { total: 9, perHost: 9, largeBytes: 0 },
      {
        isPaused: () => state.isPaused,
        findLimits: () => ({ maxConcurrent: null, maxPerSecond: 1 }),
        monotonicMs: () => 0,
      },
    );
    for (let n = 0; n < 3; n += 1) add(lanes, lane("a", "x"));
    expect([takeAll(lanes), lanes.nextTokenMs]).toEqual([[], null]);
    state.isPaused = false;
    lanes.pauseChanged("a");
    expect([takeAll(lanes).length, lanes.nextTokenMs]).toEqual([1, 1_000]);
  });
});
