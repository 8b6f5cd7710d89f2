import { describe, expect, test } from "bun:test";
import { jsonTree } from "../../src/core/json-tree.ts";
import { foldedIn, JsonView } from "../../src/ui/json-view.tsx";
import { renderPart } from "../../src/ui/layout.tsx";

function viewOf(value: unknown): string {
  const tree = jsonTree(JSON.stringify(value), { nodes: 1_000, chars: 20_000 });
  if (tree === null) throw new Error("It is no tree.");
  return renderPart(JsonView({ label: "Body", tree }));
}

/** The lines as a reader sees them. */
const linesOf = (html: string) =>
  html
    .replaceAll(/<\/(?:div|summary|pre)>/g, "\n")
    .replaceAll(/<[^>]+>/g, "")
    .replaceAll("&quot;", '"')
    .split("\n")
    .filter((line) => line !== "");

describe("JSON on a page", () => {
  test("reads as JSON, one member a line, with everything open", () => {
    const html = viewOf({ amount: 12.5, tags: ["a", 1, null], to: { name: "Ann" }, none: {}, empty: [] });
    expect(linesOf(html)).toEqual([
      "{",
      '"amount": 12.5,',
      '"tags": ["a", 1, null],',
      '"to": { 1 field },',
      '"name": "Ann"',
      "},",
      '"none": {},',
      '"empty": []',
      "}",
    ]);
    expect(html.match(/<details/g)).toHaveLength(1);
    expect(html.match(/<details open/g)).toHaveLength(1);
    expect(html).toContain('<span class="json-number"><bdi class="untrusted">12.5');
  });

  test("shows a text of several lines as text in a box of its own, which can't pass for a member", () => {
    const html = viewOf({ query: 'query {\n  a\n}",\n"approved": true', note: 'one", "approved": true' });
    expect(html).toContain('<pre class="code" dir="ltr" role="group" aria-label="Text">query {\n  a\n}&quot;,');
    expect(linesOf(html)).toContain('"query": text, 4 lines');
    // On one line, a quote is escaped as it is sent.
    expect(linesOf(html)).toContain('"note": "one\\", \\"approved\\": true"');
  });

  test("folds the end of a long list, and what is beyond its nodes, with every item still on the page", () => {
    const rows = Array.from({ length: 50 }, (_, id) => ({ id }));
    const html = viewOf({ rows, after: "seen" });
    expect(linesOf(html).slice(0, 4)).toEqual(["{", '"rows": [ 50 items ], 50 items', '{"id": 0},', '{"id": 1},']);
    expect(html).toContain('<details class="json-fold" data-folded="30"><summary');
    expect(linesOf(html)).toContain("30 more items");
    expect(linesOf(html).at(-2)).toBe('"after": "seen"');
    const few = jsonTree(JSON.stringify({ rows, after: [1, 2] }), { nodes: 30, chars: 10_000 });
    if (few === null) throw new Error("It is no tree.");
    expect(foldedIn(few)).toBeGreaterThanOrEqual(30);
    const all = renderPart(JsonView({ label: "Body", tree: few }));
    for (const { id } of rows) expect(linesOf(all).some((line) => line.includes(`"id": ${id}`))).toBe(true);
    // The outermost may be long, too.
    const list = jsonTree(JSON.stringify(rows), { nodes: 1_000, chars: 10_000 });
    expect(list === null ? 0 : foldedIn(list)).toBe(30);
  });

  test("keeps small objects of a list on one line each where there are many, and counts them", () => {
    const contact = (id: number) => ({ id, name: "Ann", tags: ["a", "b"], none: {} });
    const line = (id: number) => `{"id": ${id}, "name": "Ann", "tags": ["a", "b"], "none": {}}`;
    const many = Array.from({ length: 12 }, (_, id) => contact(id));
    const lines = linesOf(viewOf({ contacts: many }));
    expect(lines[1]).toBe('"contacts": [ 12 items ] 12 items');
    expect(lines.slice(2, 14)).toEqual(many.map(({ id }) => `${line(id)}${id === 11 ? "" : ","}`));
    expect(linesOf(viewOf(many))[0]).toBe("[ 12 items");
    // A few are read member by member, and so is what is long or has objects inside.
    for (const value of [
      [contact(1), contact(2), contact(3)],
      many.map((one) => ({ ...one, to: contact(0) })),
      many.map((one) => ({ ...one, note: "two\nlines" })),
      many.map((one) => ({ ...one, note: "x".repeat(130) })),
    ]) {
      expect(linesOf(viewOf(value))).toContain('"name": "Ann",');
    }
  });

  test("shows a long text of one line in a box, too, and codes for what can't be seen", () => {
    expect(linesOf(viewOf({ a: "x".repeat(200) }))).toEqual(["{", '"a": text', "x".repeat(200), "}"]);
    const html = viewOf({ "a\u202eb": "<script>\u2028" });
    expect(html).toContain("<i>U+202E</i>");
    expect(html).toContain("<i>U+2028</i>");
    expect(html).not.toContain("<script>");
  });
});
