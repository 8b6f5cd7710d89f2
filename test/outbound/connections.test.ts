import { describe, expect, test } from "bun:test";
import ipaddr from "ipaddr.js";
import {
  KEPT_CONNECTION_IDLE_MS,
  KEPT_CONNECTION_LIFE_MS,
  KEPT_CONNECTIONS_MAX,
  KEPT_CONNECTIONS_PER_KIND_MAX,
  KEPT_PAUSE_MS,
  KEPT_PAUSES_MAX,
} from "../../src/core/limits.ts";
import { type TargetConnection, Connections, type Pool, poolFor } from "../../src/outbound/connections.ts";
import { parseTarget } from "../../src/core/target.ts";
import { FakeClock } from "../support/clock.ts";

const poolNamed = (name: string, kind = "http"): Pool => ({ name, kind });

const POOL = poolNamed("acc_one http://a.example 192.0.2.1");

const [OTHER, FAR] = [poolNamed("other"), poolNamed("far")];

/** Connections by a clock that the test moves, and which of those taken have been closed. */
function opened() {
  const clock = new FakeClock();
  const connections = new Connections(clock);
  const closed = new Set<TargetConnection["session"]>();
  const take = (pool: Pool | null = POOL) => {
    const connection = connections.take(pool);
    const { session } = connection;
    const close = session.close.bind(session);
    session.close = () => {
      closed.add(session);
      close();
    };
    return connection;
  };
  return { clock, connections, take, isClosed: ({ session }: TargetConnection) => closed.has(session) };
}

describe("a connection that was left open", () => {
  test("is taken by the next call of its pool, the one that was used last first, by one call at a time", () => {
    const { connections, take } = opened();
    const [one, two] = [take(), take()];
    expect(one.session).not.toBe(two.session);
    connections.release(one, "open");
    connections.release(two, "open");
    expect([take().session, take().session]).toEqual([two.session, one.session]);
    expect(connections.hasIdle(POOL)).toBe(false);
    expect([one.session, two.session]).not.toContain(take().session);
  });

  test("is never taken by another pool, nor by a call that has none", () => {
    const { connections, take } = opened();
    const one = take();
    connections.release(one, "open");
    expect([connections.hasIdle(OTHER), connections.hasIdle(null)]).toEqual([false, false]);
    expect([take(OTHER).session, take(null).session]).not.toContain(one.session);
    expect(take(null)).toMatchObject({ pool: null });
    expect(take().session).toBe(one.session);
  });

  test("is closed after two seconds without use", () => {
    const { clock, connections, take, isClosed } = opened();
    const [one, two] = [take(), take()];
    connections.release(one, "open");
    clock.advance(1);
    connections.release(two, "open");
    clock.advance(KEPT_CONNECTION_IDLE_MS - 2);
    expect([isClosed(one), isClosed(two)]).toEqual([false, false]);
    clock.advance(1);
    expect([isClosed(one), isClosed(two)]).toEqual([true, false]);
    clock.advance(1);
    expect([isClosed(two), clock.timers]).toEqual([true, 0]);
  });

  test("is not taken after two seconds even if the timer is late", () => {
    const clock = new FakeClock();
    let nowMs = 0;
    const connections = new Connections({ monotonicMs: () => nowMs, after: (ms, run) => clock.after(ms, run) });
    const one = connections.take(POOL);
    connections.release(one, "open");
    nowMs = KEPT_CONNECTION_IDLE_MS;
    expect(connections.hasIdle(POOL)).toBe(false);
    expect(connections.take(POOL).session).not.toBe(one.session);
  });

  test("is closed after a minute of use", () => {
    const { clock, connections, take, isClosed } = opened();
    let connection = take();
    for (let usedMs = 0; usedMs < KEPT_CONNECTION_LIFE_MS; usedMs += 1_000) {
      connections.release(connection, "open");
      expect(isClosed(connection)).toBe(false);
      clock.advance(1_000);
      connection = connections.take(POOL);
    }
    connections.release(connection, "open");
    expect([isClosed(connection), connections.hasIdle(POOL)]).toEqual([true, false]);
  });

  test("counts for those that there may be of its kind, in use or idle; the next call has one of its own", () => {
    const { clock, connections, take, isClosed } = opened();
    const taken = Array.from({ length: KEPT_CONNECTIONS_PER_KIND_MAX }, (_, n) => take(poolNamed(`pool ${n}`)));
    expect([take().pool, take(poolNamed("secure", "https a.example")).pool?.name]).toEqual([null, "secure"]);
    for (const connection of taken) connections.release(connection, "open");
    expect([take().pool, taken.filter(isClosed)]).toEqual([null, []]);
    expect(taken.map(({ session }) => session)).toContain(take(poolNamed("pool 0")).session);
    clock.advance(KEPT_CONNECTION_IDLE_MS);
    expect([taken.filter(isClosed).length, take().pool]).toEqual([KEPT_CONNECTIONS_PER_KIND_MAX - 1, POOL]);
  });

  test("counts for those that there may be in all", () => {
    const { connections, take } = opened();
    const kinds = Array.from({ length: KEPT_CONNECTIONS_MAX }, (_, n) => poolNamed(`pool ${n}`, `https ${n}`));
    const taken = kinds.map((pool) => take(pool));
    expect(taken.map(({ pool }) => pool)).toEqual(kinds);
    expect(take().pool).toBe(null);
    for (const connection of taken.slice(0, 1)) connections.release(connection, "unfit");
    expect([take().pool, take().pool]).toEqual([POOL, null]);
  });

  test("is closed by `close`, after which nothing is kept and no timer is left", () => {
    const { clock, connections, take, isClosed } = opened();
    const [idle, used] = [take(), take()];
    connections.release(idle, "open");
    connections.close();
    expect([isClosed(idle), isClosed(used), clock.timers]).toEqual([true, false, 0]);
    connections.release(used, "open");
    expect([isClosed(used), take().pool, clock.timers]).toEqual([true, null, 0]);
  });
});

