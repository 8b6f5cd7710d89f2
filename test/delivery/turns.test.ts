import { expect, test } from "bun:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { ATTEMPTS_PER_TURN_MAX } from "../../src/core/limits.ts";
import { Turns } from "../../src/delivery/in-flight.ts";

test("few attempts go on in one turn of the event loop, the oldest first, so that callers are answered in between", async () => {
  const turns = new Turns();
  const order: number[] = [];
  const most = 3 * ATTEMPTS_PER_TURN_MAX + 1;
  const all = Array.from({ length: most }, async (_, index) => {
    await turns.wait();
    order.push(index);
  });
  const perTurn: number[] = [];
  for (let seen = 0; seen < most && perTurn.length < most;) {
    await Promise.resolve();
    perTurn.push(order.length - seen);
    seen = order.length;
    await nextTurn();
  }
  await Promise.all(all);
  expect(Math.max(...perTurn)).toBe(ATTEMPTS_PER_TURN_MAX);
  expect(order).toEqual(Array.from({ length: most }, (_, index) => index));
});

test("an attempt of a turn with room goes on at once", () => {
  const turns = new Turns();
  for (let begun = 0; begun < ATTEMPTS_PER_TURN_MAX; begun += 1) expect(turns.wait()).toBeNull();
  expect(turns.wait()).toBeInstanceOf(Promise);
});
