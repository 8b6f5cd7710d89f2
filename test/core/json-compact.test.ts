import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { JSON_MEMBERS_MAX } from "../../src/core/limits.ts";
import { compactJson, parseExactly, withoutLists } from "../../src/core/json.ts";
import { runsOf, SEED } from "../support/long.ts";
import { words } from "../support/words.ts";

console.log(`compact json: seed ${SEED}`);

/** The text without its white space, or null when it is no JSON. */
function compact(text: string): string | null {
  try {
    return compactJson(text);
  } catch (error) {
    expect(error).toBeInstanceOf(SyntaxError);
    return null;
  }
}

/** What the engine's own parser says. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const PARTS = [
  ...Array.from('{}[]:,"\\ \t\n0123456789-+.eEtruefalsn/ubx\u0000\u0001é€'),
  "\\u00e9",
  "\\ud800",
  "true",
  "null",
  '"a"',
  "1.0",
];

/** What is nearly JSON, by what it lacks: a value, an end, a comma, a digit, a quote; and white space of other kinds. */
const NONE: readonly string[] = [
  ...words(`
    { [ ] [1,] [,1] {,} {"a"} {"a":} {"a":1,} {1:1} {a:1} 01 - +1 1. .5 1e 1e+ --1 0x1 NaN Infinity tru nul truex
    True " 'a' {}{} []] [} {] /**/1 1/
  `),
  "",
  " ",
  "\ufeff",
  "[1 2]",
  '"\\"',
  '"\\x"',
  '"\\u12"',
  '"\\u12g4"',
  '"\n"',
  '"\0"',
  "\f1",
  "\u00a01",
  "1\ufeff",
  "[1\v]",
  "\ufeff\ufeff1",
];

describe("a JSON text without white space", () => {
  test.each([
    [` { "a" : [ 1.0 , 2 , [ ] , { } ] } `, `{"a":[1.0,2,[],{}]}`],
    ["\t\r\n1 ", "1"],
    [`" a b "`, `" a b "`],
    [`"\\" \\\\"`, `"\\" \\\\"`],
    [`["\\u00e9" , "é" , "\\/"]`, `["é","é","\\/"]`],
    ["[ true , false , null ]", "[true,false,null]"],
    ["[-0, 1e5, 1E+5, 0.10e-1]", "[-0,1e5,1E+5,0.10e-1]"],
    ["{ }", "{}"],
    [`{"a":1.0,"b":2,"\\u0061": 3.0}`, `{"a":3.0,"b":2}`],
    [`{"a":{"b":1.0},"a":{"b": 2.0}}`, `{"a":{"b":2.0}}`],
    [`[{"a":[1.50,{"b":1, "b":-0.0e-1}]},12345678901234567890]`, `[{"a":[1.50,{"b":-0.0e-1}]},12345678901234567890]`],
    [`{"2":1.0,"1":2.0}`, `{"2":1.0,"1":2.0}`],
    [`{"a\\"1":{"1.0": 2.50},"\\\\":[1e400]}`, `{"a\\"1":{"1.0":2.50},"\\\\":[1e400]}`],
  ])("of %j is %j", (text, expected) => {
    expect(compact(text)).toBe(expected);
  });

  test("of objects so deep, in each of which a name comes twice, has the last values", () => {
    const twice = (depth: number): string => (depth === 0 ? "1.0" : `{"a": 0,"\\u0061":${twice(depth - 1)}}`);
    expect(compact(twice(60))).toBe(`${'{"a":'.repeat(60)}1.0${"}".repeat(60)}`);
  });

  test.each(NONE)("of %j is none: it is no JSON", (text) => {
    expect(isJson(text)).toBe(false);
    expect(compact(text)).toBeNull();
  });

  test("is there exactly where the engine's parser finds a value, and is the same value", () => {
    const garbage = fc.array(fc.constantFrom(...PARTS), { maxLength: 12 }).map((parts) => parts.join(""));
    const valid = fc
      .tuple(fc.jsonValue(), fc.constantFrom("", " ", 3))
      .map(([value, space]) => JSON.stringify(value, null, space));
    const nearly = fc
      .tuple(valid, fc.nat(), fc.nat(2), fc.constantFrom("", ...PARTS))
      .map(
        ([text, at, cut, part]) =>
          text.slice(0, at % (text.length + 1)) + part + text.slice((at % (text.length + 1)) + cut),
      );
    let sound = 0;
    const property = fc.property(fc.oneof(garbage, valid, nearly), (text) => {
      // Half a pair can't be written in UTF-8.
      const sent = text.toWellFormed();
      const found = compact(sent);
      expect(found !== null).toBe(isJson(sent));
      if (found === null) return;
      sound += 1;
      expect(JSON.stringify(parseExactly(found))).toBe(JSON.stringify(parseExactly(sent)));
      expect(found.replaceAll(/"(?:[^"\\]|\\.)*"/g, "")).not.toMatch(/\s/);
    });
    fc.assert(property, { seed: SEED, numRuns: runsOf(8_000) });
    expect(sound).toBeGreaterThan(runsOf(800));
  });

  test.each([
    [`{"body":[1,[2],{"b":[3]}],"c":{"d":[5]},"e":"[4]"}`, `{"body":[],"c":{"d":[5]},"e":"[4]"}`],
    [`{"body":{"a":[1],"b":{"c":[2]}},"json":[3],"c":[4]}`, `{"body":{"a":[],"b":{"c":[]}},"json":[],"c":[4]}`],
    [`{"a":{"body":[1]},"b":"body","c":["body",2]}`, `{"a":{"body":[1]},"b":"body","c":["body",2]}`],
    [`{"a":[{"b":[1],"c":[0,[2],3]},4]}`, `{"a":[{"b":[1],"c":[null]},4]}`],
    [`{"a":[{"b":[1]},[2]],"c":[3]}`, `{"a":[null],"c":[3]}`],
    [`{"a":[${"{},".repeat(JSON_MEMBERS_MAX)}{}],"b":[1]}`, `{"a":[null],"b":[1]}`],
    [`{"a":[{"b":[[1]]},{"c":[[2]]},[3]],"d":[{"e":[[4]]}]}`, `{"a":[null],"d":[{"e":[null]}]}`],
    ["[[]]", "[null]"],
    [`{"a":1}`, `{"a":1}`],
  ])("%s without lists in body, json and lists is %s", (text, expected) => {
    expect(withoutLists(text, ["body", "json"])).toBe(expected);
  });

  test("lists in lists are [null] in any value, and all else is as it was", () => {
    const shown = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.some((one) => Array.isArray(one)) ? [null] : value.map(shown);
      if (typeof value !== "object" || value === null) return value;
      return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, shown(one)]));
    };
    const property = fc.property(fc.jsonValue(), (value) => {
      const json = JSON.stringify(value);
      expect(withoutLists(json, [])).toBe(JSON.stringify(shown(JSON.parse(json))));
    });
    fc.assert(property, { seed: SEED, numRuns: runsOf(2_000) });
  });
});
