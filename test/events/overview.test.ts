import { describe, expect, test } from "bun:test";
import {
  FAILING_HOSTS_SHOWN_MAX,
  OVERVIEW_FRESH_FACTOR,
  OVERVIEW_SCAN_ROWS_MAX,
  OVERVIEW_SLOT_MS,
  OVERVIEW_SLOTS,
  OVERVIEW_STEP_ROWS,
} from "../../src/config/limits.ts";
import { createOverview } from "../../src/events/overview.ts";
import type { ActivityCount, ActivityPage, HostActivity } from "../../db/store.ts";
import { refusalOf } from "../actions/callers.ts";
import { FakeClock } from "../support/clock.ts";
import { openEngine } from "../support/engine.ts";
import { answered, later, NOON } from "../support/factory.ts";
import { ownerOf } from "../support/owner.ts";

const MINUTE_MS = 60_000;

const HOUR_MS = 3_600_000;

const NO_RETRIES = { count: 0, due: 0, isCut: false, hosts: [] };

const aPage = (page: Partial<ActivityPage>): ActivityPage => {
  return { counts: [], hosts: [], oldestAt: NOON, next: null, ...page };
};

const aCount = (count: Partial<ActivityCount>): ActivityCount => {
  return { at: NOON, kind: "completed", durationMs: 100, count: 1, ...count };
};

const aHost = (host: string, failed: number, lastFailedAt = NOON, attempts = failed): HostActivity => {
  return { host, attempts, failed, lastError: `No. ${failed}`, lastFailedAt };
};

/** An overview over pages that a test makes up, newest first. */
function overviewOf(pageAt: (index: number) => ActivityPage | Promise<ActivityPage>, clock = new FakeClock(NOON)) {
  let reads = 0;
  const actions = {
    activity: async () => pageAt((reads += 1) - 1),
    position: async () => 1_000,
    scheduledRetries: async () => NO_RETRIES,
  };
  const service = createOverview({ actions, clock });
  const read = async () => (await service.read(ownerOf("acc_a"))).overview;
  return { read, service, clock, reads: () => reads };
}

const sumOf = (slots: readonly { readonly created: number; readonly attempts: number }[]) =>
  slots.reduce((all, { created, attempts }) => all + created + attempts, 0);

