import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { Alarms, NEVER } from "../../src/delivery/alarms.ts";

const ascending = (one: number, other: number) => one - other;

const item = fc.integer({ min: 0, max: 5 });
const step = fc.oneof(
  fc.record({ kind: fc.constant("set" as const), item, inMs: fc.integer({ min: 0, max: 50 }) }),
  fc.record({ kind: fc.constant("remove" as const), item }),
  fc.record({ kind: fc.constant("run" as const), afterMs: fc.integer({ min: 0, max: 20 }) }),
);

test("alarms ring once, in order, at the earliest time that was set", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const alarms = new Alarms<{ readonly name: number; wakesAtMs: number }>();
      const items = Array.from({ length: 6 }, (_, name) => ({ name, wakesAtMs: NEVER }));
      const expected = new Map<number, number>();
      let nowMs = 0;
      for (const one of steps) {
        const known = one.kind === "run" ? undefined : items[one.item];
        if (one.kind === "run") {
          nowMs += one.afterMs;
          const due = [...expected].filter(([, atMs]) => atMs <= nowMs);
          const rung = [...alarms.run(nowMs)].map(({ name }) => name);
          expect(rung.toSorted(ascending)).toEqual(due.map(([name]) => name).toSorted(ascending));
          expect(rung.map((name) => expected.get(name) ?? 0)).toEqual(due.map(([, atMs]) => atMs).toSorted(ascending));
          for (const [name] of due) expected.delete(name);
        } else if (known !== undefined && one.kind === "set") {
          alarms.set(known, nowMs + one.inMs);
          expected.set(one.item, Math.min(expected.get(one.item) ?? NEVER, nowMs + one.inMs));
        } else if (known !== undefined) {
          alarms.remove(known);
          expected.delete(one.item);
        }
        expect(alarms.earliestMs ?? NEVER).toBe(Math.min(...expected.values()));
      }
    }),
  );
});

test("an item that is set again and again, each time earlier, takes the memory of one", () => {
  const alarms = new Alarms();
  const lane = { wakesAtMs: NEVER };
  for (let atMs = 1_000; atMs > 0; atMs -= 1) alarms.set(lane, atMs);
  expect([alarms.earliestMs, [...alarms.run(NEVER)].length]).toEqual([1, 1]);
});
