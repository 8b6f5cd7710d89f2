import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createNodeStore } from "../../db/postgres/cluster.ts";
import { openPostgres, type PostgresPool } from "../../db/postgres/connection.ts";
import { JOB_LEASE_MS } from "../../src/core/limits.ts";
import { NOON } from "../support/factory.ts";
import { dropDatabase, hasPostgres } from "../support/postgres.ts";
import { createMigrated } from "../support/postgres-store.ts";

const HOUR_MS = 3_600_000;

describe.skipIf(!hasPostgres)("nodes on one PostgreSQL", () => {
  let url = "";
  const open: PostgresPool[] = [];
  const node = () => {
    const sql = openPostgres(url);
    open.push(sql);
    return createNodeStore(sql);
  };
  const row = (id: string) => ({ id, version: "1.0.0", startedAt: NOON });

  beforeAll(async () => {
    url = await createMigrated();
  });

  afterAll(async () => {
    await Promise.all(open.map((sql) => sql.close()));
    await dropDatabase(url);
  });

  test("have one clock, which goes on", async () => {
    const [a, b] = [node(), node()];
    const [first, second] = [await a.now(), await b.now()];
    expect(second.getTime()).toBeGreaterThanOrEqual(first.getTime());
    expect(Math.abs(first.getTime() - Date.now())).toBeLessThan(60_000);
  });

  test("see each other, with the time of their last beats, until they leave or die", async () => {
    const [a, b] = [node(), node()];
    expect((await a.beat(row("nod_a"), HOUR_MS, ["x", "y"])).map(({ id }) => id)).toEqual(["nod_a"]);
    const [own, other] = (await b.beat(row("nod_b"), HOUR_MS)).toSorted((x, y) => y.id.localeCompare(x.id));
    expect([own?.id, own?.version, own?.startedAt]).toEqual(["nod_b", "1.0.0", NOON]);
    expect([own?.overHosts, other?.id, other?.overHosts]).toEqual([[], "nod_a", ["x", "y"]]);
    expect(other?.beatAt.getTime() ?? 0).toBeLessThanOrEqual(own?.beatAt.getTime() ?? 0);
    await Bun.sleep(30);
    // Dead after so short a time, and gone for whoever asks with a longer one too.
    expect((await b.beat(row("nod_b"), 20)).map(({ id }) => id)).toEqual(["nod_b"]);
    expect((await b.beat(row("nod_b"), HOUR_MS)).map(({ id }) => id)).toEqual(["nod_b"]);
    expect((await a.beat(row("nod_a"), HOUR_MS)).length).toBe(2);
    await b.leave("nod_b");
    expect((await a.beat(row("nod_a"), HOUR_MS)).map(({ id }) => id)).toEqual(["nod_a"]);
  });

  test("beat at the same time, and delete the dead, without an error", async () => {
    const nodes = Array.from({ length: 4 }, node);
    const dead = Array.from({ length: 50 }, (_, n) => row(`nod_dead${n}`));
    for (const one of dead) await nodes[0]?.beat(one, HOUR_MS);
    await Bun.sleep(20);
    const beats = nodes.map((one, n) => one.beat(row(`nod_live${n}`), 15));
    await Promise.all(beats);
    const last = (await nodes[0]?.beat(row("nod_live0"), HOUR_MS)) ?? [];
    expect(last.filter(({ id }) => id.startsWith("nod_dead"))).toEqual([]);
  });

  test("one of racing nodes has a job, and another one when it ends or its time is over", async () => {
    const nodes = Array.from({ length: 4 }, node);
    const take = (name: string, lastsMs: number) =>
      Promise.all(nodes.map((one, n) => one.takeJob(name, `nod_${n}`, lastsMs)));
    const won = await take("prune", JOB_LEASE_MS);
    expect(won.filter(Boolean)).toHaveLength(1);
    // It may renew it; nobody else takes it, or takes it away.
    expect(await take("prune", JOB_LEASE_MS)).toEqual(won);
    for (const [n, one] of nodes.entries()) if (won[n] !== true) await one.releaseJob("prune", `nod_${n}`);
    expect(await take("prune", JOB_LEASE_MS)).toEqual(won);
    const holder = won.indexOf(true);
    await nodes[holder]?.releaseJob("prune", `nod_${holder}`);
    const next = nodes[(holder + 1) % 4];
    expect(await next?.takeJob("prune", "nod_next", JOB_LEASE_MS)).toBe(true);
    expect(await nodes[holder]?.takeJob("prune", `nod_${holder}`, JOB_LEASE_MS)).toBe(false);
    await next?.takeJob("prune", "nod_next", 1);
    await Bun.sleep(10);
    expect(await nodes[holder]?.takeJob("prune", `nod_${holder}`, JOB_LEASE_MS)).toBe(true);
    // One that seems to last for an hour is from before the clock was set back.
    await nodes[holder]?.takeJob("set back", `nod_${holder}`, HOUR_MS);
    expect(await next?.takeJob("set back", "nod_next", JOB_LEASE_MS)).toBe(true);
    expect(await nodes[holder]?.takeJob("another", `nod_${holder}`, JOB_LEASE_MS)).toBe(true);
  });
});
