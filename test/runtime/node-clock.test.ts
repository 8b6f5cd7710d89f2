import { describe, expect, test } from "bun:test";
import { CLOCK_DOUBT_MS, CLOCK_READ_EVERY_MS } from "../../src/core/limits.ts";
import { type ClockReading, NodeClock, replacesReading } from "../../src/runtime/node-clock.ts";
import { FakeClock } from "../support/clock.ts";

const HOUR_MS = 3_600_000;

/** A machine whose wall clock is an hour off, and a database whose answers take so long each way. */
async function node({ thereMs = 0, backMs = 0 } = {}) {
  const machine = new FakeClock();
  const database = new FakeClock(new Date(machine.now().getTime() - HOUR_MS));
  const delays = { thereMs, backMs };
  const errors: unknown[] = [];
  let reads = 0;
  const pass = (ms: number) => {
    machine.stall(ms);
    database.stall(ms);
  };
  const cluster = {
    isAway: false,
    async now() {
      reads += 1;
      if (cluster.isAway) throw new Error("away");
      pass(delays.thereMs);
      const now = database.now();
      pass(delays.backMs);
      return now;
    },
  };
  const clock = await NodeClock.start({ cluster, machine, onError: (error) => errors.push(error) });
  return {
    clock,
    machine,
    database,
    delays,
    cluster,
    errors,
    reads: () => reads,
    apartMs: () => clock.now().getTime() - database.now().getTime(),
    /** Both machines go on, and what the timers began comes to rest. */
    advance: async (ms: number) => {
      database.stall(ms);
      machine.advance(ms);
      await Bun.sleep(1);
    },
  };
}

describe("the clock of a node", () => {
  test("is the database's, whatever the machine's wall clock says", async () => {
    const { apartMs, advance, machine } = await node();
    expect(apartMs()).toBe(0);
    await advance(4_321);
    expect(apartMs()).toBe(0);
    machine.jump(-HOUR_MS);
    expect(apartMs()).toBe(0);
    machine.jump(3 * HOUR_MS);
    await advance(CLOCK_READ_EVERY_MS);
    expect(apartMs()).toBe(0);
  });

  test("is off by at most half a round trip", async () => {
    const { apartMs } = await node({ thereMs: 30, backMs: 10 });
    expect(Math.abs(apartMs())).toBe(10);
  });

  test("follows the database's clock where that is set back, within the time of a reading", async () => {
    const { apartMs, advance, database } = await node();
    database.jump(-HOUR_MS);
    expect(apartMs()).toBe(HOUR_MS);
    await advance(CLOCK_READ_EVERY_MS);
    expect(apartMs()).toBe(0);
  });

  test("knows for a while that the database's clock was set", async () => {
    const { clock, advance, database } = await node();
    expect(clock.wasSet(HOUR_MS)).toBe(false);
    database.jump(30_000);
    await advance(CLOCK_READ_EVERY_MS);
    expect(clock.wasSet(45_000)).toBe(true);
    await advance(45_000);
    expect(clock.wasSet(45_000)).toBe(false);
  });

  test("is not moved by a slow answer", async () => {
    const { apartMs, advance, delays } = await node();
    delays.thereMs = 400;
    await advance(CLOCK_READ_EVERY_MS);
    expect(apartMs()).toBe(0);
  });

  test("goes on while the database is away, and reads it again", async () => {
    const { clock, advance, cluster, errors, database, apartMs } = await node();
    cluster.isAway = true;
    database.jump(HOUR_MS);
    const before = clock.now().getTime();
    await advance(CLOCK_READ_EVERY_MS);
    expect(clock.now().getTime() - before).toBe(CLOCK_READ_EVERY_MS);
    expect(errors).toHaveLength(1);
    cluster.isAway = false;
    await advance(CLOCK_READ_EVERY_MS);
    expect(apartMs()).toBe(0);
  });

  test("is in doubt after a suspend, until the database's was read", async () => {
    const { clock, machine, database, apartMs } = await node();
    expect(clock.isSure).toBe(true);
    // The monotonic clock stands still meanwhile.
    machine.jump(HOUR_MS);
    database.jump(HOUR_MS);
    expect(clock.isSure).toBe(false);
    await Bun.sleep(1);
    expect(clock.isSure).toBe(true);
    expect(apartMs()).toBe(0);
  });

  test("is sure again after the wall clock alone was set", async () => {
    const { clock, machine, apartMs, reads } = await node();
    const told: boolean[] = [];
    clock.onSure(() => told.push(clock.isSure));
    machine.jump(-CLOCK_DOUBT_MS);
    expect(clock.isSure).toBe(true);
    machine.jump(-HOUR_MS);
    const before = reads();
    expect([clock.isSure, clock.isSure]).toEqual([false, false]);
    await Bun.sleep(1);
    expect(clock.isSure).toBe(true);
    expect(apartMs()).toBe(0);
    // Whoever asks meanwhile begins no second reading.
    expect(reads() - before).toBe(3);
    expect(told).toEqual([true]);
  });

  test("leaves no timer when it stops", async () => {
    const { clock, machine } = await node();
    clock.stop();
    expect(machine.timers).toBe(0);
  });
});

test.each<[string, ClockReading, boolean]>([
  ["as exact, a little apart", { offsetMs: 4, errorMs: 5, atMs: 10_000 }, true],
  ["less exact, and the two can both be right", { offsetMs: 20, errorMs: 30, atMs: 10_000 }, false],
  ["less exact, but the two can't both be right", { offsetMs: 90, errorMs: 30, atMs: 10_000 }, true],
  ["less exact than an old one that may have drifted since", { offsetMs: 4, errorMs: 30, atMs: 300_000 }, true],
])("a reading that is %s", (_name, newer, isReplaced) => {
  expect(replacesReading({ offsetMs: 0, errorMs: 5, atMs: 0 }, newer)).toBe(isReplaced);
});
