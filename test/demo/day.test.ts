import { expect, test } from "bun:test";
import { TravelClock } from "../../src/demo/clock.ts";
import { demoDay } from "../../src/demo/day.ts";
import { FakeClock } from "../support/clock.ts";

const HOUR_MS = 3_600_000;

test("every decision of the day is about an action that was created before", () => {
  const created = new Set<string>();
  for (const step of demoDay()) {
    if (step.kind === "create") created.add(step.name);
    if (step.kind === "decide") expect(created).toContain(step.name);
  }
});

test("the demo's clock moves on up to the machine's time, rings what was due meanwhile, and then runs with it", () => {
  const machine = new FakeClock();
  const clock = new TravelClock(machine, 2 * HOUR_MS);
  const beginMs = clock.now().getTime();
  const rung: [string, number][] = [];
  const ring = (name: string) => () => void rung.push([name, clock.now().getTime() - beginMs]);
  clock.after(HOUR_MS, ring("second"));
  clock.after(HOUR_MS / 2, ring("first"));
  clock.after(3 * HOUR_MS, ring("later"));
  clock.after(HOUR_MS, ring("never"))();
  machine.advance(1_000);
  expect(clock.now().getTime() - beginMs).toBe(1_000);
  clock.moveTo(new Date(beginMs + 1.5 * HOUR_MS));
  expect(rung).toEqual([
    ["first", 1.5 * HOUR_MS],
    ["second", 1.5 * HOUR_MS],
  ]);
  // Neither back, nor beyond.
  clock.moveTo(new Date(beginMs));
  expect(clock.now().getTime() - beginMs).toBe(1.5 * HOUR_MS);
  clock.moveTo(new Date(beginMs + 9 * HOUR_MS));
  expect(clock.now()).toEqual(machine.now());
  machine.advance(HOUR_MS);
  expect(rung.at(-1)).toEqual(["later", 3 * HOUR_MS]);
  expect(machine.timers).toBe(0);
});
