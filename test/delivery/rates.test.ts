import { describe, expect, test } from "bun:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import * as fc from "fast-check";
import {
  ATTEMPT_TIMEOUT_SET_MS_MIN,
  BEGIN_WAIT_MS_MAX,
  CLAIM_AHEAD_MS,
  OWED_TURN_MS,
  RATE_BURST_MS,
  RATE_EARLY_MS,
  RATE_SECOND_MS,
} from "../../src/core/limits.ts";
import { CallGate, CallRates } from "../../src/delivery/call-rates.ts";
import { forgetIdle, TokenBucket } from "../../src/delivery/token-bucket.ts";
import { callersOfRate, shareOfHost, shareOfRate, WHOLE_SHARE } from "../../src/runtime/membership.ts";
import { FakeClock } from "../support/clock.ts";

/** The times at which calls begin that never stop asking, when they are asked for after these pauses. */
function beginnings(perSecond: number, pausesMs: readonly number[]): readonly number[] {
  let nowMs = 0;
  const bucket = new TokenBucket(perSecond, nowMs);
  const begun: number[] = [];
  for (const pauseMs of pausesMs) {
    nowMs += pauseMs;
    for (; bucket.has(nowMs); bucket.take()) begun.push(nowMs);
  }
  return begun;
}

/** Whether one more call may leave, once its turn has come. */
const askTurn = (rates: CallRates, called: { readonly accountId: string; readonly host: string }) =>
  rates.turnFor(called, "actions")();

/** A pause of a millisecond, so many times. */
const everyMs = (count: number) => Array.from({ length: count }, () => 1);

/** The most of these times in one second. */
function mostInASecond(times: readonly number[]): number {
  let most = 0;
  let first = 0;
  for (const [index, time] of times.entries()) {
    while (time - (times[first] ?? 0) >= 1_000) first += 1;
    most = Math.max(most, index - first + 1);
  }
  return most;
}

const pauses = fc.array(fc.oneof(fc.integer({ min: 0, max: 30 }), fc.integer({ min: 0, max: 3_000 })), {
  minLength: 1,
  maxLength: 400,
});

test("a map that forgets what is over as it grows has at most about twice as many as are not over", () => {
  const map = new Map<string, number>();
  for (let n = 0; n < 5_000; n += 1) {
    // Each lasts for the next hundred, but every thousandth for ever.
    forgetIdle(map, (from) => from % 1_000 !== 0 && from < n - 100);
    map.set(String(n), n);
  }
  expect(map.size).toBeLessThan(250);
  expect([...map.values()].filter((n) => n % 1_000 === 0 || n >= 4_899)).toHaveLength(106);
});

