import { expect, test } from "bun:test";
import { hostname } from "node:os";
import { READY_MS_MAX, STORE_CALL_MS_MAX } from "../../src/core/limits.ts";
import { Service } from "../support/service.ts";
import { findSqld, startSqld } from "../support/sqld.ts";

const program = await findSqld();

/** Beside what a bound names: a busy machine. */
const MARGIN_MS = 1_000;

/** A target that counts what it gets of each action. */
function counting() {
  const counts = new Map<string, number>();
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const id = request.headers.get("webhook-id") ?? "";
      counts.set(id, (counts.get(id) ?? 0) + 1);
      return new Response("{}");
    },
  });
  return { counts, url: `http://127.0.0.1:${server.port}/`, [Symbol.dispose]: () => void server.stop(true) };
}

test.skipIf(program === null)(
  "a database server that hangs is one that is away, and a second service on it is refused",
  async () => {
    await using sqld = await startSqld(program ?? "");
    using target = counting();
    const env = {
      DATABASE_URL: sqld.url,
      SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
      RATE_LIMIT_PER_SECOND: "0",
    };
    await using service = new Service({ env });
    await service.ready();
    const second = new Service({ env });
    const create = async (key: string) => {
      const startedMs = performance.now();
      const headers = { "Idempotency-Key": key };
      const body = JSON.stringify({ url: target.url });
      const answer = await service.request("/v1/actions", { method: "POST", headers, body });
      const { id } = (await answer.json()) as { readonly id?: string };
      return {
        status: answer.status,
        id,
        ms: performance.now() - startedMs,
        retryAfter: answer.headers.get("retry-after"),
      };
    };
    const ready = async () => {
      const startedMs = performance.now();
      return { status: (await service.request("/ready")).status, ms: performance.now() - startedMs };
    };
    const first = await create("first");
    expect(first.status).toBe(201);
    expect((await service.final(first.id))["status"]).toBe("completed");
    expect(await second.process.exited).toBe(1);
    expect(await second.complaint()).toBe(
      `Outgate can't start. Another Outgate (process ${service.process.pid} on ${hostname()}) uses the database of ` +
        "DATABASE_URL, and a libSQL server serves one at a time. Stop the other one, or give this one a database of its " +
        "own. Several at a time need PostgreSQL (postgres://).\n",
    );
    await second[Symbol.asyncDispose]();

    sqld.freeze();
    const keys = Array.from({ length: 20 }, (_, n) => `k${n}`);
    const [creates, readiness] = await Promise.all([Promise.all(keys.map(create)), ready()]);
    expect(new Set(creates.map(({ status, retryAfter }) => `${status} ${retryAfter}`))).toEqual(new Set(["503 1"]));
    expect(Math.max(...creates.map(({ ms }) => ms))).toBeLessThan(STORE_CALL_MS_MAX + MARGIN_MS);
    expect(readiness.status).toBe(503);
    expect(readiness.ms).toBeLessThan(READY_MS_MAX + MARGIN_MS / 2);
    // By now it is known to be away, and nobody waits to hear so.
    expect((await create("late")).ms).toBeLessThan(MARGIN_MS);
    expect((await service.request("/health")).status).toBe(200);

    sqld.thaw();
    while ((await create("back")).status !== 201) await Bun.sleep(20);
    const again = await Promise.all(keys.map(create));
    for (const { status, id } of again) {
      expect([200, 201]).toContain(status);
      expect((await service.final(id))["status"]).toBe("completed");
    }
    while ((await ready()).status !== 200) await Bun.sleep(100);
    expect(target.counts.size).toBe(keys.length + 2);
    expect([...target.counts.values()].filter((count) => count !== 1)).toEqual([]);
  },
);
