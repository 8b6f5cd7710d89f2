import { expect, test } from "bun:test";
import { createYield } from "../../src/runtime/fair-share.ts";
import { FakeClock } from "../support/clock.ts";

test("a loop lets others have their turn only where it has held the event loop for some milliseconds", async () => {
  const clock = new FakeClock();
  const yieldTurn = createYield(clock);
  let turns = 0;
  const timer = setImmediate(function next() {
    turns += 1;
    setImmediate(next).unref();
  });
  timer.unref();
  const looped = async (steps: number, stepMs: number) => {
    const before = turns;
    for (let step = 0; step < steps; step += 1) {
      await yieldTurn();
      clock.advance(stepMs);
    }
    await yieldTurn();
    return turns > before;
  };
  expect(await looped(1_000, 0)).toBe(false);
  expect(await looped(4, 1)).toBe(false);
  expect(await looped(1, 1)).toBe(true);
  expect(await looped(4, 1)).toBe(false);
});
