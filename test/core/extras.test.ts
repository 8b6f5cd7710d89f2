import { describe, expect, test } from "bun:test";
import { extrasText, NO_EXTRAS, unknownExtras } from "../../src/core/action.ts";
import { parseExtras, type Extras } from "../../src/core/extras-schema.ts";

describe("extras in their column", () => {
  test.each<[Extras]>([
    [{ bodyKind: "base64" }],
    [{ reason: "" }],
    [{ metadata: { a: "" } }],
    [{ bodyKind: "json", reason: "line\nbreak \u{1f600}", metadata: { "a.b-c_9": "x", ["__proto__"]: "y" } }],
  ])("come back as they were: %j", (extras) => {
    expect(parseExtras(extrasText(extras) ?? "")).toEqual(extras);
  });

  test("keep members that this version doesn't know, as they are written", () => {
    const text = '{"reason":"x","priority":{"level":7,"of":["a",null]},"__proto__":"y","constructor":false}';
    const extras = parseExtras(text) ?? NO_EXTRAS;
    expect(extras.reason).toBe("x");
    expect(extrasText(extras)).toBe(text);
    expect(extrasText({ ...extras, reason: "y" })).toBe(text.replace('"x"', '"y"'));
    expect(JSON.stringify(unknownExtras(extras))).toBe(text.replace('"reason":"x",', ""));
    expect([unknownExtras(NO_EXTRAS), unknownExtras({ reason: "x" })]).toEqual([null, null]);
  });

  test("are null where there is none", () => {
    expect([extrasText(NO_EXTRAS), extrasText({})]).toEqual([null, null]);
  });

  test.each([
    ["no JSON", "{"],
    ["no object", "null"],
    ["nothing in it", "{}"],
    ["an unknown member, written in another way", '{"reason":"x","more":1.0}'],
    ["an unknown member twice", '{"more":1,"more":2}'],
    ["an unknown kind", '{"bodyKind":"xml"}'],
    ["a value of another type", '{"reason":7}'],
    ["a reason that is too long", JSON.stringify({ reason: "x".repeat(1_001) })],
    ["a name that metadata can't have", '{"metadata":{"a b":"x"}}'],
    ["a name with a line break", '{"metadata":{"a\\n":"x"}}'],
    ["empty metadata", '{"metadata":{}}'],
    ["another way to write it", '{"reason": "x"}'],
    ["the same member twice", '{"reason":"x","reason":"y"}'],
  ])("are known to be altered: %s", (_, text) => {
    expect(parseExtras(text)).toBeNull();
  });
});
