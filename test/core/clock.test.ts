import { expect, test } from "bun:test";
import { sleep, systemClock } from "../../src/core/clock.ts";

test("a timer of many days does not ring at once", async () => {
  const rings: number[] = [];
  const cancel = systemClock.after(2 ** 31, () => rings.push(1));
  // One that rings at once has a delay of a millisecond.
  await sleep(systemClock, 2);
  cancel();
  expect(rings).toEqual([]);
});
