import { describe, expect, test } from "bun:test";
import { jsonTree } from "../../src/json/tree.ts";

const LIMITS = { nodes: 100, chars: 1_000 };

describe("the tree of a JSON text", () => {
  test("has every value as it is written, in its order", () => {
    const tree = jsonTree('{"2":1.0,"1":[true,null,"a\\né"],"o":{}}', LIMITS);
    expect(tree).toMatchObject({
      kind: "object",
      members: [
        ["2", { kind: "number", text: "1.0" }],
        [
          "1",
          {
            kind: "list",
            elements: [
              { kind: "word", text: "true" },
              { kind: "word", text: "null" },
              { kind: "string", value: "a\né" },
            ],
          },
        ],
        ["o", { kind: "object", members: [] }],
      ],
    });
    expect(jsonTree("-12345678901234567890", LIMITS)).toEqual({ kind: "number", text: "-12345678901234567890" });
  });

  test("is bounded in nodes and characters, and is none of what is no JSON", () => {
    const list = (length: number) => JSON.stringify(Array.from({ length }, () => 1));
    expect(jsonTree(list(99), LIMITS)).not.toBeNull();
    expect(jsonTree(list(100), LIMITS)).toBeNull();
    expect(jsonTree(JSON.stringify("x".repeat(999)), LIMITS)).toBeNull();
    // What is not as it is stored could hide something.
    for (const text of ['{"a":1,"a":2}', '{"a": 1}', String.raw`"\u0061"`, "", "{", '{"a":1', "[1,]", "nul", "••••"])
      expect({ text, tree: jsonTree(text, LIMITS) }).toEqual({ text, tree: null });
  });
});
