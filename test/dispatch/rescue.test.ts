import { expect, test } from "bun:test";
import { createRescue } from "../../src/dispatch/rescue.ts";
import { RESCUE_ROWS_MAX } from "../../src/domain/limits.ts";
import { FakeClock } from "../support/clock.ts";

/** So many orphans; ending one takes it away unless it can't be written down. */
function orphanage(count: number, canWrite: boolean) {
  let ids = Array.from({ length: count }, (_, n) => ({ id: `n${n}` }));
  const counts: number[] = [];
  let ended = 0;
  const rescue = createRescue({
    queue: { orphans: async (_before, limit) => ids.slice(0, limit) },
    clock: new FakeClock(),
    async end(row) {
      ended += 1;
      if (canWrite) ids = ids.filter((one) => one !== row);
    },
    onRescued: (rescued) => counts.push(rescued),
  });
  return { rescue, counts, ended: () => ended };
}

test("however many orphans there are, all of them are ended", async () => {
  const { rescue, counts } = orphanage(2 * RESCUE_ROWS_MAX + 7, true);
  expect(await rescue({ everything: true, isOurs: () => false })).toBe(2 * RESCUE_ROWS_MAX + 7);
  expect(counts).toEqual([2 * RESCUE_ROWS_MAX + 7]);
});

test("orphans whose end can't be written down are left to the next rescue, not tried for ever", async () => {
  const { rescue, ended } = orphanage(RESCUE_ROWS_MAX, false);
  await rescue({ everything: true, isOurs: () => false });
  expect(ended()).toBe(RESCUE_ROWS_MAX);
});

test("what this process has in flight is no orphan", async () => {
  const { rescue, counts, ended } = orphanage(RESCUE_ROWS_MAX, true);
  expect(await rescue({ everything: false, isOurs: () => true })).toBe(0);
  expect([counts, ended()]).toEqual([[], 0]);
});
