import { describe, expect, test } from "bun:test";
import { JOB_LEASE_MS, JOB_RENEW_MS, JOB_REST_MS, START_LOOK_MS, START_WAIT_MS_MAX } from "../../src/core/limits.ts";
import { createJobLeases, inTurn } from "../../src/runtime/jobs.ts";
import { FakeClock } from "../support/clock.ts";
import { MemoryCluster } from "../support/memory-cluster.ts";

/** Two nodes on one database. */
function two() {
  const clock = new FakeClock();
  const cluster = new MemoryCluster(() => clock.now().getTime());
  // The other one has timers of its own, which stand still where a test does not move them.
  const frozen = new FakeClock();
  return {
    clock,
    cluster,
    frozen,
    a: createJobLeases({ cluster, nodeId: "a", clock: frozen }),
    b: createJobLeases({ cluster, nodeId: "b", clock }),
  };
}

const turn = () => Bun.sleep(1);

function held() {
  const { promise, resolve } = Promise.withResolvers<void>();
  const signals: AbortSignal[] = [];
  const work = (stop: AbortSignal) => {
    signals.push(stop);
    return promise;
  };
  return { work, end: resolve, signals };
}

describe("a job", () => {
  test("runs on one node at a time, and on the other one when it has ended", async () => {
    const { a, b } = two();
    const { work, end } = held();
    const first = a.run("prune", work);
    await turn();
    expect(await b.run("prune", work)).toBe(false);
    expect(await b.run("another", async () => {})).toBe(true);
    end();
    expect(await first).toBe(true);
    expect(await b.run("prune", work)).toBe(true);
  });

  test("that has succeeded rests for a while", async () => {
    const { a, b, clock } = two();
    const options = { restMs: JOB_REST_MS };
    expect(await a.run("prune", async () => {}, options)).toBe(true);
    clock.advance(JOB_REST_MS - 1);
    expect(await b.run("prune", async () => {})).toBe(false);
    clock.advance(1);
    expect(await b.run("prune", async () => {})).toBe(true);
  });

  test("that failed may be run by another node at once, and its error is the caller's", async () => {
    const { a, b } = two();
    const failed = a.run("prune", () => Promise.reject(new Error("broken")), { restMs: JOB_REST_MS });
    expect(await failed.catch(String)).toBe("Error: broken");
    expect(await b.run("prune", async () => {})).toBe(true);
  });

  test("keeps its lease while it runs", async () => {
    const { a, b, clock } = two();
    const { work, end, signals } = held();
    const running = b.run("prune", work);
    for (let ms = 0; ms < 4 * JOB_LEASE_MS; ms += JOB_RENEW_MS) {
      await turn();
      clock.advance(JOB_RENEW_MS);
    }
    await turn();
    expect(await a.run("prune", async () => {})).toBe(false);
    expect(signals[0]?.aborted).toBe(false);
    end();
    await running;
    expect(clock.timers).toBe(0);
  });

  test("of a node that stands still is taken over after its lease, and is told to stop when it goes on", async () => {
    const { a, b, clock, frozen } = two();
    const [first, second] = [held(), held()];
    const stood = a.run("prune", first.work, { restMs: JOB_REST_MS });
    await turn();
    clock.advance(JOB_LEASE_MS);
    const taken = b.run("prune", second.work);
    await turn();
    expect(second.signals).toHaveLength(1);
    frozen.stall(JOB_LEASE_MS);
    await turn();
    expect(first.signals[0]?.aborted).toBe(true);
    first.end();
    await stood;
    // It took nothing away from the other one.
    expect(await a.run("prune", async () => {})).toBe(false);
    second.end();
    expect(await taken).toBe(true);
  });

  test("goes on while the database is away for less than its lease", async () => {
    const { b, clock, cluster } = two();
    const { work, end, signals } = held();
    const running = b.run("prune", work);
    await turn();
    cluster.isAway = true;
    clock.advance(JOB_RENEW_MS);
    await turn();
    expect(signals[0]?.aborted).toBe(false);
    for (let ms = JOB_RENEW_MS; ms < JOB_LEASE_MS; ms += JOB_RENEW_MS) {
      clock.advance(JOB_RENEW_MS);
      await turn();
    }
    expect(signals[0]?.aborted).toBe(true);
    end();
    expect(await running).toBe(true);
  });

  test("ends when the service stops", async () => {
    const { b } = two();
    const stop = new AbortController();
    const { work, end, signals } = held();
    const running = b.run("prune", work, { stop: stop.signal });
    await turn();
    stop.abort();
    expect(signals[0]?.aborted).toBe(true);
    end();
    expect(await running).toBe(true);
  });
});

describe("a step of a start", () => {
  test("waits until the other node has done it", async () => {
    const { cluster, clock } = two();
    const order: string[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const first = inTurn("start", { cluster, nodeId: "a", clock }, async () => {
      await promise;
      order.push("a");
    });
    await turn();
    const second = inTurn("start", { cluster, nodeId: "b", clock }, async () => order.push("b"));
    await turn();
    clock.advance(START_LOOK_MS);
    await turn();
    expect(order).toEqual([]);
    resolve();
    await first;
    clock.advance(START_LOOK_MS);
    await second;
    expect(order).toEqual(["a", "b"]);
  });

  test("is given up after a time", async () => {
    const { clock } = two();
    const cluster = { takeJob: async () => false, releaseJob: async () => {} };
    const late = inTurn("start", { cluster, nodeId: "b", clock }, turn);
    const failed = late.then(
      () => "done",
      (error: unknown) => (error instanceof Error ? error.name : ""),
    );
    await turn();
    clock.stall(START_WAIT_MS_MAX);
    expect(await failed).toBe("StoreUnavailable");
  });
});
