import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { ACTION_ID, encodeId, firstActionId, systemIds } from "../../src/core/ids.ts";
import { later, NOON } from "../support/factory.ts";
import { SEED } from "../support/long.ts";

console.log(`ids: seed ${SEED}`);

const sixteenBytes = fc.uint8Array({ minLength: 16, maxLength: 16 });

describe("an id", () => {
  test("is a prefixed text and no UUID", () => {
    expect(systemIds.action(NOON)).toMatch(/^act_[0-9a-z]{26}$/);
    expect(systemIds.action(NOON)).toMatch(ACTION_ID);
    expect(systemIds.account()).toMatch(/^acc_[0-9a-z]{26}$/);
    expect(systemIds.key(NOON)).toMatch(/^key_[0-9a-z]{26}$/);
    expect(systemIds.request()).toMatch(/^req_[A-Za-z0-9_-]+$/);
  });

  test("is the number that its bytes make, five bits a character", () => {
    const digits = "0123456789abcdefghjkmnpqrstvwxyz";
    const property = fc.property(sixteenBytes, (bytes) => {
      const read = encodeId(bytes)
        .split("")
        .reduce((number, digit) => number * 32n + BigInt(digits.indexOf(digit)), 0n);
      expect(read).toBe(BigInt(`0x${Buffer.from(bytes).toString("hex")}`));
    });
    fc.assert(property, { seed: SEED, numRuns: 1_000 });
  });

  test("sorts as text as its bytes sort", () => {
    const property = fc.property(sixteenBytes, sixteenBytes, (one, other) => {
      const [first, second] = [encodeId(one), encodeId(other)];
      expect(first).toHaveLength(26);
      expect(Math.sign(Buffer.compare(one, other))).toBe(Number(first > second) - Number(first < second));
    });
    fc.assert(property, { seed: SEED, numRuns: 1_000 });
  });

  test("that was made later sorts later, also within a millisecond", () => {
    const { action, key, pause, rule, grant, credential, channel, person, invitation } = systemIds;
    for (const make of [action, key, pause, rule, grant, credential, channel, person, invitation]) {
      const ids = [0, 0, 0, 1, 1, 1_000, 86_400_000].map((ms) => make(later(ms)));
      expect(ids.toSorted()).toEqual(ids);
      expect(new Set(ids).size).toBe(ids.length);
    }
  });

  test("lies between the bounds of its millisecond", () => {
    const times = fc.date({ min: new Date(0), max: new Date("9999-12-31T23:59:59.998Z"), noInvalidDate: true });
    const property = fc.property(times, (at) => {
      const id = systemIds.action(at);
      expect(firstActionId(at) <= id).toBe(true);
      expect(id < firstActionId(new Date(at.getTime() + 1))).toBe(true);
    });
    fc.assert(property, { seed: SEED, numRuns: 1_000 });
  });

  test("of a time before 1970 is bounded by the first of all", () => {
    expect(firstActionId(new Date(-1))).toBe(firstActionId(new Date(0)));
  });
});

describe("what a caller may name", () => {
  test.each(["act_1", `act_${"a".repeat(64)}`, "act_A-z_9"])("%s has the form of an id", (text) => {
    expect(ACTION_ID.test(text)).toBe(true);
  });

  test.each([
    "",
    "act_",
    `act_${"a".repeat(65)}`,
    "ACT_1",
    "act-1",
    " act_1",
    "act_1\n",
    "act_../x",
    "act_a/b",
    "act_a%2Fb",
    "act_a%00",
    "act_a\0",
    "act_é",
    "x act_1",
  ])("%p has not", (text) => {
    expect(ACTION_ID.test(text)).toBe(false);
  });
});
