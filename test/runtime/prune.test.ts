import { expect, test } from "bun:test";
import { createPrune, inSteps } from "../../src/app/housekeeping.ts";
import type { UpkeepStore } from "../../src/core/store.ts";
import { later, NOON } from "../support/factory.ts";

const DAY_MS = 86_400_000;

test("retention goes on to the last step with what finished so many days ago, and begins none when the service stops", async () => {
  const asked: Parameters<UpkeepStore["prune"]>[] = [];
  const upkeep = {
    prune: async (...step: (typeof asked)[number]) => ({
      deleted: asked.push(step),
      next: step[1] === "" ? "x" : null,
    }),
  };
  const logged: unknown[] = [];
  const log = { info: (event: string, fields?: object) => void logged.push([event, fields]) };
  const clock = { after: (_delayMs: number, run: () => void) => (setImmediate(run), () => {}) };
  const prune = createPrune(upkeep, null, { log, clock }, 30);
  await prune(NOON, AbortSignal.abort());
  expect([asked, logged]).toEqual([[], []]);
  await prune(NOON, new AbortController().signal);
  const times = { now: NOON, finishedUntil: later(-30 * DAY_MS) };
  expect(asked).toEqual([
    [times, ""],
    [times, "x"],
  ]);
  expect(logged).toEqual([["actions.pruned", { count: 3 }]]);
});

test("a job in steps ends with its work, or after the step in which the service stops", async () => {
  const stop = new AbortController();
  let steps = 0;
  const { run } = inSteps("job", "* * * * *", async () => (steps += 1) < 3);
  await run(NOON, stop.signal);
  const stopping = inSteps("job", "* * * * *", async () => {
    if ((steps += 1) === 5) stop.abort();
    return steps < 9;
  });
  await stopping.run(NOON, stop.signal);
  expect(steps).toBe(5);
});
