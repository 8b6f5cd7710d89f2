import { expect, test } from "bun:test";
import { visibleText } from "../../src/receipts/visible-text.ts";

test("text that can be seen is left as it is, emoji too", () => {
  for (const text of [
    "",
    "POST https://api.example.com/ä?q=1",
    "Zażółć 日本語 שלום e\u0301",
    "พี่ที่ Tiếng Việt in letters and accents: ê\u0323\u0301 שָׁ֑ל ကျွန်ုပ်",
    "👍🏽 ❤\ufe0f 👩\u200d💻 👁\ufe0f\u200d🗨\ufe0f 1\ufe0f\u20e3",
    "می\u200cخواهم क्\u200dष",
  ]) {
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
  ["what joins emoji, where there is none", "pay\u200Dpal\uFE0F", "pay<U+200D>pal<U+FE0F>"],
  ["what joins letters, where it changes nothing", "ا\u200cن س\u200c\u200cن", "ا<U+200C>ن س<U+200C><U+200C>ن"],
  ["the signs of a keycap, where there is none", "a\uFE0F\u20E3", "a<U+FE0F><U+20E3>"],
  ["a line that ends unseen", "a\u2028b", "a<U+2028>b"],
  ["tags", "\u{E0041}", "<U+E0041>"],
  ["fillers", "\u3164\u115F\u2800", "<U+3164><U+115F><U+2800>"],
  ["the sign for an object, which browsers don't draw", "pay\uFFFCpal", "pay<U+FFFC>pal"],
  ["half of a pair", "\ud83d!", "<U+D83D>!"],
])("shows %s by its code", (_what, text, shown) => {
  expect(visibleText(text)).toBe(shown);
});

test("shows four accents on a letter, and more by their codes: they would be drawn over what stands above", () => {
  const four = "a\u0301\u0323\u0336\u20dd";
  expect(visibleText(`${four} ${four}`)).toBe(`${four} ${four}`);
  expect(visibleText(`${four}\u{1E8D0}\u0301b`)).toBe(`${four}<U+1E8D0><U+0301>b`);
  expect(visibleText(`a${"\u0325".repeat(900)}`)).toBe(`a${"\u0325".repeat(4)}${"<U+0325>".repeat(8)}<888 more>`);
  expect(visibleText(`1\ufe0f\u20e3${"\u0325".repeat(900)}`)).toEndWith("<894 more>");
  // A joiner between them is shown, and what is behind it would be drawn over its code.
  expect(visibleText(`${four}\u034f\u0301b`)).toBe(`${four}<U+034F><U+0301>b`);
});

test("shows eight marks on a letter where some stand beside it: no line is broken between them", () => {
  const [beside, above] = ["\u0903", "\u0301"];
  expect(visibleText(`a${beside.repeat(8)} มื้อำ မြွှောင်`)).toBe(`a${beside.repeat(8)} มื้อำ မြွှောင်`);
  expect(visibleText(`a${beside.repeat(9)}`)).toBe(`a${beside.repeat(8)}<U+0903>`);
  expect(visibleText(`ก${"\u0e33".repeat(10)}`)).toBe(`ก${"\u0e33".repeat(8)}<U+0E33><U+0E33>`);
  // Between them, no more accents fit than on any letter.
  const mixed = `${beside}${above}${above}${beside}${above}${above}`;
  expect(visibleText(`a${mixed}${above}`)).toBe(`a${mixed}<U+0301>`);
});

test("shows four of what joins into one syllable or letter, which no line breaks", () => {
  const hangul = "한글을".normalize("NFD").repeat(30);
  expect(visibleText(hangul)).toBe(hangul);
  for (const part of ["\u1100", "\u1161", "\u11a8", "\u{111c2}"]) {
    const code = `<U+${part.codePointAt(0)?.toString(16).toUpperCase()}>`;
    expect(visibleText(part.repeat(6))).toBe(part.repeat(4) + code.repeat(2));
  }
});

test("shows accents at the beginning by their codes: they would be drawn over what stands before", () => {
  expect(visibleText("\u0338\u20ddpaid")).toBe("<U+0338><U+20DD>paid");
  expect(visibleText("\u0338".repeat(5))).toBe("<U+0338>".repeat(5));
  expect(visibleText("\u0903\u202e")).toBe("<U+0903><U+202E>");
});

test.each([
  ["a quotation mark", '{"\u20dda": "\u0338paid"}', '{"<U+20DD>a": "<U+0338>paid"}'],
  [
    "an escape",
    '"\\"\u20e5 \\n\u0301 \\u0065\u0301 \\\\\u0301 \\/\u0301"',
    '"\\"<U+20E5> \\n<U+0301> \\u0065<U+0301> \\\\<U+0301> \\/<U+0301>"',
  ],
  ["the code of another character", "a\u202e\u0338\u20ddb", "a<U+202E><U+0338><U+20DD>b"],
  ["the code of a part of a syllable", `${"\u1100".repeat(5)}\u0338`, `${"\u1100".repeat(4)}<U+1100><U+0338>`],
  ["a quotation mark, however many", `"${"\u0301".repeat(10)}"`, `"${"<U+0301>".repeat(8)}<2 more>"`],
])("shows accents behind %s by their codes: they would be drawn over it", (_what, text, shown) => {
  expect(visibleText(text)).toBe(shown);
  expect(visibleText(Bun.escapeHTML(text), { mark: (code) => `&lt;${code}&gt;` })).toBe(Bun.escapeHTML(shown));
});

test("keeps our quotation marks where codes are no longer shown", () => {
  const text = '"\u0301",'.repeat(4_001);
  expect(visibleText(text)).toBe('"<U+0301>",'.repeat(4_000) + '"\ufffd",');
});

test("keeps lines where lines are shown", () => {
  expect(visibleText("a\n\tb\r\n", { keepsLines: true })).toBe("a\n\tb<U+000D>\n");
  expect(visibleText("a\n\u0301b\n\t\u20dd", { keepsLines: true })).toBe("a\n<U+0301>b\n\t<U+20DD>");
});

test("shows what comes after thousands by one sign each, and keeps its lines", () => {
  const text = "a\u202e\n".repeat(5_000);
  const shown = visibleText(text, { keepsLines: true });
  expect(shown).toBe(`${"a<U+202E>\n".repeat(4_000)}${"a\ufffd\n".repeat(1_000)}`);
});

test("counts what is left of a long run, whole characters before it", () => {
  const eight = "<U+202E>".repeat(8);
  expect(visibleText("\u202e".repeat(8))).toBe(eight);
  expect(visibleText(`a${"\u202e".repeat(350_000)}b`)).toBe(`a${eight}<349992 more>b`);
  expect(visibleText("\u{E0041}".repeat(9))).toBe(`${"<U+E0041>".repeat(8)}<2 more>`);
});
