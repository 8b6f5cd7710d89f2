import { expect, test } from "bun:test";
import { rescue } from "../../src/delivery/recovery.ts";
import { RECOVERY_ROWS_MAX } from "../../src/core/limits.ts";
import { StoreUnavailable } from "../../src/core/store.ts";
import { FakeClock } from "../support/clock.ts";

interface Row {
  readonly id: string;
  readonly leaseUntil: null;
}

/** So many orphans; ending one takes it away unless it can't be written down, or fails. */
function orphanage(count: number, canWrite: boolean, failures: Readonly<Record<string, Error>> = {}) {
  let ids = Array.from({ length: count }, (_, n) => ({ id: `n${String(n).padStart(5, "0")}`, leaseUntil: null }));
  const counts: number[] = [];
  const complaints: unknown[] = [];
  let ended = 0;
  const of = {
    name: "actions",
    log: { error: (event: string, fields: unknown) => void complaints.push([event, fields]) },
    queue: {
      orphans: async (_before: Date | null, limit: number, after: Row | null) =>
        ids.filter(({ id }) => id > (after?.id ?? "")).slice(0, limit),
    },
    clock: new FakeClock(),
    recovery: {
      async recover(row: Row) {
        ended += 1;
        const failure = failures[row.id];
        if (failure !== undefined) throw failure;
        if (canWrite) ids = ids.filter((one) => one !== row);
        return canWrite;
      },
      onRescued: (rescued: number) => void counts.push(rescued),
    },
    lease: null,
  };
  const end = (isOurs: (row: Row) => boolean = () => false) => rescue({ ...of, isOurs }, false);
  return { end, counts, complaints, ended: () => ended };
}

test("however many orphans there are, all of them are ended", async () => {
  const { end, counts } = orphanage(2 * RECOVERY_ROWS_MAX + 7, true);
  await end();
  expect(counts).toEqual([2 * RECOVERY_ROWS_MAX + 7]);
});

test("orphans whose end can't be written down are left to the next rescue, not tried for ever", async () => {
  const { end, counts, ended } = orphanage(RECOVERY_ROWS_MAX, false);
  await end();
  expect([ended(), counts]).toEqual([RECOVERY_ROWS_MAX, []]);
});

test("what this process has in flight is no orphan", async () => {
  const { end, counts, ended } = orphanage(RECOVERY_ROWS_MAX, true);
  await end(() => true);
  expect([counts, ended()]).toEqual([[], 0]);
});

test("one row that can't be ended holds up no other, and is written down", async () => {
  const { end, counts, complaints } = orphanage(RECOVERY_ROWS_MAX + 3, true, {
    n00001: new TypeError("of a row by hand"),
  });
  await end();
  expect(counts).toEqual([RECOVERY_ROWS_MAX + 2]);
  expect(complaints).toEqual([["rescue.failed", { of: "actions", id: "n00001", error: "TypeError" }]]);
});

test("a store that goes away in a rescue is no fault of a row", async () => {
  const { end, counts, complaints } = orphanage(3, true, { n00001: new StoreUnavailable("away") });
  const failed = await end().catch((error: unknown) => error);
  expect(failed).toBeInstanceOf(StoreUnavailable);
  expect(complaints).toEqual([]);
  // What was written before it went away is told of, and nothing else.
  expect(counts).toEqual([2]);
});

test("what this process holds fills no page: orphans behind it are ended", async () => {
  const { end, counts } = orphanage(RECOVERY_ROWS_MAX + 3, true);
  await end(({ id }) => Number(id.slice(1)) < RECOVERY_ROWS_MAX);
  expect(counts).toEqual([3]);
});