describe("a connection that must not be used again", () => {
  test.each(["unfit", "lost"] as const)("%s: is closed", (state) => {
    const { connections, take, isClosed } = opened();
    const one = take();
    connections.release(one, state);
    expect([isClosed(one), connections.hasIdle(POOL)]).toEqual([true, false]);
    expect(take().pool).toBe(POOL);
  });

  test("lost after earlier calls: its pool keeps none for a minute, the others do", () => {
    const { clock, connections, take, isClosed } = opened();
    const [one, other, far] = [take(), take(), take(FAR)];
    for (const connection of [one, other, far]) connections.release(connection, "open");
    connections.release(take(), "lost");
    expect([isClosed(one), isClosed(other), isClosed(far)]).toEqual([true, true, false]);
    expect([take().pool, take(FAR).session]).toEqual([null, far.session]);
    clock.advance(KEPT_PAUSE_MS - 1);
    expect(take().pool).toBe(null);
    clock.advance(1);
    expect(take().pool).toBe(POOL);
  });

  test("a call that began before the pause does not end it", () => {
    const { connections, take, isClosed } = opened();
    const [one, two] = [take(), take()];
    connections.release(one, "open");
    connections.release(take(), "lost");
    connections.release(two, "open");
    expect([isClosed(two), take().pool]).toEqual([true, null]);
  });

  test("pauses are remembered for a bounded number of pools, the oldest forgotten", () => {
    const { connections, take } = opened();
    const lose = (name: string) => {
      const pool = poolNamed(name);
      connections.release(take(pool), "open");
      connections.release(take(pool), "lost");
    };
    for (let n = 0; n <= KEPT_PAUSES_MAX; n += 1) lose(`pool ${n}`);
    expect([take(poolNamed("pool 0")).pool?.name, take(poolNamed("pool 1")).pool]).toEqual(["pool 0", null]);
  });
});

test("a pool is named by account, origin and address; its kind is what Bun tells apart", () => {
  const of = (account: string, url: string, address: string) => {
    const target = parseTarget(url);
    if ("refused" in target) throw new Error(target.refused);
    return poolFor(account, target, ipaddr.parse(address));
  };
  const pools = ["acc_1", "acc_2"].flatMap((account) =>
    ["https://a.example", "https://a.example:8443", "http://a.example", "https://b.example"].flatMap((origin) =>
      ["192.0.2.1", "192.0.2.2", "2001:db8::1"].map((address) => of(account, `${origin}/path`, address)),
    ),
  );
  expect(new Set(pools.map(({ name }) => name)).size).toBe(24);
  expect(new Set(pools.map(({ kind }) => kind)).size).toBe(3);
  expect(of("acc_1", "https://192.0.2.1/", "192.0.2.1").kind).toBe(of("acc_1", "https://[2001:db8::1]/", "::1").kind);
});
