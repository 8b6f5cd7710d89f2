import { describe, expect, test } from "bun:test";
import { judge, readCitations } from "./gate.ts";
import { section } from "./requirement.ts";
import { verifies } from "./verifies.ts";

const manifest = section("Limits", { "spec.a": "A holds.", "spec.b": "later 4: B holds." });
const citing = (id: string) => ({ citations: [{ id, file: "x.test.ts" }], unreadable: [] });

describe("the gate", () => {
  test("is open when every requirement of now is cited, and counts", () => {
    expect(judge(manifest, [citing("spec.a")])).toEqual({ total: 2, tested: 1, later: 1, problems: [] });
  });

  test("closes on a requirement without a test", () => {
    expect(judge(manifest, []).problems).toEqual(["no test: spec.a: A holds."]);
  });

  test("closes on a cited id that nobody wrote down", () => {
    const { problems } = judge(manifest, [citing("spec.a"), citing("spec.z")]);
    expect(problems).toEqual(["unknown id: spec.z (cited in x.test.ts)"]);
  });

  test("closes on an id that is defined twice", () => {
    const { problems } = judge([...manifest, ...section("Again", { "spec.a": "A." })], [citing("spec.a")]);
    expect(problems).toEqual(["defined twice: spec.a"]);
  });

  test("closes on a requirement that is marked for later and tested already", () => {
    const { problems } = judge(manifest, [citing("spec.a"), citing("spec.b")]);
    expect(problems).toEqual(['tested already, remove the mark "later 4: " of spec.b (cited in x.test.ts)']);
  });

  test("closes on a call that it cannot read", () => {
    const { problems } = judge(manifest, [
      citing("spec.a"),
      { citations: [], unreadable: ["x.test.ts: verifies(id)"] },
    ]);
    expect(problems).toEqual(["only string literals can be counted: x.test.ts: verifies(id)"]);
  });
});

describe("reading a test file", () => {
  const ids = (source: string) => readCitations("x", source).citations.map((citation) => citation.id);

  test("finds calls on one line and on many", () => {
    expect(ids('verifies("a.b", "c.d");\nverifies(\n  "e.f",\n  "g.h",\n);')).toEqual(["a.b", "c.d", "e.f", "g.h"]);
  });

  test("takes no call in a comment or in a string for one", () => {
    expect(ids('// verifies("a.b")\n/* verifies("c.d") */ const s = \'verifies("e.f")\';')).toEqual([]);
  });

  test("reports calls without a literal", () => {
    expect(readCitations("x", "verifies(id); verifies(`a.${n}`); verifies()").unreadable).toEqual([
      "x: verifies(id)",
      "x: verifies(`a.${n}`)",
      "x: verifies()",
    ]);
  });
});

describe("verifies", () => {
  test("throws on an unknown id and names it", () => {
    const unknown: string = "spec.nowhere";
    const call: (...ids: [string]) => void = verifies;
    expect(() => call(unknown)).toThrow("spec.nowhere");
  });
});
