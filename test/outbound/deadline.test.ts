import { expect, test } from "bun:test";
import { openDeadline } from "../../src/outbound/deadline.ts";

test("a deadline that passed while the process stood still is over before its timer has rung", () => {
  const deadline = openDeadline({ timeoutMs: 20 });
  expect([deadline.endedBy(), deadline.signal.aborted]).toEqual([null, false]);
  Bun.sleepSync(30);
  expect([deadline.endedBy(), deadline.signal.aborted, deadline.leftMs()]).toEqual(["timed_out", true, 0]);
  deadline.close();
});

test("a deadline that was interrupted stays so", () => {
  const stop = new AbortController();
  const deadline = openDeadline({ timeoutMs: 20, stop: stop.signal });
  stop.abort();
  Bun.sleepSync(30);
  expect(deadline.endedBy()).toBe("interrupted");
  deadline.close();
});
