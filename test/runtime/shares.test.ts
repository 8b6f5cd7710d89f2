import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { shareOfHost } from "../../src/runtime/membership.ts";

const host = fc.string({ maxLength: 20 });
const slots = fc.integer({ min: 1, max: 200 });
const nodes = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 12 });

const shares = (name: string, count: number, ids: readonly string[]) =>
  ids.map((id) => shareOfHost(name, count, id, ids));

const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0);

describe("the slots of a host", () => {
  test("are all given to some node, and none twice; no node has two more than another", () => {
    fc.assert(
      fc.property(host, slots, nodes, (name, count, ids) => {
        const given = shares(name, count, ids);
        expect(sum(given)).toBe(count);
        expect(Math.max(...given) - Math.min(...given)).toBeLessThanOrEqual(1);
      }),
    );
  });

  test("a node that comes takes some, and no other one has more than before: nor does one lose any when a node goes", () => {
    fc.assert(
      fc.property(host, slots, nodes, (name, count, ids) => {
        const [comer = "", ...others] = ids;
        for (const id of others) {
          const without = shareOfHost(name, count, id, others);
          expect(shareOfHost(name, count, id, [...others, comer])).toBeLessThanOrEqual(without);
        }
      }),
    );
  });

  test("are those of one node where there is one slot, and not of the same node for every host", () => {
    const ids = ["a", "b", "c", "d"];
    const callers = Array.from({ length: 400 }, (_, n) => shares(`acc_1 host${n}.example`, 1, ids).indexOf(1));
    for (const at of ids.keys()) expect(callers.filter((caller) => caller === at).length).toBeGreaterThan(60);
  });
});
