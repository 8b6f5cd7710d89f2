import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { canMount } from "../db/processes.ts";
import { TcpProxy } from "../support/cluster/tcp-proxy.ts";
import { fullAtNextStart } from "../support/faults/full-at-start.ts";
import type { FaultReport } from "../support/faults/report.ts";
import { startsCut } from "../support/faults/start-cut.ts";
import { freePort } from "../support/free-port.ts";
import { createDatabase, dropDatabase, hasPostgres } from "../support/postgres.ts";
import { Service } from "../support/service.ts";
import { eventually } from "../support/eventually.ts";

/** Processes of their own that wait for most of the time; beside each other they take longer. */
setDefaultTimeout(120_000);
const SECRET_KEY = "5c".repeat(32);
/** In `npm run test:long` as many as a start has kinds of steps. */
const CUTS = process.env["LONG_TESTS"] === undefined ? 4 : 12;
/** More than all that a node does regularly takes to come round, but for jobs. */
const OUTAGE_MS = 7_000;

function held({ figures, problems }: FaultReport): void {
  console.log(JSON.stringify(figures));
  expect(problems).toEqual([]);
}

/** A database that can be taken away. */
async function databaseBehindProxy() {
  const url = new URL(await createDatabase());
  const port = Number(url.port);
  const proxy = await TcpProxy.start(port);
  const way = new URL(url);
  way.hostname = "127.0.0.1";
  way.port = String(proxy.port);
  return {
    env: { DATABASE_URL: way.href, SECRET_KEY },
    take: () => proxy.moveTo(null),
    giveBack: () => proxy.moveTo(port),
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await dropDatabase(url.href);
    },
  };
}

describe.skipIf(!hasPostgres)("on PostgreSQL", () => {
  test.concurrent("a start that loses its database, at whichever step, goes on when it is back", async () => {
    held(await startsCut(CUTS));
  });

  test.concurrent("a start without its database answers probes, says why it waits, and serves when it is there", async () => {
    await using database = await databaseBehindProxy();
    database.take();
    const port = await freePort();
    await using service = new Service({ env: { ...database.env, PORT: String(port) } });
    expect(await service.logged("service.waiting")).toMatchObject({ reason: "it could not be reached" });
    const ask = (path: string) => fetch(`http://127.0.0.1:${port}${path}`);
    const [health, ready, api] = await Promise.all(["/health", "/ready", "/v1/actions"].map(ask));
    expect([health?.status, ready?.status, api?.status]).toEqual([200, 503, 503]);
    expect(await health?.json()).toMatchObject({ status: "ok" });
    expect(api?.headers.get("retry-after")).toBe("1");
    database.giveBack();
    await service.ready();
    await eventually(async () => (await service.request("/ready")).ok || null, "a node that is ready");
    expect(service.log().filter(({ event }) => event === "service.waiting")).toHaveLength(1);
  });

  test.concurrent("SIGTERM ends a start that waits, in order", async () => {
    await using database = await databaseBehindProxy();
    database.take();
    await using service = new Service({ env: database.env });
    await service.logged("service.waiting");
    const signalledMs = performance.now();
    expect(await service.end("SIGTERM")).toBe(0);
    // Within a step of the start, though the database never comes.
    expect(performance.now() - signalledMs).toBeLessThan(10_000);
    expect(service.log().map(({ event }) => event)).toEqual(["service.waiting", "service.stopping", "service.stopped"]);
  });

  test.concurrent("an outage of a node is told once, with its reason and how long it was", async () => {
    await using database = await databaseBehindProxy();
    await using service = new Service({ env: database.env });
    await service.ready();
    const before = service.log().length;
    database.take();
    await service.logged("store.away");
    await Bun.sleep(OUTAGE_MS);
    database.giveBack();
    await service.logged("store.back");
    await eventually(async () => (await service.request("/ready")).ok || null, "a node that is ready");
    const told = service
      .log()
      .slice(before)
      .filter(({ event }) => !/^(http\.requested|nodes\.changed|service\.first_keys)$/.test(event));
    expect(told).toMatchObject([
      { event: "store.away", level: "error", reason: "it could not be reached" },
      { event: "store.back", level: "info" },
    ]);
    expect(Number(told[1]?.["away_ms"])).toBeGreaterThan(OUTAGE_MS);
  });
});

test.concurrent.skipIf(!canMount()).each(["SIGTERM", "SIGKILL"] as const)(
  "a disk that is full when the service starts again after %s: what is stored is read, and the rest heals by itself",
  async (end) => {
    held(await fullAtNextStart(end));
  },
);
