import { describe, expect, test } from "bun:test";
import { setImmediate as turn } from "node:timers/promises";
import { SHARED_READ_EVERY_MS, STORE_RETRY_MS } from "../../src/core/limits.ts";
import { Metrics } from "../../src/observability/metrics.ts";
import type { LogFields } from "../../src/observability/log.ts";
import { startJobs, keepFresh } from "../../src/runtime/jobs.ts";
import { createWaitingLog, Outage, repeatWhileAway } from "../../src/runtime/store-away.ts";
import { StoreBusy, StoreUnavailable } from "../../src/core/store.ts";
import { FakeClock } from "../support/clock.ts";

const AWAY = new StoreUnavailable("Away.", { reason: "too many connections" });

function logging() {
  const lines: [event: string, fields: LogFields | undefined][] = [];
  const log = (event: string, fields?: LogFields) => void lines.push([event, fields]);
  return { lines, log: { debug: log, info: log, warn: log, error: log } };
}

/** Lets everything that only waits for promises go on. */
async function pass(clock: FakeClock, ms: number): Promise<void> {
  await turn();
  clock.advance(ms);
  await turn();
}

describe("a step of the start", () => {
  test("begins anew every second while the store is away, and says why once for each reason", async () => {
    const clock = new FakeClock();
    const { lines, log } = logging();
    const tell = createWaitingLog(log, "/data/outgate.db");
    const reasons = ["too many connections", "too many connections", "it could not be reached", null];
    const step = async () => {
      const reason = reasons.shift();
      if (typeof reason === "string") throw new StoreUnavailable("Away.", { reason });
      return "serves";
    };
    const stopping = new AbortController().signal;
    const started = repeatWhileAway(step, { clock, stopping }, ({ reason }) => tell(reason));
    await pass(clock, STORE_RETRY_MS - 1);
    expect(reasons).toHaveLength(3);
    for (const ms of [1, STORE_RETRY_MS, STORE_RETRY_MS]) await pass(clock, ms);
    expect(await started).toBe("serves");
    expect(lines).toEqual([
      ["service.waiting", { reason: "too many connections", database: "/data/outgate.db" }],
      ["service.waiting", { reason: "it could not be reached", database: "/data/outgate.db" }],
    ]);
    expect(clock.timers).toBe(0);
  });

  test("that can't succeed by waiting is not tried again", async () => {
    let tries = 0;
    const step = () => {
      tries += 1;
      return Promise.reject(new Error("The master key is another one."));
    };
    const stopping = new AbortController().signal;
    const started = repeatWhileAway(step, { clock: new FakeClock(), stopping }, () => {});
    expect(await started.catch(String)).toBe("Error: The master key is another one.");
    expect(tries).toBe(1);
  });

  test("that waits is over as soon as the service is stopped", async () => {
    const clock = new FakeClock();
    const stopping = new AbortController();
    const deps = { clock, stopping: stopping.signal };
    const started = repeatWhileAway(
      () => Promise.reject(AWAY),
      deps,
      () => {},
    );
    await turn();
    stopping.abort();
    expect(await started).toBeNull();
    expect(clock.timers).toBe(0);
  });
});

describe("an outage", () => {
  /** An outage of a store that the test takes away and brings back. */
  function watched() {
    const clock = new FakeClock();
    const { lines, log } = logging();
    const outage = new Outage(clock, log, "/data/outgate.db");
    const state = { probe: (): Promise<void> => Promise.reject(AWAY) };
    outage.watch(() => state.probe());
    return { clock, lines, outage, state };
  }

  test("is told once when it begins and once when the store can be written again, with how long it was", async () => {
    const { clock, lines, outage, state } = watched();
    outage.begin(AWAY);
    for (let second = 0; second < 5; second += 1) {
      outage.begin(new StoreUnavailable("Away.", { reason: "it could not be reached" }));
      await pass(clock, 1_000);
    }
    expect(lines).toEqual([["store.away", { reason: "too many connections", database: "/data/outgate.db" }]]);
    state.probe = () => Promise.resolve();
    await pass(clock, 1_000);
    expect(lines.slice(1)).toEqual([["store.back", { away_ms: 6_000 }]]);
    expect(clock.timers).toBe(0);
    outage.begin(AWAY);
    expect(lines).toHaveLength(3);
    outage.stop();
  });

  test("is told once for each reason, since the first is often only that connections were lost", async () => {
    const { clock, lines, outage, state } = watched();
    outage.begin(new StoreUnavailable("Away.", { reason: "it could not be reached" }));
    await pass(clock, 1_000);
    state.probe = () => Promise.reject(new StoreUnavailable("Away.", { reason: "the database takes no writes" }));
    for (const ms of [1_000, 1_000]) await pass(clock, ms);
    state.probe = () => Promise.resolve();
    await pass(clock, 1_000);
    const reasons = ["it could not be reached", "too many connections", "the database takes no writes", undefined];
    expect(lines.map(([, fields]) => fields?.["reason"])).toEqual(reasons);
  });

  test("lasts while calls fail, as those do that need room on a full disk, though a small write succeeds", async () => {
    const { clock, lines, outage, state } = watched();
    state.probe = () => Promise.resolve();
    for (let second = 0; second < 3; second += 1) {
      outage.begin(AWAY);
      await pass(clock, second === 0 ? 500 : 1_000);
    }
    expect(lines.map(([event]) => event)).toEqual(["store.away"]);
    await pass(clock, 1_000);
    expect(lines.slice(1)).toEqual([["store.back", { away_ms: 3_500 }]]);
  });

  test("is over when the store only has too much to write", async () => {
    const { clock, lines, outage, state } = watched();
    outage.begin(AWAY);
    state.probe = () => Promise.reject(new StoreBusy("Too much waits."));
    await pass(clock, 1_000);
    expect(lines.map(([event]) => event)).toEqual(["store.away", "store.back"]);
  });

  test("is none while the service starts or after it has stopped", () => {
    const { clock, lines, outage } = watched();
    outage.stop();
    outage.begin(AWAY);
    const { lines: early, log } = logging();
    new Outage(clock, log, "/data/outgate.db").begin(AWAY);
    expect([lines, early, clock.timers]).toEqual([[], [], 0]);
  });

  test("is not told by what runs in the background, and an unexpected error is", async () => {
    const clock = new FakeClock();
    const { lines, log } = logging();
    const metrics = new Metrics();
    const reads = { keys: () => Promise.reject(AWAY), hosts: () => Promise.reject(new TypeError("a bug")) };
    const stopReads = keepFresh(SHARED_READ_EVERY_MS, reads, { clock, log, metrics });
    const pattern = "0 0 1 1 *";
    const jobs = [
      { name: "job 0", pattern, run: () => Promise.reject(AWAY) },
      { name: "job 1", pattern, run: () => Promise.reject(new TypeError("a bug")) },
    ];
    const stopJobs = startJobs(jobs, { clock, log, metrics });
    await pass(clock, SHARED_READ_EVERY_MS);
    expect(lines).toEqual([
      ["job.failed", { job: "job 1", error: "TypeError" }],
      ["refresh.failed", { of: "hosts", error: "TypeError" }],
    ]);
    await Promise.all([stopReads(), stopJobs()]);
  });
});
