import { expect, test } from "bun:test";
import { CLOCK_TOLERANCE_MS } from "../../src/core/limits.ts";
import { createClockRepair } from "../../src/delivery/recovery.ts";
import { FakeClock } from "../support/clock.ts";

/** A repair of a queue that notes by how much rows are moved, and can be away. */
function setUp() {
  const [clock, moved] = [new FakeClock(), [] as number[]];
  const state = { isAway: false };
  const unwritten = { count: 0 };
  const reschedule = async ({ byMs }: { readonly byMs: number }) => {
    if (state.isAway) throw new Error("The store is away.");
    moved.push(byMs);
    return 0;
  };
  const repair = createClockRepair(clock, { reschedule }, unwritten);
  const move = () => repair.moveRows(() => false);
  return { repair, clock, moved, state, unwritten, move };
}

test("small steps back are noticed once they add up, and steps forward never", () => {
  const { clock, repair } = setUp();
  clock.jump(-CLOCK_TOLERANCE_MS);
  expect(repair.look()).toBe(0);
  clock.jump(-1);
  expect([repair.look(), repair.look()]).toEqual([CLOCK_TOLERANCE_MS + 1, 0]);
  clock.jump(CLOCK_TOLERANCE_MS);
  clock.advance(60_000);
  expect(repair.look()).toBe(0);
});

test("rows are moved once more after each move, for writes that were under way, and as long as results are unwritten", async () => {
  const { clock, repair, moved, unwritten, move } = setUp();
  clock.jump(-60_000);
  repair.look();
  unwritten.count = 1;
  const due: boolean[] = [];
  for (let passes = 0; passes < 3; passes += 1) {
    await move();
    due.push(repair.isDue());
  }
  unwritten.count = 0;
  await move();
  expect([moved, due, repair.isDue()]).toEqual([[60_000, 0, 0, 0], [true, true, true], false]);
});

test("a move that failed is due again, by as far as the clock was set back by then, and no step is lost meanwhile", async () => {
  const { clock, repair, moved, state, move } = setUp();
  state.isAway = true;
  for (const stepMs of [60_000, 30_000]) {
    clock.jump(-stepMs);
    repair.look();
    await move().catch(() => {});
  }
  expect(repair.isDue()).toBe(true);
  state.isAway = false;
  const moving = move();
  clock.jump(-10_000);
  repair.look();
  await moving;
  await move();
  expect(moved).toEqual([90_000, 10_000]);
});
