import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import type { Outcome } from "../../src/core/outcome.ts";
import type { OutboundRequest } from "../../src/outbound/sender.ts";
import { answering, holding } from "../actions/senders.ts";
import { CLOCK_TOLERANCE_MS } from "../../src/core/limits.ts";
import { FakeClock } from "../support/clock.ts";
import { openEngine } from "../support/engine.ts";
import { answered } from "../support/factory.ts";
import { Target } from "../support/target.ts";
import { until } from "../support/until.ts";
import { SEED } from "../support/long.ts";
import { newFolders } from "../support/shared.ts";

const HOUR_MS = 3_600_000;

const DAY_MS = 24 * HOUR_MS;

const FAILED: Outcome = answered(500);

const newFolder = newFolders();

/**
 * Whether it comes so while what the last turn of the clock has set in motion comes to rest: reads and writes of a real
 * file. On a busy machine it may come later; what has to come is waited for by `until`.
 */
async function rest(isSo: () => boolean | Promise<boolean>): Promise<boolean> {
  for (let turns = 0; turns < 200; turns += 1) {
    if (await isSo()) return true;
    await Bun.sleep(1);
  }
  return false;
}

describe("a wall clock that is set back by an hour", () => {
  test("while it is down leaves a retry no further away than the step that it was given", async () => {
    const folder = newFolder();
    const before = await openEngine({ folder, sender: answering(FAILED) });
    const { id } = await before.create({});
    await before.saw(id, { status: "pending", attempts: 1 });
    await before.abandon();

    const clock = new FakeClock(new Date(before.clock.now().getTime() - HOUR_MS));
    const sender = answering(answered(200));
    await using engine = await openEngine({ folder, sender, clock });
    const due = async () => (await engine.get(id)).dueAt?.getTime();
    const expected = engine.clock.now().getTime() + 2_000;
    await until(async () => (await due()) === expected);
    engine.clock.advance(1_999);
    expect(sender.sent).toHaveLength(0);
    engine.clock.advance(1);
    await engine.saw(id, { status: "completed", attempts: 2 });
  });

  test("shortens no Retry-After, and lengthens none", async () => {
    const asked = { ...answered(503), retryAfter: "7200" };
    const sender = answering(asked, answered(200));
    await using engine = await openEngine({ sender });
    const { id } = await engine.create({});
    await engine.saw(id, { status: "pending", attempts: 1 });
    engine.clock.advance(10_000);
    engine.clock.jump(-HOUR_MS);
    const dueInMs = async () => {
      const { dueAt } = await engine.get(id);
      return (dueAt?.getTime() ?? 0) - engine.clock.now().getTime();
    };
    // Any tick of the scheduler finds it out; here another action causes one.
    const other = await engine.create({ retries: 1 });
    await engine.saw(other.id, { status: "completed" });
    await until(async () => (await dueInMs()) === 7_190_000);
    engine.clock.advance(7_189_999);
    await Bun.sleep(5);
    expect(sender.sent).toHaveLength(2);
    engine.clock.advance(1);
    await until(() => sender.sent.length === 3);
    expect(engine.lines).toContainEqual(
      expect.objectContaining({ event: "clock.set_back", fields: { of: "actions", by_ms: HOUR_MS } }),
    );
  });

  test("delays no callback", async () => {
    let isUp = false;
    await using receiver = new Target(() => new Response(null, { status: isUp ? 200 : 500 }));
    await using target = new Target(200);
    await using engine = await openEngine();
    const { id } = await engine.create({ url: target.url, callback: receiver.url });
    await engine.told(id, "callback", 1);
    isUp = true;
    engine.clock.jump(-HOUR_MS);
    engine.clock.advance(5_000);
    const told = await engine.told(id, "callback", 2);
    expect(told.at(-1)).toMatchObject({ delivered: true, attempts: 2 });
  });
});

test("a wall clock that is set forward ends nothing early that is in flight, and says nothing of it", async () => {
  const { sender, began, end } = holding();
  await using engine = await openEngine({ sender });
  const { id } = await engine.create({});
  await began;
  engine.clock.jump(DAY_MS);
  // Its lease is over by the wall; whoever holds it has not let go.
  engine.clock.advance(5_000);
  await Bun.sleep(5);
  expect(await engine.get(id)).toMatchObject({ status: "active", attempts: 1 });
  end(answered(200));
  const done = await engine.saw(id, { status: "completed", attempts: 1 });
  expect(done.result?.durationMs).toBe(5_000);
  expect(sender.sent).toHaveLength(1);
});