describe("a token bucket", () => {
  test("lets no more calls begin in any second than its rate, however it is asked", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2_000 }), pauses, (rate, pausesMs) => {
        expect(mostInASecond(beginnings(rate, pausesMs))).toBeLessThanOrEqual(rate);
      }),
    );
  });

  test.each([100, 1_000, 2_000])("of %d a second counts its first calls in the rate", (rate) => {
    expect(beginnings(rate, [0])).toHaveLength((rate * RATE_BURST_MS) / 1_000);
    expect(mostInASecond(beginnings(rate, everyMs(3_000)))).toBeLessThanOrEqual(rate);
  });

  test.each([
    [1, 60],
    [10, 600],
    [1_000, 60_000],
  ])("of %d a second lets nearly so many begin in a minute, not fewer", (rate, calls) => {
    const begun = beginnings(rate, everyMs(60_000)).length;
    expect(begun).toBeGreaterThanOrEqual(0.98 * calls);
    expect(begun).toBeLessThanOrEqual(1.001 * calls);
  });

  test("has a token when it says so, however its fractions add up", () => {
    for (let rate = 1; rate <= 2_000; rate += 1) {
      const bucket = new TokenBucket(rate, 0.1);
      while (bucket.has(0.1)) bucket.take();
      for (let ms = 1; ms <= 3; ms += 1) bucket.has((ms * 0.1) / rate);
      expect(bucket.has(bucket.nextMs(0.1))).toBe(true);
    }
  });

  test("of less than one a second waits longer than that between two", () => {
    expect(beginnings(0.01, [0, 50_000, 49_999, 1, 99_999, 1])).toEqual([0, 100_000, 200_000]);
  });

  test("says when the next call may begin, and counts what did not begin back", () => {
    const bucket = new TokenBucket(2, 0);
    expect([bucket.isFull(0), bucket.nextMs(0)]).toEqual([true, 0]);
    bucket.take();
    expect([bucket.has(499), bucket.nextMs(100), bucket.has(500)]).toEqual([false, 500, true]);
    bucket.take();
    bucket.giveBack(1);
    expect(bucket.has(500)).toBe(true);
    bucket.giveBack(9);
    bucket.take();
    expect(bucket.has(500)).toBe(false);
    const many = new TokenBucket(1_000, 0);
    while (many.has(0)) many.take();
    many.giveBack(1);
    many.take();
    expect(many.has(0)).toBe(false);
    const few = new TokenBucket(1_000, 0);
    few.take();
    expect([few.isFull(0), few.nextMs(0), few.isFull(1_000)]).toEqual([false, 0, true]);
  });

  test("begins no new burst when its rate is changed, and goes on at the new one", () => {
    const bucket = new TokenBucket(1, 0);
    bucket.take();
    bucket.setRate(10, 0);
    expect([bucket.has(99), bucket.has(100)]).toEqual([false, true]);
    bucket.setRate(1_000, 100);
    bucket.setRate(1, 100);
    bucket.take();
    expect(bucket.has(1_000)).toBe(false);
    const slow = new TokenBucket(1, 0);
    slow.take();
    slow.setRate(10, 500);
    expect([slow.has(500), slow.has(550)]).toEqual([false, true]);
  });

  test("takes a clock that stands still or goes back for no time", () => {
    const bucket = new TokenBucket(1, 1_000);
    bucket.take();
    expect([bucket.has(0), bucket.has(1_500), bucket.has(2_000)]).toEqual([false, false, true]);
  });
});

const gateOf = (clock: FakeClock, perSecond: number) =>
  new CallGate(clock, { accountId: "a", host: "x" }, { perSecond, slots: 64 });

/** When the calls left that asked for their turn after these pauses, by a process that stands still now and then. */
async function departures(perSecond: number, asked: readonly Pause[]): Promise<readonly number[]> {
  const clock = new FakeClock();
  const gate = gateOf(clock, perSecond);
  const left: number[] = [];
  const leaving: Promise<void>[] = [];
  const leave = async () => {
    if (await gate.begin()) left.push(clock.monotonicMs());
  };
  for (const { calls, afterMs, isStall } of asked) {
    if (isStall) clock.stall(afterMs);
    // In steps, so that whoever leaves sees its time.
    for (let ms = isStall ? afterMs : 0; ms < afterMs; ms += 1) {
      clock.advance(1);
      await Promise.resolve();
    }
    await Promise.resolve();
    for (let call = 0; call < calls; call += 1) leaving.push(leave());
    await Promise.resolve();
  }
  return left;
}

interface Pause {
  readonly calls: number;
  readonly afterMs: number;
  readonly isStall: boolean;
}

