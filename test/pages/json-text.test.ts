import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { prettyPrint } from "../../src/core/json.ts";
import { SEED } from "../support/long.ts";

test("has a member a line, and leaves numbers, escapes and names as they are written", () => {
  const json = `{"n":12345678901234567890,"one":1.0, "text":"a\\u202e{\\"b\\": 1}\\\\","list":[{"x" : null},[]],"e":{}}`;
  expect(prettyPrint(json)).toBe(
    [
      "{",
      '  "n": 12345678901234567890,',
      '  "one": 1.0,',
      '  "text": "a\\u202e{\\"b\\": 1}\\\\",',
      '  "list": [',
      "    {",
      '      "x": null',
      "    },",
      "    []",
      "  ],",
      '  "e": {}',
      "}",
    ].join("\n"),
  );
});

test("keeps a short list of plain values on its line, and no other", () => {
  expect(prettyPrint('["a","]",-1.5]')).toBe('["a","]",-1.5]');
  expect(prettyPrint("[1,[2]]")).toBe("[\n  1,\n  [2]\n]");
  expect(prettyPrint(`["${"a".repeat(80)}"]`)).toBe(`[\n  "${"a".repeat(80)}"\n]`);
});

test.each(['"text"', "12", "null", "true", "[]", "{}"])("leaves %s as it is", (json) => {
  expect(prettyPrint(json)).toBe(json);
});

test("changes white space only, whatever the JSON", () => {
  const withoutSpace = (json: string) => json.replaceAll(/("(?:[^"\\]|\\.)*")|\s/g, "$1");
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), (json) => {
      expect(withoutSpace(prettyPrint(json))).toBe(withoutSpace(json));
      expect(JSON.parse(prettyPrint(json))).toEqual(JSON.parse(json));
    }),
    { seed: SEED, numRuns: 300 },
  );
});

test("does not grow beyond its bound: what is nested deep, and what is long, is shown as it is", () => {
  const deep = `${"[".repeat(63)}${"1,".repeat(60_000)}1${"]".repeat(63)}`;
  expect(prettyPrint(deep)).toBe(deep);
  const long = `{"list":[${"1,".repeat(200_000)}1]}`;
  expect(prettyPrint(long)).toBe(long);
});
