import { describe, expect, test } from "bun:test";
import { setImmediate as turn } from "node:timers/promises";
import { DRAIN_WRITE_MS, UNWRITTEN_RESULTS_BYTES_MAX } from "../../src/core/limits.ts";
import { type Store, StoreUnavailable } from "../../src/core/store.ts";
import { answering } from "../actions/senders.ts";
import { FakeClock } from "../support/clock.ts";
import { type Engine, openEngine } from "../support/engine.ts";
import { eventually } from "../support/eventually.ts";
import { answered } from "../support/factory.ts";
import { UnwrittenResults } from "../../src/delivery/in-flight.ts";

/** A store that takes claims and refuses results for as long as `isFull` says so, as a disk does whose last kilobyte is left. */
function narrowStore() {
  const state = { isFull: false, refusals: 0 };
  const refuse = () => {
    state.refusals += 1;
    return Promise.reject(new StoreUnavailable("The disk is full."));
  };
  const wrapStore = (store: Store): Store => ({
    ...store,
    actions: { ...store.actions, apply: (write) => (state.isFull ? refuse() : store.actions.apply(write)) },
    outbox: { ...store.outbox, settle: (change, at) => (state.isFull ? refuse() : store.outbox.settle(change, at)) },
  });
  return { state, wrapStore };
}

/** Lets time pass as a running process sees it: what a timer sets in motion goes on between two of them. */
async function pass({ clock }: Pick<Engine, "clock">, ms: number): Promise<void> {
  for (let passedMs = 0; passedMs < ms; passedMs += 1_000) {
    clock.advance(1_000);
    await turn();
    await turn();
  }
}

describe("a known result that can't be written", () => {
  test("delays no retry if the clock is set back meanwhile", async () => {
    const { state, wrapStore } = narrowStore();
    const sender = answering(answered(500), answered(200));
    await using engine = await openEngine({ sender, wrapStore });
    state.isFull = true;
    const { id } = await engine.create({});
    await eventually(() => state.refusals || null, "the first write");
    engine.clock.jump(-3_600_000);
    await pass(engine, 10_000);
    state.isFull = false;
    // Less than the hour. How many steps it takes depends on when the store has written.
    for (let seconds = 0; seconds < 3_000 && (await engine.get(id)).status !== "completed"; seconds += 1)
      await pass(engine, 1_000);
    expect(await engine.get(id)).toMatchObject({ status: "completed", attempts: 2 });
  });

  test("outlives its lease: it is written when it can be, and never sent again or called unknown", async () => {
    const { state, wrapStore } = narrowStore();
    const sender = answering(answered(200, '"done"'));
    await using engine = await openEngine({ sender, wrapStore });
    state.isFull = true;
    const { id } = await engine.create({ onUnknown: "stop" });
    await eventually(() => state.refusals || null, "the first write");
    // The lease of 45 s is over long since, and recovery has looked at it every five seconds.
    await pass(engine, 120_000);
    expect(await engine.renderMetrics()).toMatch(/^outgate_results_kept 1$/m);
    expect(await engine.get(id)).toMatchObject({ status: "active", attempts: 1 });
    state.isFull = false;
    await pass(engine, 2_000);
    const { result } = await engine.saw(id, { status: "completed", attempts: 1 });
    expect([sender.sent.length, result?.responseBody]).toEqual([1, '"done"']);
    // Whoever watches hears of the write a moment before it is let go.
    const metrics = await eventually(async () => {
      const text = await engine.renderMetrics();
      return text.includes("outgate_results_kept 0\n") ? text : null;
    }, "no result that is kept");
    expect(metrics).toMatch(/^outgate_results_kept_bytes 0$/m);
    expect(metrics).toContain("outgate_rescued_total 0\n");
    expect(engine.lines.filter(({ event }) => event === "action.result_kept")).toHaveLength(1);
  });

  test("is waited for by a stop, which ends half a second after its limit in any case", async () => {
    const { state, wrapStore } = narrowStore();
    await using engine = await openEngine({ sender: answering(answered(200)), wrapStore });
    state.isFull = true;
    const [first, second] = [await engine.create({}), await engine.create({ retries: 1 })];
    await eventually(() => (state.refusals >= 2 ? true : null), "the first writes");
    let isOver = false;
    const drained = engine.drain(30_000).then(() => (isOver = true));
    await pass(engine, 10_000);
    expect(isOver).toBe(false);
    await pass(engine, 20_000);
    engine.clock.advance(DRAIN_WRITE_MS);
    await drained;
    expect(engine.clock.timers).toBe(0);
    await eventually(
      () => (engine.lines.filter(({ event }) => event === "action.unrecorded").length === 2 ? true : null),
      "a line for each that is lost",
    );
    for (const { id } of [first, second]) expect(await engine.get(id)).toMatchObject({ attempts: 1 });
  });

  test("that a stop can still write is there when it has ended", async () => {
    const { state, wrapStore } = narrowStore();
    await using engine = await openEngine({ sender: answering(answered(200)), wrapStore });
    state.isFull = true;
    const { id } = await engine.create({});
    await eventually(() => state.refusals || null, "the first write");
    const drained = engine.drain(30_000);
    await pass(engine, 5_000);
    state.isFull = false;
    await pass(engine, 2_000);
    await drained;
    expect(await engine.get(id)).toMatchObject({ status: "completed", attempts: 1 });
  });

  test("is no reason to claim nothing, until 64 MB of them are kept", async () => {
    const { state, wrapStore } = narrowStore();
    const quarter = answered(200, JSON.stringify("x".repeat(UNWRITTEN_RESULTS_BYTES_MAX / 4)));
    const sender = answering(quarter, quarter, quarter, quarter, answered(200));
    await using engine = await openEngine({ sender, wrapStore });
    state.isFull = true;
    const ids: string[] = [];
    for (let count = 1; count <= 4; count += 1) {
      ids.push((await engine.create({})).id);
      await eventually(() => (state.refusals >= count ? true : null), "the result");
    }
    ids.push((await engine.create({})).id);
    await pass(engine, 60_000);
    expect(sender.sent).toHaveLength(4);
    expect(await engine.get(ids[4] ?? "")).toMatchObject({
      status: "pending",
      attempts: 0,
    });
    state.isFull = false;
    await eventually(async () => {
      // Fewer of them may wait to be written than may be kept: the others are offered again.
      await pass(engine, 1_000);
      return sender.sent.length === 5 && engine.unwritten.count === 0 ? true : null;
    }, "the fifth call and every result");
    for (const id of ids) await engine.saw(id, { status: "completed", attempts: 1 });
  });
});