describe("where calls leave", () => {
  test("no second sees more of them than its rate, however they ask, even if it is a little longer on their way", async () => {
    const pause = fc.record({
      calls: fc.integer({ min: 0, max: 30 }),
      afterMs: fc.oneof(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 700 })),
      isStall: fc.boolean(),
    });
    const longest = 1_000 + 0.7 * (RATE_SECOND_MS - 1_000);
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 2_000 }), fc.array(pause, { maxLength: 30 }), async (rate, all) => {
        const times = await departures(rate, all);
        expect(mostInASecond(times.map((time) => (time * 1_000) / longest))).toBeLessThanOrEqual(rate);
      }),
    );
  });

  test.each([12, 50, 300, 2_000])(
    "at %d a second they leave nearly so fast, although timers are late",
    async (rate) => {
      const seconds = 20;
      const more = Array.from({ length: seconds * 1_000 }, () => ({
        calls: rate > 1_000 ? 3 : 1,
        afterMs: 1,
        isStall: false,
      }));
      const times = await departures(rate, more);
      expect(times.length).toBeGreaterThanOrEqual(0.97 * rate * seconds);
      expect(mostInASecond(times)).toBeLessThanOrEqual(rate);
    },
  );

  test("they leave in the order in which they ask, evenly", async () => {
    const clock = new FakeClock();
    const gate = gateOf(clock, 20);
    const left: number[] = [];
    const leaving = Array.from({ length: 5 }, async (_, call) => {
      await gate.begin();
      left.push(call);
    });
    for (let count = 1; count <= 5; count += 1) {
      await Promise.resolve();
      expect(left).toEqual(Array.from({ length: count }, (_, call) => call));
      clock.advance(RATE_SECOND_MS / 20);
    }
    await Promise.all(leaving);
  });

  test("waiting leaves a call most of the shortest timeout that an account can set", () => {
    expect(BEGIN_WAIT_MS_MAX).toBeLessThanOrEqual(ATTEMPT_TIMEOUT_SET_MS_MIN / 4);
    expect(BEGIN_WAIT_MS_MAX).toBeGreaterThan(2 * CLAIM_AHEAD_MS);
  });

  test("a call that would wait too long is given back", () => {
    const clock = new FakeClock();
    const gate = gateOf(clock, 0.5);
    expect([gate.begin(), gate.waitMs(), gate.begin()]).toEqual([true, 2 * RATE_SECOND_MS - RATE_EARLY_MS, false]);
    clock.advance(2 * RATE_SECOND_MS);
    expect(gate.begin()).toBe(true);
    const many = gateOf(clock, 20);
    const allowed = Array.from({ length: 20 }, () => many.begin()).filter((one) => one !== false);
    expect(allowed).toHaveLength(1 + Math.floor((BEGIN_WAIT_MS_MAX + RATE_EARLY_MS) / (RATE_SECOND_MS / 20)));
  });

  test("the last call before a change of the rate still counts; each host has its own rate", async () => {
    const clock = new FakeClock();
    const rates = { perSecond: 0.1 };
    const calls = new CallRates({
      clock,
      findLimits: () => ({ maxPerSecond: rates.perSecond, maxConcurrent: null }),
      // This node's part is the half.
      share: { ...WHOLE_SHARE, rateFor: (_name, rate) => rate / 2 },
      perHost: 64,
    });
    const called = { accountId: "a", host: "x" };
    expect(await askTurn(calls, called)).toBe(true);
    rates.perSecond = 40;
    expect(calls.waitMs(called)).toBeCloseTo(RATE_SECOND_MS / 20 - RATE_EARLY_MS);
    expect(calls.waitMs({ ...called, host: "y" })).toBe(0);
    expect(calls.waitMs(called)).toBeCloseTo(RATE_SECOND_MS / 20 - RATE_EARLY_MS);
    const next = askTurn(calls, called);
    expect(calls.waitMs({ ...called, host: "z" })).toBe(0);
    expect(calls.waitMs(called)).toBeCloseTo(RATE_SECOND_MS / 10 - RATE_EARLY_MS);
    clock.advance(RATE_SECOND_MS / 20);
    expect(await next).toBe(true);
  });

  test("a call that could not connect keeps its turn for its next address, unless another one has left since", async () => {
    const clock = new FakeClock();
    const findLimits = ({ host }: { host: string }) => ({ maxPerSecond: host === "x" ? 2 : 10, maxConcurrent: null });
    const calls = new CallRates({ clock, findLimits, share: WHOLE_SHARE, perHost: 64 });
    const called = { accountId: "a", host: "x" };
    const [first, second, third] = [1, 2, 3].map(() => calls.turnFor(called, "actions"));
    expect([await first?.(), await first?.(), await second?.()]).toEqual([true, true, false]);
    clock.advance(RATE_SECOND_MS / 2);
    expect([await second?.(), await first?.(), await second?.(), await third?.()]).toEqual([true, false, true, false]);
    clock.advance(RATE_SECOND_MS / 2 - 200);
    const waiting = third?.();
    expect([await second?.(), await waiting]).toEqual([true, false]);
    expect(calls.waitMs(called)).toBe(RATE_SECOND_MS / 2 - RATE_EARLY_MS);
    // Nor does one wait for longer than calls wait here, however many addresses the one before it tries.
    const [one, other] = ["y", "y"].map((host) => calls.turnFor({ accountId: "a", host }, "actions"));
    expect(await one?.()).toBe(true);
    const late = other?.();
    for (let tries = 0; tries < 2; tries += 1) {
      clock.advance(90);
      expect(await one?.()).toBe(true);
    }
    expect(await late).toBe(false);
  });

  test("a callback that actions leave no room has the next turn, and they wait a second for it at most", () => {
    const clock = new FakeClock();
    const gate = new CallGate(clock, { accountId: "a", host: "x" }, { perSecond: 0.5, slots: 64 });
    const turnMs = 2 * RATE_SECOND_MS;
    expect([gate.begin("actions"), gate.begin("callbacks"), gate.begin("actions")]).toEqual([true, false, false]);
    clock.advance(turnMs);
    expect([gate.begin("actions"), gate.begin("callbacks"), gate.waitMs("actions")]).toEqual([
      false,
      true,
      turnMs - RATE_EARLY_MS,
    ]);
    clock.advance(turnMs);
    expect([gate.begin("actions"), gate.begin("callbacks")]).toEqual([true, false]);
    clock.advance(turnMs);
    expect(gate.waitMs("actions")).toBe(OWED_TURN_MS - RATE_EARLY_MS);
    clock.advance(OWED_TURN_MS);
    expect(gate.begin("actions")).toBe(true);
  });

  test("a callback behind waiting actions has the turn after them, and none after its own", () => {
    const clock = new FakeClock();
    const gate = gateOf(clock, 20);
    expect(gate.begin("callbacks")).toBe(true);
    while (gate.begin("actions") !== false);
    const owedMs = () => gate.waitMs("actions") - gate.waitMs("callbacks");
    expect([owedMs(), gate.begin("callbacks"), owedMs() > 0]).toEqual([0, false, true]);
    clock.advance(RATE_SECOND_MS / 20);
    const turnMs = Math.ceil(gate.waitMs("callbacks"));
    expect([owedMs() > 0, gate.begin("callbacks")]).toEqual([true, expect.any(Promise)]);
    clock.advance(turnMs);
    expect(owedMs()).toBe(0);
    // A turn of an earlier rate may be far off.
    const slow = gateOf(clock, 0.01);
    expect([slow.begin("actions"), slow.begin("callbacks")]).toEqual([true, false]);
    slow.setPace({ perSecond: 20, slots: 64 });
    expect(slow.waitMs("actions")).toBeLessThan(RATE_SECOND_MS / 20);
  });

  test("after a stall, none leaves before those that wait", async () => {
    let nowMs = 0;
    const clock = { monotonicMs: () => nowMs, after: () => () => {} };
    const findLimits = () => ({ maxPerSecond: 20, maxConcurrent: null });
    const calls = new CallRates({ clock, findLimits, share: WHOLE_SHARE, perHost: 64 });
    const begin = (host = "x") => askTurn(calls, { accountId: "a", host });
    const states = async (turns: readonly Promise<boolean>[]) => (await nextTurn(), turns.map(Bun.peek.status));
    expect(await states([begin(), begin()])).toEqual(["fulfilled", "pending"]);
    nowMs = 1_000;
    // A further host makes it forget those that are idle.
    expect(await states([begin("y"), begin()])).toEqual(["fulfilled", "pending"]);
  });

  test("a call to a further host costs the same however many have been called", async () => {
    const HOSTS = 5_000;
    const clock = new FakeClock();
    let looks = 0;
    const counted = {
      after: () => () => {},
      monotonicMs: () => {
        looks += 1;
        return clock.monotonicMs();
      },
    };
    let [slots, paces] = [9, 0];
    const findLimits = () => ((paces += 1), { maxPerSecond: 0.01, maxConcurrent: null });
    const share = { ...WHOLE_SHARE, slotsFor: () => slots };
    const rates = new CallRates({ clock: counted, findLimits, share, perHost: 9 });
    for (let n = 0; n < HOSTS; n += 1) expect(await askTurn(rates, { accountId: "a", host: `h${n}` })).toBe(true);
    // A look at each of the others would be 12 million.
    expect(looks).toBeLessThan(20 * HOSTS);
    // Those that are idle are forgotten, also while other nodes call them.
    clock.advance(100 * RATE_SECOND_MS);
    [slots, paces] = [0, 0];
    rates.changed(null);
    expect(paces).toBe(HOSTS);
    slots = 9;
    for (let n = 0; n < HOSTS; n += 1) expect(await askTurn(rates, { accountId: "a", host: `other${n}` })).toBe(true);
    paces = 0;
    rates.changed(null);
    expect(paces).toBe(HOSTS);
  });

  describe("calls that wait when the limits of their host change", () => {
    /** Six calls at 20 a second, of which one has left, and when each of the others left or was given back. */
    async function waiting() {
      const clock = new FakeClock();
      const limits: { maxPerSecond: number | null; maxConcurrent: number | null } = {
        maxPerSecond: 20,
        maxConcurrent: 8,
      };
      const ids = ["n1"];
      const rates = new CallRates({
        clock,
        findLimits: () => limits,
        share: {
          slotsFor: (name, slots) => (ids.includes("n1") ? shareOfHost(name, slots, "n1", ids, ids.length) : 0),
          rateFor: (name, rate, slots) => shareOfRate(name, { perSecond: rate, slots }, "n1", ids),
        },
        perHost: 64,
      });
      const called = { accountId: "a", host: "x" };
      expect(await askTurn(rates, called)).toBe(true);
      const ends: string[] = [];
      const leave = async (call: number) => {
        const hasLeft = await askTurn(rates, called);
        ends.push(`${hasLeft ? call : `not ${call}`} at ${Math.round(clock.monotonicMs())}`);
      };
      const leaving = [1, 2, 3, 4, 5].map(leave);
      const startMs = clock.monotonicMs();
      return {
        clock,
        ids,
        /** How they ended, in milliseconds after the first, once the limits changed and time passed. */
        async after(change: Partial<typeof limits>, ms: number): Promise<readonly string[]> {
          Object.assign(limits, change);
          rates.changed(null);
          expect(clock.timers).toBeLessThanOrEqual(1);
          for (let passed = 0; passed < ms; passed += 1) {
            await nextTurn();
            clock.advance(1);
          }
          await Promise.all(leaving);
          return ends.map((end) => end.replace(/\d+$/, (at) => String(Number(at) - Math.round(startMs))));
        },
      };
    }

    const ALL_GIVEN_BACK = ["not 1 at 0", "not 2 at 0", "not 3 at 0", "not 4 at 0", "not 5 at 0"];

    test("leave at the new rate, and are given back if that is too late", async () => {
      expect(await (await waiting()).after({ maxPerSecond: 5 }, 1_000)).toEqual([
        ...ALL_GIVEN_BACK.slice(1),
        "1 at 199",
      ]);
      expect(await (await waiting()).after({ maxPerSecond: 1 }, 2_000)).toEqual(ALL_GIVEN_BACK);
    });

    test("leave earlier if it is raised, and at once if it is removed", async () => {
      const raised = ["1 at 6", "2 at 16", "3 at 26", "4 at 36", "5 at 46"];
      expect(await (await waiting()).after({ maxPerSecond: 100 }, 300)).toEqual(raised);
      const removed = ["1 at 1", "2 at 1", "3 at 1", "4 at 1", "5 at 1"];
      expect(await (await waiting()).after({ maxPerSecond: null }, 300)).toEqual(removed);
    });

    test("are given back if the host may have fewer calls at a time", async () => {
      expect(await (await waiting()).after({ maxConcurrent: 1 }, 300)).toEqual(ALL_GIVEN_BACK);
    });

    test("are given back if other nodes call the host now", async () => {
      const rest = await waiting();
      rest.ids[0] = "n2";
      expect(await rest.after({}, 300)).toEqual(ALL_GIVEN_BACK);
      expect(rest.clock.timers).toBe(0);
    });
  });
});

