import { describe, expect, test } from "bun:test";
import { HISTORY_PAGE_ROWS, HISTORY_ROWS_MAX, OVERVIEW_ACCOUNTS_MAX } from "../../src/config/limits.ts";
import type { Happened } from "../../src/events/tally.ts";
import { createBus } from "../../src/events/bus.ts";
import { createOverview, type OverviewDeps } from "../../src/events/overview.ts";
import { refusalOf } from "../actions/callers.ts";
import { FakeClock } from "../support/clock.ts";
import { openEngine } from "../support/engine.ts";
import { anAction, answered, later, NOON } from "../support/factory.ts";
import { ownerOf } from "../support/owner.ts";

const MINUTE_MS = 60_000;

const HOUR_MS = 3_600_000;

const NOTHING_ASLEEP = { count: 0, due: 0, isCut: false, hosts: [] };

/** An overview over a history that a test makes up. */
function madeUp(history: OverviewDeps["actions"]["history"], clock = new FakeClock(NOON)) {
  const bus = createBus();
  const warned: string[] = [];
  const overview = createOverview({
    actions: { history, position: async () => 1, scheduledRetries: async () => NOTHING_ASLEEP },
    bus,
    clock,
    log: { warn: (event) => void warned.push(event) },
  });
  const read = async (accountId: string) => (await overview.read(ownerOf(accountId))).overview;
  return { overview, bus, clock, warned, read };
}

const createdOf = async ({ slots }: { slots: readonly { created: number }[] }) =>
  slots.reduce((all, { created }) => all + created, 0);

describe("the overview", () => {
  test("counts what happens, and after a start it has read back the very same", async () => {
    let sent = 0;
    const send = async () => answered((sent += 1) % 3 === 0 ? 200 : 500);
    await using engine = await openEngine({ sender: { send } });
    const { owner, clock, store } = engine;
    const ended = async (id: string, retries: number) => {
      for (let attempts = 1; attempts <= retries; attempts += 1) {
        const ends = [{ status: "completed" }, { status: "failed" }, { status: "pending", attempts }] as const;
        await Promise.race(ends.map((end) => engine.saw(id, end)));
        clock.advance(10 * MINUTE_MS);
      }
    };
    for (let count = 0; count < 6; count += 1) {
      const retries = 1 + (count % 3);
      const { id } = await engine.create({ retries, url: `http://127.0.0.1:${9_000 + (count % 2)}/` });
      await ended(id, retries);
      const { status } = await engine.actionService.get(owner, id);
      if (status === "failed") await engine.actionService.retry(owner, id, null).then(() => ended(id, retries));
    }
    const held = await engine.create({ approve: true, retries: 1 });
    await engine.actionService.approve(owner, held.id, null);
    await ended(held.id, 1);
    await engine.loop.drain(0);
    const live = await engine.overview.read(owner);

    const again = createOverview({ actions: store.actions, bus: createBus(), clock, log: { warn: () => {} } });
    await again.start();
    await again.ready();
    const read = await again.read(owner);
    expect(read.overview.slots).toEqual(live.overview.slots);
    expect(read.overview.hosts.map(({ host, failed }) => ({ host, failed }))).toEqual(
      live.overview.hosts.map(({ host, failed }) => ({ host, failed })),
    );
    expect(read.overview.latency).toEqual(live.overview.latency);
    expect(await createdOf(live.overview)).toBe(7);
    expect(live.overview.slots.reduce((all, { attempts }) => all + attempts, 0)).toBe(sent);
    // All of it: the store has nothing that is older.
    expect(read.overview.since).toEqual(read.overview.slots[0]?.at ?? NOON);
    await again.stop();
  });

  test("is each account's own, for whoever may read", async () => {
    const { overview, bus, read } = madeUp(async () => ({ counted: [], until: null }));
    await overview.start();
    await overview.ready();
    bus.publish(anAction({ accountId: "acc_a" }));
    expect(await createdOf(await read("acc_a"))).toBe(1);
    expect(await createdOf(await read("acc_b"))).toBe(0);
    const revoked = { ...ownerOf("acc_a"), revoked: AbortSignal.abort() };
    expect(await refusalOf(overview.read(revoked))).toMatchObject({ code: "unauthorized" });
  });

  test("says since when it counts where its history is longer than what it reads", async () => {
    let asked = 0;
    const oldest = later(-HOUR_MS);
    const endless = async () => {
      asked += 1;
      const counted: readonly Happened[] = [{ kind: "created", accountId: "acc_a", at: oldest }];
      return { counted, until: 7 };
    };
    const { overview, read } = madeUp(endless);
    await overview.start();
    expect((await read("acc_a")).isReading).toBe(true);
    await overview.ready();
    expect(asked).toBe(HISTORY_ROWS_MAX / HISTORY_PAGE_ROWS);
    expect(await read("acc_a")).toMatchObject({ since: oldest, isReading: false });
    expect(await read("acc_nobody")).toMatchObject({ since: oldest });
  });

  test("reads no further than a day", async () => {
    let asked = 0;
    const aging = async () => {
      asked += 1;
      const counted: readonly Happened[] = [{ kind: "created", accountId: "acc_a", at: later(-asked * 5 * HOUR_MS) }];
      return { counted, until: 7 };
    };
    const { overview, read } = madeUp(aging);
    await overview.start();
    await overview.ready();
    const { since, slots } = await read("acc_a");
    expect(asked).toBe(5);
    expect(await createdOf({ slots })).toBe(4);
    expect(since).toEqual(slots[0]?.at ?? NOON);
  });

  test("goes on without what it can't read, and says so", async () => {
    const { overview, warned, read } = madeUp(() => Promise.reject(new Error("away")));
    await overview.start();
    await overview.ready();
    expect(warned).toEqual(["overview.unread"]);
    expect(await read("acc_a")).toMatchObject({ since: NOON, isReading: false });
  });

  test("remembers so many accounts: whoever was quiet longest is forgotten, and told since when", async () => {
    const { overview, bus, clock, read } = madeUp(async () => ({ counted: [], until: null }));
    await overview.start();
    await overview.ready();
    for (let at = 0; at < OVERVIEW_ACCOUNTS_MAX; at += 1) bus.publish(anAction({ accountId: `acc_${at}` }));
    bus.publish(anAction({ accountId: "acc_0" }));
    clock.advance(31 * MINUTE_MS);
    bus.publish(anAction({ accountId: "acc_new" }));
    expect(await createdOf(await read("acc_0"))).toBe(2);
    const whole = (await read("acc_0")).slots[0]?.at;
    expect((await read("acc_0")).since).toEqual(whole ?? NOON);
    // It made room for the new one.
    expect(await createdOf(await read("acc_1"))).toBe(0);
    expect((await read("acc_1")).since).toEqual(clock.now());
    bus.publish(anAction({ accountId: "acc_1" }));
    expect((await read("acc_1")).since).toEqual(later(31 * MINUTE_MS));
  });
});
