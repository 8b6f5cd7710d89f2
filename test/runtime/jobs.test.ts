import { describe, expect, test } from "bun:test";
import { type Job, startJobs } from "../../src/runtime/jobs.ts";
import { Metrics } from "../../src/observability/metrics.ts";
import { FakeClock } from "../support/clock.ts";

const NEVER = "0 0 1 1 *";

const EVERY_SECOND = "* * * * * *";

/** Jobs on a clock of the test, and what was logged of them. */
function hang(...jobs: readonly Partial<Job>[]) {
  const clock = new FakeClock();
  const failed: unknown[] = [];
  const named = jobs.map((job, n): Job => ({ name: `job ${n}`, pattern: NEVER, run: async () => {}, ...job }));
  const error = (_event: string, fields?: object) => void failed.push(fields);
  const metrics = new Metrics();
  return {
    clock,
    failed,
    render: () => metrics.render(),
    takeDown: startJobs(named, { clock, log: { error }, metrics }),
  };
}

describe("a job", () => {
  test("rings once when it is hung up, and is handed the time", async () => {
    const times: Date[] = [];
    const { clock, takeDown } = hang({ run: async (now) => void times.push(now) });
    expect(times).toEqual([clock.now()]);
    await takeDown();
  });

  test("rings by its pattern, and not while it still rings", async () => {
    const twice = Promise.withResolvers<void>();
    const first = Promise.withResolvers<void>();
    let rings = 0;
    let slow = 0;
    const { takeDown } = hang(
      { pattern: EVERY_SECOND, run: async () => void ((rings += 1) === 3 && twice.resolve()) },
      {
        pattern: EVERY_SECOND,
        run: () => {
          slow += 1;
          return first.promise;
        },
      },
    );
    await twice.promise;
    expect(slow).toBe(1);
    first.resolve();
    await takeDown();
  });

  test("that fails is logged by its name and counted, the others ring, and it rings again", async () => {
    const again = Promise.withResolvers<void>();
    let rings = 0;
    let others = 0;
    const { failed, render, takeDown } = hang(
      {
        pattern: EVERY_SECOND,
        run: () => {
          if ((rings += 1) === 2) again.resolve();
          return Promise.reject(new Error("no"));
        },
      },
      { run: async () => void (others += 1) },
    );
    await again.promise;
    await takeDown();
    expect(failed[0]).toEqual({ job: "job 0", error: "Error" });
    expect(await render()).toContain(`outgate_task_failures_total{task="housekeeping"} ${failed.length}\n`);
    expect(others).toBe(1);
  });

  test("that is taken down is told to stop, and its end is waited for; what it fails with then is no news", async () => {
    const events: string[] = [];
    const run = async (_now: Date, stop: AbortSignal) => {
      await new Promise<void>((resolve) => stop.addEventListener("abort", () => resolve()));
      events.push("stopped");
      throw new Error("The store is closed.");
    };
    const { failed, takeDown } = hang({ run });
    await takeDown();
    events.push("down");
    expect({ events, failed }).toEqual({ events: ["stopped", "down"], failed: [] });
  });
});
