import { describe, expect, test } from "bun:test";
import { type JsonNode, jsonTree } from "../../src/core/json-tree.ts";

const LIMITS = { nodes: 100, chars: 1_000 };

function nodesOf(node: JsonNode | null): number {
  if (node?.kind === "object") return node.members.reduce((sum, [, value]) => sum + nodesOf(value), 1);
  return node?.kind === "list" ? node.elements.reduce((sum, value) => sum + nodesOf(value), 1) : 1;
}

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
    expect(jsonTree(list(99), LIMITS)).toMatchObject({ rest: null });
    expect(jsonTree(list(102), LIMITS)).toMatchObject({ rest: { count: 3, text: "[1,1,1]" } });
    expect(jsonTree(JSON.stringify("x".repeat(999)), LIMITS)).toBeNull();
    // A long list takes no nodes from what follows it; what is beyond them is there as text, to the last item.
    const long = Array.from({ length: 400 }, (_, id) => ({ id }));
    const tree = jsonTree(JSON.stringify({ long, amount: 5, to: { name: "Ann" } }), { nodes: 100, chars: 10_000 });
    const members = tree?.kind === "object" ? tree.members : [];
    expect(members.slice(1)).toMatchObject([
      ["amount", { text: "5" }],
      ["to", { members: [["name", { value: "Ann" }]] }],
    ]);
    const [, items] = members[0] ?? [];
    if (items?.kind !== "list") throw new Error("It is no list.");
    const shown = items.elements.map(({ text }) => JSON.parse(text) as unknown);
    expect([...shown, ...JSON.parse(items.rest?.text ?? "")]).toEqual(long);
    expect(items.elements.length * 2).toBeLessThan(100);
    // Of its last element the fields are text.
    expect(nodesOf(tree)).toBeLessThanOrEqual(100);
    // What is not as it is stored could hide something.
    for (const text of ['{"a":1,"a":2}', '{"a": 1}', String.raw`"\u0061"`, "", "{", '{"a":1', "[1,]", "nul", "••••"])
      expect(jsonTree(text, LIMITS), text).toBeNull();
  });
});
