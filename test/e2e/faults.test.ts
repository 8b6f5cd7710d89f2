import { expect, setDefaultTimeout, test } from "bun:test";
import { lateArrivals } from "../http/late.ts";
import { canMount } from "../db/processes.ts";
import { canCut, powerCuts } from "../support/faults/power-cut.ts";
import { diskErrors } from "../support/faults/disk-errors.ts";
import { diskFull } from "../support/faults/disk-full.ts";
import { memoryGroup, outOfMemory } from "../support/faults/out-of-memory.ts";
import type { FaultReport } from "../support/faults/report.ts";
import { killAt, type StopPoint } from "../support/faults/stop-points.ts";

/**
 * Faults at a small width; `npm run faults` has them at their full one, and more of them. Each is processes of its own that
 * wait for most of the time, so they run beside each other.
 */
function held({ figures, problems }: FaultReport): void {
  console.log(JSON.stringify(figures));
  expect(problems).toEqual([]);
}

const POINTS: readonly (readonly [StopPoint, number])[] = [
  ["after the claim", 1],
  ["while it is sent", 3],
  ["before the record", 3],
];
/** Beside each other they take longer, and on a busy machine much longer. */
setDefaultTimeout(90_000);
const has = (command: string) => Bun.which(command) !== null;
const groups = memoryGroup();
groups?.end();

test.concurrent.each(POINTS)("killed %s, with %i attempts", async (point, retries) => {
  held(await killAt(point, retries));
});

test.concurrent.skipIf(!canCut())("the power is cut", async () => {
  held(await powerCuts(1, Math.random));
});

test.concurrent.skipIf(!has("strace"))("a failed fsync", async () => {
  held(await diskErrors({ call: "fsync", error: "EIO", from: 5, count: 3, isAlone: false }));
});

test.concurrent.skipIf(!canMount())("a full disk, while it runs and at the start", async () => {
  for (const when of ["while it runs", "at the start"] as const) held(await diskFull(when));
});

test.concurrent.skipIf(groups === null)("200 MB of memory", async () => {
  held(await outOfMemory(10));
});

test.concurrent("what does not arrive in time is closed, whoever waits for an action is not, and others are served", async () => {
  held(await lateArrivals());
});