describe("the overview", () => {
  test("counts what happens to the account's actions, live", async () => {
    let sent = 0;
    const send = async () => answered((sent += 1) % 3 === 0 ? 200 : 500);
    await using engine = await openEngine({ sender: { send } });
    const { owner, clock, overview } = engine;
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
      const total = sumOf((await overview.read(owner)).overview.slots);
      expect(total).toBe(count + 1 + sent);
    }
    const held = await engine.create({ approve: true, retries: 1 });
    await engine.actionService.approve(owner, held.id, null);
    await ended(held.id, 1);
    const { slots, hosts, since } = (await overview.read(owner)).overview;
    const completed = slots.reduce((all, slot) => all + slot.completed, 0);
    expect([sumOf(slots), completed]).toEqual([7 + sent, Math.floor(sent / 3)]);
    expect(hosts.reduce((all, { failed }) => all + failed, 0)).toBe(sent - completed);
    expect(hosts.reduce((all, { attempts }) => all + attempts, 0)).toBe(sent);
    expect(since).toEqual(slots[0]?.at ?? NOON);
    // Every account has its own.
    const others = await overview.read(ownerOf("acc_other"));
    expect([sumOf(others.overview.slots), others.overview.latency]).toEqual([0, null]);
    const revoked = { ...owner, revoked: AbortSignal.abort() };
    expect(await refusalOf(overview.read(revoked))).toMatchObject({ code: "unauthorized" });
  });

  test("shows a day in half hours, with the percentiles of each and of all", async () => {
    const { read } = overviewOf(() =>
      aPage({
        counts: [
          aCount({ kind: "created", durationMs: null, count: 9 }),
          aCount({ count: 90 }),
          aCount({ kind: "failed", durationMs: 300, count: 9 }),
          aCount({ kind: "retry", durationMs: 5_000 }),
          aCount({ at: later(-OVERVIEW_SLOT_MS), durationMs: 20, count: 50 }),
          aCount({ at: later(OVERVIEW_SLOT_MS) }),
          aCount({ at: later(-OVERVIEW_SLOTS * OVERVIEW_SLOT_MS) }),
        ],
      }),
    );
    const { slots, latency } = await read();
    expect(slots).toHaveLength(OVERVIEW_SLOTS);
    expect(slots.at(-1)).toEqual({
      at: NOON,
      created: 9,
      completed: 90,
      failed: 9,
      attempts: 100,
      p50Ms: 100,
      p95Ms: 300,
    });
    expect(slots.at(-2)).toMatchObject({ at: later(-OVERVIEW_SLOT_MS), completed: 50, p50Ms: 20, p95Ms: 20 });
    expect(slots[0]).toMatchObject({ attempts: 0, p50Ms: null, p95Ms: null });
    expect(latency).toEqual({ p50Ms: 100, p95Ms: 300, p99Ms: 300 });
  });

  test("lists the hosts that fail, the worst first, with the newest error", async () => {
    const pages = [
      aPage({
        hosts: [aHost("good.example", 0, NOON, 5), aHost("bad.example", 1), aHost("worse.example", 2)],
        next: 7,
      }),
      aPage({ hosts: [aHost("bad.example", 2, later(-9), 4), aHost("worse.example", 3, later(-5))] }),
    ];
    const { hosts } = await overviewOf((index) => pages[index] ?? aPage({})).read();
    expect(hosts).toEqual([
      { host: "worse.example", failed: 5, attempts: 5, lastError: "No. 2", lastFailedAt: NOON },
      { host: "bad.example", failed: 3, attempts: 5, lastError: "No. 1", lastFailedAt: NOON },
    ]);
    const many = Array.from({ length: 3 * FAILING_HOSTS_SHOWN_MAX }, (_, at) => aHost(`h${at}.example`, 1, later(at)));
    const newest = (await overviewOf(() => aPage({ hosts: many })).read()).hosts;
    expect(newest.map(({ host }) => host)).toEqual(
      many
        .toReversed()
        .slice(0, FAILING_HOSTS_SHOWN_MAX)
        .map(({ host }) => host),
    );
  });

  test("reads no further than a day", async () => {
    const { read, reads } = overviewOf((index) => aPage({ oldestAt: later(-5 * HOUR_MS * (index + 1)), next: 7 }));
    const { since, slots } = await read();
    expect([reads(), since]).toEqual([5, slots[0]?.at ?? NOON]);
  });

  test("says since when it counts if the day has more rows than it reads", async () => {
    const oldest = later(-HOUR_MS);
    const { read, reads } = overviewOf(() => aPage({ oldestAt: oldest, next: 7 }));
    expect((await read()).since).toEqual(oldest);
    expect(reads()).toBe(OVERVIEW_SCAN_ROWS_MAX / OVERVIEW_STEP_ROWS);
  });

  test("is kept for a multiple of the time that it took, and not if it could not be read", async () => {
    const clock = new FakeClock(NOON);
    let isAway = true;
    const { read, reads } = overviewOf(() => {
      clock.advance(20);
      if (isAway) throw new Error("away");
      return aPage({});
    }, clock);
    const failures = await Promise.allSettled([read(), read()]);
    expect(failures.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    isAway = false;
    await Promise.all([read(), read()]);
    expect(reads()).toBe(2);
    clock.advance(20 * OVERVIEW_FRESH_FACTOR - 1);
    await read();
    expect(reads()).toBe(2);
    clock.advance(1);
    await read();
    expect(reads()).toBe(3);
  });
});