test("a call whose host other nodes call by now is given back, and none waits for ever", async () => {
  const clock = new FakeClock();
  for (const perSecond of [1, 2]) {
    const ids = ["n1"];
    const calls = new CallRates({
      clock,
      findLimits: () => ({ maxPerSecond: perSecond, maxConcurrent: null }),
      share: {
        slotsFor: (name, slots) => shareOfHost(name, slots, "n1", ids, callersOfRate(perSecond)),
        rateFor: (name, rate, slots) => shareOfRate(name, { perSecond: rate, slots }, "n1", ids),
      },
      perHost: 64,
    });
    // Hosts of which the first of four nodes is no caller.
    const all = ["n1", "n2", "n3", "n4"];
    const hosts = Array.from({ length: 40 }, (_, at) => ({ accountId: "a", host: `h${at}` }));
    const left = hosts.filter(({ host }) => shareOfHost(`a ${host}`, 64, "n1", all, callersOfRate(perSecond)) === 0);
    expect(left).not.toBeEmpty();
    expect(await Promise.all(left.map((one) => askTurn(calls, one)))).toEqual(left.map(() => true));
    clock.advance(2 * RATE_SECOND_MS);
    ids.push("n2", "n3", "n4");
    expect(await Promise.all(left.map((one) => askTurn(calls, one)))).toEqual(left.map(() => false));
    expect(left.map((one) => calls.waitMs(one))).toEqual(left.map(() => Number.POSITIVE_INFINITY));
    expect(clock.timers).toBe(0);
    ids.splice(1);
    expect(await Promise.all(left.map((one) => askTurn(calls, one)))).toEqual(left.map(() => true));
  }
});

describe("nodes that share a rate", () => {
  const rateFor = (perSecond: number, slots: number, ids: readonly string[]) =>
    ids.map((id) => {
      const hasSlots = shareOfHost("x", slots, id, ids, callersOfRate(perSecond)) > 0;
      return hasSlots ? shareOfRate("x", { perSecond, slots }, id, ids) : 0;
    });
  const sum = (rates: readonly number[]) => rates.reduce((total, rate) => total + Math.ceil(rate), 0);

  test("make whole calls a second, together as many as it allows", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 100 }),
        fc.integer({ min: 1, max: 64 }),
        fc.integer({ min: 1, max: 9 }),
        (perSecond, slots, count) => {
          const ids = Array.from({ length: count }, (_, n) => `node_${n}`);
          expect(sum(rateFor(perSecond, slots, ids))).toBe(perSecond);
        },
      ),
    );
  });

  test("leave it to one of them if it is less than two a second, or there is one slot", () => {
    for (const [perSecond, slots] of [
      [0.1, 64],
      [1.5, 64],
      [12, 1],
    ] as const)
      expect(rateFor(perSecond, slots, ["a", "b", "c"]).toSorted((a, b) => a - b)).toEqual([0, 0, perSecond]);
  });
});
