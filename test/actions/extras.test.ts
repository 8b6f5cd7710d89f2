import { describe, expect, test } from "bun:test";
import { type Extras, extrasText, NO_EXTRAS, parseExtras } from "../../src/actions/extras.ts";

describe("extras in their column", () => {
  test.each<[Extras]>([
    [{ bodyKind: "base64" }],
    [{ reason: "" }],
    [{ metadata: { a: "" } }],
    [{ bodyKind: "json", reason: "line\nbreak \u{1f600}", metadata: { "a.b-c_9": "x", ["__proto__"]: "y" } }],
  ])("come back as they were: %j", (extras) => {
    expect(parseExtras(extrasText(extras) ?? "")).toEqual(extras);
  });

  test("are null where there is none", () => {
    expect([extrasText(NO_EXTRAS), extrasText({})]).toEqual([null, null]);
  });

  test.each([
    ["no JSON", "{"],
    ["no object", "null"],
    ["nothing in it", "{}"],
    ["an unknown member", '{"reason":"x","more":1}'],
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
