import { expect, test } from "bun:test";
import { Recovery } from "../../src/delivery/recovery.ts";
import { RECOVERY_ROWS_MAX } from "../../src/core/limits.ts";
import { StoreUnavailable } from "../../src/core/store.ts";
import { FakeClock } from "../support/clock.ts";

/** So many orphans; ending one takes it away unless it can't be written down, or fails. */
function orphanage(count: number, canWrite: boolean, failures: Readonly<Record<string, Error>> = {}) {
  let ids = Array.from({ length: count }, (_, n) => ({ id: `n${String(n).padStart(5, "0")}` }));
  const counts: number[] = [];
  const complaints: unknown[] = [];
  let ended = 0;
  const recovery = new Recovery<{ readonly id: string }>({
    name: "actions",
    log: { error: (event, fields) => void complaints.push([event, fields]) },
    queue: {
      orphans: async (_before, limit, after) => ids.filter(({ id }) => id > (after?.id ?? "")).slice(0, limit),
    },
    clock: new FakeClock(),
    ends: {
      async recover(row) {
        ended += 1;
        const failure = failures[row.id];
        if (failure !== undefined) throw failure;
        if (canWrite) ids = ids.filter((one) => one !== row);
        return canWrite;
      },
      onRescued: (rescued) => counts.push(rescued),
    },
  });
  return { rescue: recovery.rescue.bind(recovery), counts, complaints, ended: () => ended };
}

test("however many orphans there are, all of them are ended", async () => {
  const { rescue, counts } = orphanage(2 * RECOVERY_ROWS_MAX + 7, true);
  expect(await rescue({ everything: true, isOurs: () => false })).toBe(2 * RECOVERY_ROWS_MAX + 7);
  expect(counts).toEqual([2 * RECOVERY_ROWS_MAX + 7]);
});

test("orphans whose end can't be written down are left to the next rescue, not tried for ever", async () => {
  const { rescue, counts, ended } = orphanage(RECOVERY_ROWS_MAX, false);
  expect(await rescue({ everything: true, isOurs: () => false })).toBe(0);
  expect([ended(), counts]).toEqual([RECOVERY_ROWS_MAX, []]);
});

test("what this process has in flight is no orphan", async () => {
  const { rescue, counts, ended } = orphanage(RECOVERY_ROWS_MAX, true);
  expect(await rescue({ everything: false, isOurs: () => true })).toBe(0);
  expect([counts, ended()]).toEqual([[], 0]);
});

test("one row that can't be ended holds up no other, and is written down", async () => {
  const { rescue, counts, complaints } = orphanage(RECOVERY_ROWS_MAX + 3, true, {
    n00001: new TypeError("of a row by hand"),
  });
  expect(await rescue({ everything: true, isOurs: () => false })).toBe(RECOVERY_ROWS_MAX + 2);
  expect(counts).toEqual([RECOVERY_ROWS_MAX + 2]);
  expect(complaints).toEqual([["rescue.failed", { of: "actions", id: "n00001", error: "TypeError" }]]);
});

test("a store that goes away in a rescue is no fault of a row", async () => {
  const { rescue, counts, complaints } = orphanage(3, true, { n00001: new StoreUnavailable("away") });
  const failed = await rescue({ everything: true, isOurs: () => false }).catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(StoreUnavailable);
  expect(complaints).toEqual([]);
  // What was written before it went away is told of, and nothing else.
  expect(counts).toEqual([2]);
});

test("what this process holds fills no page: orphans behind it are ended", async () => {
  const { rescue, counts } = orphanage(RECOVERY_ROWS_MAX + 3, true);
  const isOurs = ({ id }: { readonly id: string }) => Number(id.slice(1)) < RECOVERY_ROWS_MAX;
  expect(await rescue({ everything: false, isOurs })).toBe(3);
  expect(counts).toEqual([3]);
});