describe("a process that stands still for longer than every lease", () => {
  const LONG_MS = 10 * 60_000;

  test("ends nothing that is in flight: its answer counts when it comes", async () => {
    const { sender, began, end } = holding();
    await using engine = await openEngine({ sender });
    const { id } = await engine.create({});
    await began;
    engine.clock.stall(LONG_MS);
    await Bun.sleep(5);
    expect(await engine.get(id)).toMatchObject({ status: "active", attempts: 1 });
    end(answered(200));
    expect((await engine.saw(id, { status: "completed", attempts: 1 })).result?.durationMs).toBe(LONG_MS);
  });

  test("sends what has come due meanwhile within the slots, and each once", async () => {
    const flying = { now: 0, most: 0 };
    const times = new Map<string, number>();
    const sender = {
      send: async ({ headers }: OutboundRequest): Promise<Outcome> => {
        const id = headers.find(([name]) => name === "webhook-id")?.[1] ?? "";
        times.set(id, (times.get(id) ?? 0) + 1);
        flying.now += 1;
        flying.most = Math.max(flying.most, flying.now);
        await new Promise((resolve) => setImmediate(resolve));
        flying.now -= 1;
        return times.get(id) === 1 ? FAILED : answered(200);
      },
    };
    await using engine = await openEngine({ sender, env: { DISPATCH_CONCURRENCY: "8", DISPATCH_PER_HOST: "3" } });
    const created = await Promise.all(Array.from({ length: 60 }, () => engine.create({})));
    await Promise.all(created.map(({ id }) => engine.saw(id, { status: "pending", attempts: 1 })));
    flying.most = 0;
    engine.clock.stall(LONG_MS);
    await Promise.all(created.map(({ id }) => engine.saw(id, { status: "completed", attempts: 2 })));
    expect(flying.most).toBe(3);
    expect([...new Set(times.values())]).toEqual([2]);
  });
});

/** What a step after the n-th failure may take at most, by the monotonic clock. */
const longestMs = (failures: number) => Math.min(HOUR_MS, 2_000 * 2 ** (failures - 1));

const RETRIES = 6;

test("whatever the wall clock does, no attempt is lost, doubled or later than its longest step", async () => {
  const jump = fc.constantFrom(0, -3_000, -10_000, -HOUR_MS, -DAY_MS, 3_000, HOUR_MS, DAY_MS);
  const property = fc.asyncProperty(fc.array(jump, { minLength: RETRIES, maxLength: RETRIES }), async (jumps) => {
    const sentMs: number[] = [];
    const clock = new FakeClock();
    const sender = {
      send: async () => {
        sentMs.push(clock.monotonicMs());
        return FAILED;
      },
    };
    await using engine = await openEngine({ sender, clock });
    const { id } = await engine.create({ retries: RETRIES });
    for (let failures = 1; failures < RETRIES; failures += 1) {
      await engine.saw(id, { status: "pending", attempts: failures });
      // In the middle of the step the clock is set.
      const stepMs = longestMs(failures);
      const jumpMs = jumps[failures] ?? 0;
      clock.advance(stepMs / 2);
      clock.jump(jumpMs);
      const isSent = () => sentMs.length === failures + 1;
      clock.advance(stepMs / 2);
      // Set back to before the failure, or not at all: the step ends when it would have ended.
      if (jumpMs < 0 && jumpMs >= -stepMs - CLOCK_TOLERANCE_MS && !(await rest(isSent))) {
        // Set back to within the step, or hardly at all: it is due where its time says, and that is no step away.
        const { status, dueAt } = await engine.get(id);
        const remainingMs = status === "pending" && dueAt !== null ? dueAt.getTime() - clock.now().getTime() : 0;
        expect(remainingMs).toBeLessThanOrEqual(stepMs + CLOCK_TOLERANCE_MS);
        // Due already, it is on its way.
        clock.advance(Math.max(0, remainingMs));
      }
      await until(isSent);
    }
    const failed = await engine.saw(id, { status: "failed" });
    expect(failed.attempts).toBe(RETRIES);
    expect(failed.result?.durationMs).toBeGreaterThanOrEqual(0);
    clock.advance(DAY_MS);
    await Bun.sleep(2);
    expect(sentMs).toHaveLength(RETRIES);
  });
  await fc.assert(property, { seed: SEED, numRuns: Number(process.env["RUNS"] ?? 8) });
}, 60_000);
