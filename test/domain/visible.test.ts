import { expect, test } from "bun:test";
import { visibleParts, visibleText } from "../../src/domain/visible.ts";

test("text that can be seen is left as it is", () => {
  for (const text of ["", "POST https://api.example.com/ä?q=1", "Zażółć 日本語 שלום 👎 e\u0301"]) {
    expect(visibleText(text)).toBe(text);
  }
});

test.each([
  ["a control character", "a\u0007b", "a<U+0007>b"],
  ["a newline, in one line", "a\nb", "a<U+000A>b"],
  ["a C1 control", "\u0085", "<U+0085>"],
  ["a bidirectional override", "exe\u202Egpj", "exe<U+202E>gpj"],
  ["isolates and marks", "\u2066\u2069\u200E\u061C", "<U+2066><U+2069><U+200E><U+061C>"],
  ["nothing of no width", "pay\u200Bpal\uFEFF\u00AD", "pay<U+200B>pal<U+FEFF><U+00AD>"],
  ["a line that ends unseen", "a\u2028b", "a<U+2028>b"],
  ["tags", "\u{E0041}", "<U+E0041>"],
  ["fillers", "\u3164\u115F\u2800", "<U+3164><U+115F><U+2800>"],
  ["half of a pair", "\ud83d!", "<U+D83D>!"],
])("shows %s by its code", (_what, text, shown) => {
  expect(visibleText(text)).toBe(shown);
});

test("keeps lines where lines are shown", () => {
  expect(visibleParts("a\n\tb\r\n", { keepsLines: true })).toEqual([
    { text: "a\n\tb" },
    { code: "U+000D" },
    { text: "\n" },
  ]);
});
