import { expect, test } from "bun:test";
import { TURN_MS_MAX } from "../../src/core/limits.ts";
import { countByHolder, createOwnTurns, createTurnShare, holderToEvict } from "../../src/runtime/fair-share.ts";
import { FakeClock } from "../support/clock.ts";

test("whoever holds the most makes room for one who holds at least two fewer", () => {
  expect(holderToEvict(new Map([["a", 100]]), "b")).toBe("a");
  expect(holderToEvict(new Map(Object.entries({ a: 60, b: 39, c: 1 })), "b")).toBe("a");
  expect(holderToEvict(new Map(Object.entries({ a: 51, b: 49 })), "b")).toBe("a");
});

test("nobody makes room for one who has a share of the same size, or whose place the next one would take back", () => {
  expect(holderToEvict(new Map([["a", 100]]), "a")).toBeNull();
  expect(holderToEvict(new Map(Object.entries({ a: 50, b: 50 })), "b")).toBeNull();
  expect(holderToEvict(new Map(Object.entries({ a: 51, b: 50 })), "b")).toBeNull();
  expect(holderToEvict(new Map(Object.entries({ a: 1, b: 1 })), "c")).toBeNull();
});

test("asked for again and again, everybody ends up with an equal share", () => {
  const holders = Array.from({ length: 20 }, () => "a");
  for (let n = 0; n < 100; n += 1) {
    for (const asking of ["b", "a", "c"]) {
      const victim = holderToEvict(countByHolder(holders.map((holder) => ({ holder }))), asking);
      if (victim !== null) holders[holders.lastIndexOf(victim)] = asking;
    }
  }
  const held = countByHolder(holders.map((holder) => ({ holder })));
  expect([...held.values()].toSorted((a, b) => a - b)).toEqual([6, 7, 7]);
});

test("many callers share a turn of the event loop: what goes beyond it waits for the next one", async () => {
  const clock = new FakeClock();
  const shareTurn = createTurnShare(clock);
  let turn = 0;
  const turns: number[] = [];
  const work = () => {
    turns.push(turn);
    clock.stall(TURN_MS_MAX / 2);
  };
  let isOver = false;
  const count = () => {
    turn += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await Promise.all(Array.from({ length: 6 }, () => shareTurn("a", work)));
  isOver = true;
  const together = [...Map.groupBy(turns, (one) => one).values()].map((some) => some.length);
  expect(together).toEqual([2, 2, 2]);
  const fail = () => {
    throw new Error("Failed.");
  };
  const [one, other, last] = await Promise.allSettled([
    shareTurn("a", work),
    shareTurn("a", work),
    shareTurn("a", fail),
  ]);
  expect([one.status, other.status, last.status]).toEqual(["fulfilled", "fulfilled", "rejected"]);
});

test("accounts take turns: one with much work delays another by a piece", async () => {
  const clock = new FakeClock();
  const shareTurn = createTurnShare(clock);
  const begun: string[] = [];
  const share = (accountId: string) =>
    shareTurn(accountId, () => {
      begun.push(accountId);
      clock.stall(TURN_MS_MAX);
    });
  await Promise.all([...Array.from({ length: 9 }, () => share("busy")), share("other"), share("other")]);
  expect(begun.slice(1, 5).toSorted()).toEqual(["busy", "busy", "other", "other"]);
  expect(begun).toHaveLength(11);
});

test("who begins together goes on in a turn of their own each, in their order, with other work in between", async () => {
  const ownTurn = createOwnTurns();
  const went: (number | "other")[] = [];
  const other = () => void (went.push("other") < 20 && setImmediate(other));
  setImmediate(other);
  await Promise.all(
    [1, 2, 3].map(async (one) => {
      await ownTurn();
      went.push(one);
    }),
  );
  expect(went.filter((one) => one !== "other")).toEqual([1, 2, 3]);
  for (const one of [1, 2]) expect(went[went.indexOf(one) + 1]).toBe("other");
});
