import { expect, test } from "bun:test";
import { createServerSize, deletableText, shrinkAdvice } from "../../src/accounts/server-size.ts";
import { DAY_MS } from "../../src/core/limits.ts";
import { FakeClock } from "../support/clock.ts";
import { ownerOf } from "../support/owner.ts";

const SIZE = { bytes: 9_000_000, freeBytes: 0, deletableBytes: 4_200_000, canShrink: true };

const OPERATOR = ownerOf("acc_first");

function openSize(retentionDays: number | null = null) {
  const clock = new FakeClock();
  const reads: number[] = [];
  const size = async (finishedUntil: Date) => {
    reads.push((clock.now().getTime() - finishedUntil.getTime()) / DAY_MS);
    return SIZE;
  };
  const isOperator = async ({ accountId }: { readonly accountId: string }) => accountId === OPERATOR.accountId;
  return { reads, read: createServerSize({ clock, config: { retentionDays }, store: { file: { size } } }, isOperator) };
}

test("the size is the operator's to see, and no other account's", async () => {
  const { read, reads } = openSize();
  expect(await read(ownerOf("acc_other"))).toBeNull();
  expect(reads).toEqual([]);
  expect(await read(OPERATOR)).toEqual({ ...SIZE, days: 30, isSet: false });
  const remote = createServerSize(
    { clock: new FakeClock(), config: { retentionDays: 1 }, store: { file: null } },
    async () => true,
  );
  expect(await remote(OPERATOR)).toBeNull();
});

test("the size is read by the retention in force", async () => {
  const { read, reads } = openSize(7);
  expect(await read(OPERATOR)).toEqual({ ...SIZE, days: 7, isSet: true });
  expect(reads).toEqual([7]);
});

test("the words say whether the retention is in force, and what to do about an old file", () => {
  expect(deletableText({ ...SIZE, days: 30, isSet: false })).toBe(
    "About 4.2 MB (RETENTION_DAYS=30, which is not set).",
  );
  expect(deletableText({ ...SIZE, deletableBytes: 0, days: 30, isSet: false })).toBe(
    "Nothing yet (RETENTION_DAYS=30, which is not set).",
  );
  expect(deletableText({ ...SIZE, days: 7, isSet: true })).toBe(
    "About 4.2 MB (RETENTION_DAYS=7, which runs every hour).",
  );
  expect(shrinkAdvice(SIZE)).toBeNull();
  expect(shrinkAdvice({ ...SIZE, canShrink: false })).toContain("`outgate backup`");
});