test.each(["action", "callback"] as const)(
  "a result whose write was done although the store said that it was not of %s counts once and is no conflict",
  async (of) => {
    let lost = 0;
    const dies = async (done: Promise<boolean>): Promise<boolean> => {
      const written = await done;
      if (lost > 0) return written;
      lost += 1;
      throw new StoreUnavailable("The connection was lost.");
    };
    const wrapStore = (store: Store): Store => ({
      ...store,
      actions: { ...store.actions, apply: (write) => dies(store.actions.apply(write)) },
      outbox: { ...store.outbox, settle: (change, at) => dies(store.outbox.settle(change, at)) },
    });
    const sender = answering(answered(200));
    await using engine = await openEngine({ sender, wrapStore });
    const isAction = of === "action";
    const { id } = await engine.create(isAction ? {} : { approve: true, callback: "http://127.0.0.1:9/hook" });
    await eventually(() => (lost === 1 ? true : null), "the write");
    const heard: string[] = [];
    engine.bus.subscribe(({ status }) => void heard.push(status));
    await pass(engine, 1_000);
    const metrics = await eventually(async () => {
      const text = await engine.renderMetrics();
      return text.includes("outgate_results_kept 0\n") ? text : null;
    }, "the write");
    expect(metrics).toContain("outgate_fenced_total 0\n");
    if (isAction) {
      await engine.saw(id, { status: "completed", attempts: 1 });
      expect(metrics).toContain('outgate_attempts_total{outcome="answered",next="completed"} 1\n');
      // Whoever waits for it hears of it.
      expect(heard).toContain("completed");
    } else {
      expect(await engine.told(id, "callback", 1)).toMatchObject([{ delivered: true }]);
      expect(metrics).toContain('outgate_notifications_total{kind="callback",next="delivered"} 1\n');
    }
    expect(sender.sent).toHaveLength(1);
  },
);

test("results that could not be written are offered again after 250 ms, and then at most every two seconds", async () => {
  const clock = new FakeClock();
  const kept = new UnwrittenResults(clock);
  const triedMs: number[] = [];
  const written = kept.write({
    bytes: 10,
    write: () => {
      triedMs.push(clock.monotonicMs());
      return Promise.reject(new StoreUnavailable("away"));
    },
    onKept: () => {},
  });
  for (let at = 0; at < 40; at += 1) {
    await turn();
    clock.advance(250);
  }
  expect(triedMs).toEqual([0, 250, 750, 1_750, 3_750, 5_750, 7_750, 9_750]);
  kept.close();
  expect(await written).toBe("never");
  expect([kept.count, kept.bytes]).toEqual([0, 0]);
});
