import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { compactJson, isStorableText, type JsonScan, memberText, scanJson } from "../../src/core/json.ts";
import { runsOf, SEED } from "../support/long.ts";

console.log(`json: seed ${SEED}`);

const bytesOf = (text: string) => new TextEncoder().encode(text);

const scan = (text: string) => scanJson(bytesOf(text));

/** What is stored of a body, by the way that its scan asks for. */
function textOf(text: string): string {
  const found = scan(text);
  const value: unknown = JSON.parse(text);
  return memberText({ value: [value], text: `[${text}]`, scan: found === "plain" ? "plain" : "exact" }, 0);
}

/** Lists and objects in turn, so deep. */
function nested(depth: number): string {
  const opening = Array.from({ length: depth }, (_, at) => (at % 2 === 0 ? '{"a":' : "["));
  const closeWithAnswer = opening.map((text) => (text === "[" ? "]" : "}"));
  return `${opening.join("")}1${closeWithAnswer.toReversed().join("")}`;
}

/** One object of so many members. */
function wide(members: number): string {
  return `{${Array.from({ length: members }, (_, at) => `"m${at}":${at}`).join(",")}}`;
}

describe("a JSON text is bounded from its bytes", () => {
  test.each<[string, string, JsonScan]>([
    ["lists, 64 deep", `${"[".repeat(64)}${"]".repeat(64)}`, "plain"],
    ["lists, 65 deep", `${"[".repeat(65)}${"]".repeat(65)}`, "too_deep"],
    ["objects and lists, 64 deep", nested(64), "plain"],
    ["objects and lists, 65 deep", nested(65), "too_deep"],
    ["lists, 100,000 deep and never closed", "[".repeat(100_000), "too_deep"],
    ["a thousand lists beside each other", `[${"[],".repeat(999)}[]]`, "plain"],
    ["10,000 members", wide(10_000), "plain"],
    ["10,001 members", wide(10_001), "too_many_members"],
    ["10,000 members in two objects", `[${wide(5_000)},${wide(5_000)}]`, "plain"],
    ["10,001 members in two objects", `[${wide(5_000)},${wide(5_001)}]`, "too_many_members"],
    ["brackets in a string", `["${"[{".repeat(100)}"]`, "plain"],
    ["brackets in a name", `{"${"[{".repeat(100)}":1}`, "plain"],
    ["brackets behind an escaped quote", `["\\"${"[".repeat(100)}"]`, "plain"],
    ["brackets behind an escaped backslash", `["\\\\"${",[".repeat(64)}`, "too_deep"],
    ["brackets behind a backslash and an escaped quote", `["\\\\\\"${"[".repeat(100)}"]`, "plain"],
    ["colons in strings", `["${":".repeat(20_000)}"]`, "plain"],
    ["a string that never ends", `["${"[".repeat(100)}`, "plain"],
    ["a string that ends in a backslash", '["\\', "plain"],
    ["nothing", "", "plain"],
    ["a byte-order mark", '\ufeff{"a":1}', "plain"],
    ["characters of many bytes", '{"ключ":"🗝️"}', "plain"],
  ])("%s", (_name, text, told) => {
    expect(scan(text)).toBe(told);
  });

  test("whose bound of members the caller may set", () => {
    expect(scanJson(bytesOf('{"a":1,"b":2}'), 2)).toBe("plain");
    expect(scanJson(bytesOf('{"a":1,"b":2}'), 1)).toBe("too_many_members");
    expect(scanJson(bytesOf(wide(20_000)), Infinity)).toBe("plain");
  });

  test("that may be anything: the scan never throws", () => {
    const garbage = fc.array(fc.constantFrom(...bytesOf('"\\{}[]:,-+.eE019tn \n'), 0x00, 0x80, 0xff), {
      maxLength: 300,
    });
    const anything = fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      garbage.map((bytes) => new Uint8Array(bytes)),
    );
    const property = fc.property(anything, (bytes) => {
      expect(["too_deep", "too_many_members", "plain", "exact"]).toContain(scanJson(bytes));
    });
    fc.assert(property, { seed: SEED, numRuns: runsOf(5_000) });
  });

  test("whose members are counted as a parser would, whatever stands in its strings", () => {
    const property = fc.property(fc.jsonValue({ maxDepth: 5, stringUnit: "binary" }), (value) => {
      const bytes = bytesOf(JSON.stringify(value));
      const members = membersOf(value);
      expect(scanJson(bytes, members)).not.toBe("too_many_members");
      if (members > 0) expect(scanJson(bytes, members - 1)).toBe("too_many_members");
    });
    fc.assert(property, { seed: SEED, numRuns: runsOf(1_000) });
  });
});

function membersOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const inner = Object.values(value).reduce<number>((sum, member) => sum + membersOf(member), 0);
  return inner + (Array.isArray(value) ? 0 : Object.keys(value).length);
}

describe("a number", () => {
  test.each<[string, JsonScan]>([
    ["0", "plain"],
    ["7", "plain"],
    ["-1", "plain"],
    ["-10", "plain"],
    ["123456789012345", "plain"],
    ["1234567890123456", "exact"],
    ["9007199254740993", "exact"],
    ["12345678901234567890", "exact"],
    ["-12345678901234567890", "exact"],
    ["-0", "exact"],
    ["-0.0", "exact"],
    ["0.1", "exact"],
    ["1.0", "exact"],
    ["1.10", "exact"],
    ["1e2", "exact"],
    ["1E+2", "exact"],
    ["1e-400", "exact"],
    ["1e999", "exact"],
    ["-1e999", "exact"],
    [`0.${"3".repeat(40)}`, "exact"],
  ])("%s comes back as it was written, wherever it stands", (number, told) => {
    for (const text of [
      number,
      `[${number}]`,
      `{"a":${number}}`,
      `[${number},${number},"${number}",{"b":[${number}]}]`,
    ]) {
      expect(scan(text)).toBe(told);
      expect(compactJson(text)).toBe(text);
      expect(textOf(text)).toBe(text);
    }
  });

  test("in a string or a name is text", () => {
    const text = '{"1.0":"-0","1e5":"12345678901234567890"}';
    expect(scan(text)).toBe("plain");
    expect(textOf(text)).toBe(text);
  });

  test("beside a word keeps it from nothing", () => {
    expect(scan("[1,true,false,null,2]")).toBe("plain");
  });
});

/** A JSON text as `JSON.stringify` would space it, with numbers as anybody might write them. */
const anyJson = fc.letrec<{ value: string }>((tie) => {
  const number = fc.oneof(
    fc.integer().map(String),
    fc.stringMatching(/^-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?$/),
  );
  const words = fc.oneof(
    fc.string({ unit: "binary", maxLength: 12 }),
    fc.constantFrom("\ud800", '"', "\\", "{[:", "\0"),
  );
  const text = words.map((word) => JSON.stringify(word));
  // Names that are whole numbers are put first by every engine; all others keep their order.
  const names = fc
    .oneof(words, fc.constantFrom("__proto__", "constructor", "toString", ""))
    .filter((name) => !/^\d+$/.test(name));
  const members = fc.uniqueArray(fc.tuple(names, tie("value")), { maxLength: 5, selector: ([name]) => name });
  return {
    value: fc.oneof(
      { maxDepth: 6, withCrossShrink: true },
      fc.constantFrom("null", "true", "false"),
      number,
      text,
      fc.array(tie("value"), { maxLength: 5 }).map((items) => `[${items.join(",")}]`),
      members.map((pairs) => `{${pairs.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(",")}}`),
    ),
  };
}).value;

describe("a value", () => {
  test("is stored as the text that it came from", () => {
    const property = fc.property(anyJson, (text) => {
      expect(textOf(text)).toBe(text);
    });
    fc.assert(property, { seed: SEED, numRuns: runsOf(2_000) });
  });

  test("that the scan calls plain loses nothing by parsing", () => {
    const property = fc.property(anyJson, (text) => {
      if (scan(text) === "plain") expect(JSON.stringify(JSON.parse(text))).toBe(text);
    });
    fc.assert(property, { seed: SEED, numRuns: runsOf(2_000) });
  });

  test("that names __proto__ is data and pollutes nothing", () => {
    const text = '{"__proto__":{"polluted":1.0},"constructor":{"prototype":{"polluted":2}}}';
    expect(textOf(text)).toBe(text);
    expect(Reflect.get({}, "polluted")).toBeUndefined();
  });
});

test("text of ours can be stored unless it holds a NUL or half a character", () => {
  expect(["", "yes", "two\nlines", "🗝️", "\u202e"].filter((text) => !isStorableText(text))).toEqual([]);
  expect(["\0", "a\0b", "\ud83d", "\udd11\ud83d"].filter(isStorableText)).toEqual([]);
});
