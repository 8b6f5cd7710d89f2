import { expect, test } from "bun:test";
import { columnCount, padded, shortened, visible } from "../../src/observability/terminal.ts";

test.each([
  ["abc", 3],
  ["äöü", 3],
  ["a\u0308", 1],
  ["東京", 4],
  ["한국", 4],
  ["🎫", 2],
  ["…", 1],
])("%j takes %d columns", (text, columns) => {
  expect(columnCount(text)).toBe(columns);
  expect(columnCount(padded(text, 8))).toBe(8);
});

test("a text is cut at the columns, not at the characters", () => {
  expect(shortened("abcdef", 6)).toBe("abcdef");
  expect(shortened("abcdefg", 6)).toBe("abcde…");
  expect(shortened("abcdefg", 6, "")).toBe("abcdef");
  expect(shortened("東京東京", 6)).toBe("東京…");
  expect(shortened("🎫🎫🎫", 4)).toBe("🎫…");
});

test("what acts on a terminal or hides is shown as its code", () => {
  expect(visible("a\u001b[31m\u202e\n")).toBe("a<U+001B>[31m<U+202E><U+000A>");
  expect(visible("a\n\u0007b", true)).toBe("a\n<U+0007>b");
  expect(visible("a\u3164b\u2800\u115f\ufe01\u{e0101}\ufffc", true)).toBe(
    "a<U+3164>b<U+2800><U+115F><U+FE01><U+E0101><U+FFFC>",
  );
  expect(visible("❤\ufe0f 1\ufe0f\u20e3 a\ufe0f")).toBe("❤\ufe0f 1\ufe0f\u20e3 a<U+FE0F>");
});
