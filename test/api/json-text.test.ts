import { describe, expect, test } from "bun:test";
import { assert as holds, constantFrom, dictionary, jsonValue, property, string, tuple } from "fast-check";
import { memberText, parseExactly } from "../../src/core/json.ts";
import { quickestMs } from "../support/core.ts";
import { GROWTH_MAX, growthOf } from "../support/growth.ts";

const exact = (text: string, name = "body") => memberText({ value: JSON.parse(text), text, scan: "exact" }, name);

describe("the text of a member", () => {
  test.each([
    [`{"body":{"a":1.0}}`, `{"a":1.0}`],
    [` { "x" : [ { "body" : 1 } ] , "body" : { "a" : [ 1.0 , 2 , [ ] , { } ] } } `, `{"a":[1.0,2,[],{}]}`],
    [`{"body":{"a":1.0},"body":{"b":2.0}}`, `{"b":2.0}`],
    [`{"body":{"a":1.0,"b":2,"a":3.0}}`, `{"a":3.0,"b":2}`],
    [`{"body":{"a":1.0,"\\u0061":3.0}}`, `{"a":3.0}`],
    [`{"body":{"l":[{"a":1.0,"a":-0},1e5]}}`, `{"l":[{"a":-0},1e5]}`],
    [`{"body":{"s":"a \\" } ] , b","t":"\\\\"}}`, `{"s":"a \\" } ] , b","t":"\\\\"}`],
    [`{"body":{"__proto__":1.0}}`, `{"__proto__":1.0}`],
    [`{"body":{"":{"":[]}}}`, `{"":{"":[]}}`],
    [`{"\\u0062ody":{"a":1.0}}`, `{"a":1.0}`],
    [`{"body":{"a":[{ },{"b":[{}, {}]}]}}`, `{"a":[{},{"b":[{},{}]}]}`],
  ])("of %s is %s", (text, expected) => {
    expect(exact(text)).toBe(expected);
  });

  test("is what an exact parser prints, for any JSON and any white space", () => {
    const space = constantFrom("", " ", "\n", "\t ");
    const spaced = tuple(dictionary(string(), jsonValue()), space, space).map(([value, before, after]) =>
      // White space around what stands outside of strings; a `:` inside a string is not touched.
      JSON.stringify({ body: value }).replaceAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]/g, (part) => `${before}${part}${after}`),
    );
    holds(
      property(spaced, (text) => {
        const parsed: unknown = parseExactly(text);
        // Names that look like indexes are moved to the front by the parser, and left where they are by the copy.
        const printed = JSON.stringify(JSON.parse(exact(text)));
        expect(printed).toBe(JSON.stringify(JSON.parse(JSON.stringify(Object(parsed).body))));
      }),
      { numRuns: 500 },
    );
  });

  test("is printed where every number survives parsing", () => {
    const text = `{"body":{"b":1,"a":[2,"x"]}}`;
    expect(memberText({ value: JSON.parse(text), text, scan: "plain" }, "body")).toBe(`{"b":1,"a":[2,"x"]}`);
  });

  test.each([
    [`{"params":{"arguments":{"body":{"a":1.0}}}}`, ["params", "arguments", "body"], `{"a":1.0}`],
    [` [ {"x":[{"body":1.0}]} , { "body" : [ 1.0 , 2 ] } ] `, [1, "body"], `[1.0,2]`],
    [`{"a":{"body":1.0},"a":{"body":2.0}}`, ["a", "body"], `2.0`],
    [`{"s":"]}, \\"","n":-0,"a":{"\\u0062":1e5}}`, ["a", "b"], `1e5`],
    [`{"a":[[],{},[{}]],"b":1.0}`, ["b"], `1.0`],
    [`{"a":1.0}`, ["b"], "null"],
    [`{"a":1.0}`, ["a", "b"], "null"],
    [`{"a":[1.0]}`, ["a", 1], "null"],
    [`{"a":[]}`, ["a", 0], "null"],
    [`{}`, ["a"], "null"],
  ])("of %s at %p is %s", (text, path, expected) => {
    expect(memberText({ value: JSON.parse(text), text, scan: "exact" }, ...path)).toBe(expected);
    const plain = memberText({ value: JSON.parse(text), text, scan: "plain" }, ...path);
    expect(JSON.parse(plain)).toEqual(JSON.parse(expected));
  });

  test("is found behind numbers in time linear in them, and behind a megabyte at once", () => {
    const find = (chars: number) => {
      const text = `{"junk":[${"1.0,".repeat(chars / 4)}1],"arguments":{"body":{"a":1.0}}}`;
      const parsed = { value: JSON.parse(text), text, scan: "exact" } as const;
      return () => expect(memberText(parsed, "arguments", "body")).toBe(`{"a":1.0}`);
    };
    expect(growthOf(find, 200_000)).toBeLessThanOrEqual(GROWTH_MAX);
    // It takes a tenth of that, or less.
    expect(quickestMs(50, find(1_000_000))).toBeLessThan(50);
  });
});
