import { expect, test } from "bun:test";
import { type Clock, systemClock } from "../../src/core/clock.ts";
import { cached, LoopLag } from "../../src/observability/runtime.ts";

/** A monotonic clock whose timer runs as late as it is told. */
function openClock() {
  let nowMs = 1_000;
  const jobs = new Set<{ dueMs: number; run: () => void }>();
  const clock: Clock = {
    now: () => new Date(nowMs),
    monotonicMs: () => nowMs,
    after(delayMs, run) {
      const job = { dueMs: nowMs + delayMs, run };
      jobs.add(job);
      return () => void jobs.delete(job);
    },
  };
  return {
    clock,
    jobs,
    pass: (ms: number) => {
      nowMs += ms;
    },
    /** Lets time pass until the timer is due, and so many milliseconds longer, and runs it. */
    ringLate: (lateMs: number) => {
      const [job] = jobs;
      if (job === undefined) throw new Error("No timer is set.");
      jobs.delete(job);
      nowMs = job.dueMs + lateMs;
      job.run();
    },
  };
}

test("the longest delay since the last look is told, once", () => {
  const { clock, ringLate } = openClock();
  const lag = new LoopLag(clock);
  lag.start();
  for (const late of [0, 40, 250, 10]) ringLate(late);
  expect(lag.takeMaxMs()).toBe(250);
  ringLate(5);
  expect(lag.takeMaxMs()).toBe(5);
  expect(lag.takeMaxMs()).toBe(0);
});

test("a delay that still lasts is told too", () => {
  const { clock, pass } = openClock();
  const lag = new LoopLag(clock);
  lag.start();
  pass(700);
  expect(lag.takeMaxMs()).toBe(600);
});

test("after stop nothing is sampled, and it may start again", () => {
  const { clock, jobs, ringLate } = openClock();
  const lag = new LoopLag(clock);
  expect(lag.takeMaxMs()).toBe(0);
  lag.start();
  lag.start();
  expect(jobs.size).toBe(1);
  lag.stop();
  expect(jobs.size).toBe(0);
  expect(lag.takeMaxMs()).toBe(0);
  lag.start();
  ringLate(30);
  expect(lag.takeMaxMs()).toBe(30);
});

test("an event loop that is really held shows up", async () => {
  const lag = new LoopLag(systemClock);
  lag.start();
  const until = performance.now() + 300;
  while (performance.now() < until);
  await new Promise(setImmediate);
  const maxMs = lag.takeMaxMs();
  lag.stop();
  expect(maxMs).toBeGreaterThanOrEqual(195);
});

test("a cached value is read once for all who ask while it reads, and for so long behind it, also where it fails", async () => {
  let nowMs = 0;
  let reads = 0;
  let gate = Promise.withResolvers<number>();
  const read = cached(
    10,
    () => nowMs,
    () => {
      reads += 1;
      return gate.promise;
    },
  );
  const both = [read(), read()];
  nowMs = 100;
  both.push(read());
  gate.resolve(7);
  expect(await Promise.all(both)).toEqual([7, 7, 7]);
  nowMs = 109;
  expect(await read()).toBe(7);
  expect(reads).toBe(1);
  gate = Promise.withResolvers();
  nowMs = 110;
  const failed = read();
  gate.reject(new Error("away"));
  expect(await failed.catch(String)).toBe("Error: away");
  expect(await read().catch(String)).toBe("Error: away");
  expect(reads).toBe(2);
});
