import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { inOrder, parseInOrder } from "../../src/cli/exact-json.ts";

test("an object is enumerated and written in the order of its entries", () => {
  const object = inOrder([
    ["b", 1],
    ["10", 2],
    ["2", 3],
    ["10", 4],
  ]);
  expect(Object.entries(object)).toEqual([
    ["b", 1],
    ["10", 4],
    ["2", 3],
  ]);
  expect(JSON.stringify({ form: object })).toBe('{"form":{"b":1,"10":4,"2":3}}');
  expect(Object.keys({ ...object })).toEqual(["2", "10", "b"]);
});

test.each([
  '{"a":{"2":[{"9":1.0,"1":{}}],"1":12345678901234567890},"0":"\\"5\\":"}',
  '[{"2":1,"1":2},"3",null]',
  '{"__proto__":{"2":1,"1":2}}',
])("%s is written as it was read", (json) => {
  expect(JSON.stringify(parseInOrder(json))).toBe(json);
});

test("any JSON is written as it was read", () => {
  const name = fc.oneof(fc.nat({ max: 99 }).map(String), fc.string({ maxLength: 3 }));
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof({ maxDepth: 4 }, fc.constantFrom('"x"', "null", "1.50", '"\\"1\\":"'), tie("list"), tie("object")),
    list: fc.array(tie("tree"), { maxLength: 4 }).map((texts) => `[${texts.join()}]`),
    object: fc
      .uniqueArray(fc.tuple(name, tie("tree")), { maxLength: 5, selector: ([one]) => one })
      .map((members) => `{${members.map(([one, text]) => `${JSON.stringify(one)}:${String(text)}`).join()}}`),
  }));
  fc.assert(fc.property(tree, (json) => expect(JSON.stringify(parseInOrder(String(json)))).toBe(String(json))));
});
