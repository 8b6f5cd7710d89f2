import { describe, expect, test } from "bun:test";
import {
  FAILING_HOSTS_MAX,
  FAILING_HOSTS_SHOWN_MAX,
  OVERVIEW_SLOT_MS,
  OVERVIEW_SLOTS,
} from "../../src/config/limits.ts";
import { type Happened, AccountTally } from "../../src/events/tally.ts";
import { ACCOUNT, later, NOON } from "../support/factory.ts";

type Attempt = Partial<Extract<Happened, { kind: "attempted" }>>;

const created = (at = NOON): Happened => ({ kind: "created", accountId: ACCOUNT, at });

const attempted = (overrides: Attempt = {}): Happened => ({
  kind: "attempted",
  accountId: ACCOUNT,
  at: NOON,
  host: "a.example",
  next: "completed",
  durationMs: 100,
  error: null,
  ...overrides,
});

const failed = (overrides: Attempt = {}) => attempted({ next: "failed", error: "No.", ...overrides });

function tallyOf(counted: readonly Happened[], now = NOON) {
  const tally = new AccountTally(now);
  for (const one of counted) tally.add(one);
  return tally;
}

describe("a tally", () => {
  test("counts what is created, attempted and ended, in the piece of time that it is of", () => {
    const { slots, latency } = tallyOf([
      created(),
      attempted(),
      failed(),
      attempted({ next: "retry", error: "No." }),
      attempted({ at: later(-OVERVIEW_SLOT_MS) }),
    ]).view(NOON);
    expect(slots).toHaveLength(OVERVIEW_SLOTS);
    expect(slots.at(-1)).toMatchObject({ at: NOON, created: 1, completed: 1, failed: 1, attempts: 3 });
    expect(slots.at(-2)).toMatchObject({
      at: later(-OVERVIEW_SLOT_MS),
      created: 0,
      completed: 1,
      failed: 0,
      attempts: 1,
    });
    expect(slots[0]).toMatchObject({ attempts: 0, p50Ms: null, p95Ms: null });
    expect(latency?.p50Ms).toBeWithin(90, 110);
  });

  test("forgets what is a day old, hosts too", () => {
    const tally = tallyOf([created(), failed()]);
    const day = OVERVIEW_SLOTS * OVERVIEW_SLOT_MS;
    const before = tally.view(later(day - OVERVIEW_SLOT_MS));
    expect([before.slots[0]?.failed, before.hosts.length]).toEqual([1, 1]);
    const after = tally.view(later(day));
    expect([
      after.slots.every(({ attempts, created: made }) => attempts + made === 0),
      after.hosts,
      after.latency,
    ]).toEqual([true, [], null]);
    tally.add(created());
    expect(tally.view(later(day)).slots.some(({ created: made }) => made > 0)).toBe(false);
  });

  test("begins again where the clock was set back by days, and goes on", () => {
    const tally = tallyOf([failed()]);
    const back = later(-3 * OVERVIEW_SLOTS * OVERVIEW_SLOT_MS);
    tally.advance(back);
    tally.add(created(back));
    const { slots, hosts } = tally.view(back);
    expect([slots.at(-1)?.created, slots.reduce((all, { failed: count }) => all + count, 0), hosts]).toEqual([
      1,
      0,
      [],
    ]);
  });

  test("tells the hosts that fail, the worst first, with the newest error", () => {
    const { hosts } = tallyOf([
      attempted({ host: "good.example" }),
      failed({ host: "bad.example" }),
      attempted({ host: "bad.example" }),
      failed({ host: "worse.example", error: "Old.", at: later(-5) }),
      failed({ host: "worse.example", error: "New.", at: later(5) }),
      failed({ host: "worse.example", error: "Older.", at: later(-9) }),
    ]).view(later(9));
    expect(hosts).toEqual([
      { host: "worse.example", failed: 3, attempts: 3, lastError: "New.", lastFailedAt: later(5) },
      { host: "bad.example", failed: 1, attempts: 2, lastError: "No.", lastFailedAt: NOON },
    ]);
  });

  test("remembers so many hosts: a new one takes the place of what failed longest ago", () => {
    const tally = new AccountTally(later(1_000));
    for (let at = 0; at < 5 * FAILING_HOSTS_MAX; at += 1) tally.add(failed({ host: `h${at}.example`, at: later(at) }));
    const { hosts } = tally.view(later(1_000));
    expect(hosts).toHaveLength(FAILING_HOSTS_SHOWN_MAX);
    for (const { host } of hosts) expect(Number(host.slice(1, -8))).toBeGreaterThanOrEqual(4 * FAILING_HOSTS_MAX);
  });
});
