import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { compactJson, memberText } from "../../src/core/json.ts";
import { withoutSpaceAsPrinted } from "../../src/core/written-numbers.ts";
import { SEED } from "../support/long.ts";

console.log(`written numbers: seed ${SEED}`);

const copied = (text: string) => withoutSpaceAsPrinted(text, JSON.stringify(JSON.parse(text)));

describe("a JSON text is copied with its numbers as they were written", () => {
  test.each([
    ["1.0", "1.0"],
    ["-0", "-0"],
    ["1E+2", "1E+2"],
    ["[1.50,12345678901234567890 , -0.0e-1]", "[1.50,12345678901234567890,-0.0e-1]"],
    ['{"a": 1.0, "b" :\n[ true , null ]\t,\r\n"c": "x  1.0" }', '{"a":1.0,"b":[true,null],"c":"x  1.0"}'],
    ['{"a\\"1":{"1.0":2.50},"\\\\":[]}', '{"a\\"1":{"1.0":2.50},"\\\\":[]}'],
    ["[0.1,1,0.1]", "[0.1,1,0.1]"],
  ])("%s", (text, expected) => {
    expect(copied(text)).toBe(expected);
    expect(compactJson(text)).toBe(expected);
  });

  test.each([
    ["a name that is given twice", '{"a":1.0,"a":2.0}'],
    ["one inside of what is given twice", '{"a":{"b":1.0},"a":{"b":2.0}}'],
    ["one of two spellings", '{"a":1.0,"\\u0061":2.0}'],
    ["names that are integers", '{"2":1.0,"1":2.0}'],
    ["an escape that is not needed", '["\\u0061",1.0]'],
    ["a slash that is escaped", '["\\/",1.0]'],
    ["a number beyond every double", "[1e400]"],
  ])("but not with %s", (_name, text) => {
    expect(copied(text)).toBeNull();
    // There the copy token by token is taken.
    expect(memberText({ value: JSON.parse(`[${text}]`), text: `[ ${text}]`, scan: "exact" }, 0)).toBe(
      compactJson(text),
    );
  });

  test("white space in front of a member does not matter", () => {
    const text = '{"url":"x", "body" : {"a": 1.0}}';
    expect(memberText({ value: JSON.parse(text), text, scan: "exact" }, "body")).toBe('{"a":1.0}');
  });

  test("as the copy token by token, or not at all", () => {
    const space = fc.constantFrom("", "", " ", "\n\t");
    const number = fc.constantFrom("0", "-0", "1.0", "1e2", "1E-2", "100", "0.10", "12345678901234567890", "1e400");
    const string = fc.constantFrom('"a"', '"1.0"', '"a b"', '"\\n"', '"\\u0061"', '"\\ud800"', '"\\/"', '"é"', '"\\""');
    const name = fc.constantFrom('"a"', '"b"', '"\\u0062"', '"1"', '"0"', '"1.0"');
    const { value } = fc.letrec<{ value: string; list: string; object: string }>((tie) => ({
      value: fc.oneof(
        { depthSize: "small" },
        number,
        string,
        fc.constantFrom("true", "null"),
        tie("list"),
        tie("object"),
      ),
      list: fc
        .array(fc.tuple(space, tie("value"), space), { maxLength: 4 })
        .map((parts) => `[${parts.map((part) => part.join("")).join(",")}]`),
      object: fc
        .array(fc.tuple(space, name, space, fc.constant(":"), space, tie("value"), space), { maxLength: 4 })
        .map((parts) => `{${parts.map((part) => part.join("")).join(",")}}`),
    }));
    let taken = 0;
    const property = fc.property(value, (text) => {
      const found = copied(text);
      if (found !== null) expect(found).toBe(compactJson(text));
      taken += found === null ? 0 : 1;
    });
    fc.assert(property, { seed: SEED, numRuns: 3_000 });
    expect(taken).toBeGreaterThan(300);
  });
});
