import { describe, expect, test } from "bun:test";
import { contentTypeProblem, isReadAsUtf8, readMediaType } from "../../src/api/media-type.ts";
import { headerIssues } from "../../src/api/call-headers.ts";

test.each([
  ["body", "APPLICATION/JSON; charset=utf-8"],
  ["body", "application/a.b-c+json ;x=y"],
  ["json", "application/json"],
  ["json", 'Application/Merge-Patch+JSON; charset="UTF-8"'],
  ["form", "application/x-www-form-urlencoded"],
  ["form", "Application/X-WWW-Form-Urlencoded ; charset=utf-8"],
  ["text", "text/csv; charset=utf-8; header=present"],
  ["text", "application/xml"],
  ["text", "application/x-ndjson"],
  ["base64", "image/png"],
  ["base64", "text/plain; charset=iso-8859-1"],
  ["base64", 'multipart/mixed; boundary="a;b=c"'],
] as const)("a Content-Type that fits its body %s: %s", (member, value) => {
  expect(contentTypeProblem(value, member)).toBeNull();
});

/** Whoever approves sees the body as its member says; a target must not be told to read it as something else. */
describe("a Content-Type that contradicts its body is refused", () => {
  test.each([
    ["body", "text/plain"],
    ["body", "application/jsonx"],
    ["body", "application/+json"],
    ["body", "application/json, text/plain"],
    ["body", "application/json; charset=utf-16"],
    ["body", ""],
    ["json", "text/plain"],
    ["json", "application/json; charset=utf-16"],
    ["json", "application/json, text/plain"],
    ["json", "application/json; x=y; charset=utf-8; charset=utf-7"],
    ["json", 'application/json; x="application/x-www-form-urlencoded"'],
    ["form", "application/json"],
    ["form", "multipart/form-data; boundary=x"],
    ["form", "application/x-www-form-urlencoded; charset=iso-8859-1"],
    ["form", "application/x-www-form-urlencoded, application/json"],
    ["form", 'application/x-www-form-urlencoded; type="application/json"'],
    ["text", "application/json"],
    ["text", "TEXT/JSON"],
    ["text", "text/x-json"],
    ["text", "application/vnd.api+json ; charset=utf-8"],
    ["text", "application/json5"],
    ["text", "application/x-www-form-urlencoded"],
    ["text", "multipart/form-data; boundary=x"],
    ["text", "text/plain; charset=utf-16"],
    ["text", "text/plain; charset=utf-8; charset=utf-16"],
    ["text", "text/plain; charset*=utf-8''utf-16"],
    ["text", 'text/plain; charset="utf\\-16"'],
    ["text", "text/plain, application/json"],
    ["text", "text/plain; application/json"],
    ["text", 'text/plain; type="application/json"'],
    ["text", "text/plain;application/json=1"],
    ["text", 'text/plain; a="; charset=utf-16"'],
    ["text", ""],
    ["text", "text"],
    ["text", "text/"],
    ["text", "text/plain;"],
    ["base64", "application/json"],
    ["base64", "application/x-www-form-urlencoded; charset=utf-8"],
    ["base64", 'multipart/related; type="application/json"; boundary=x'],
  ] as const)("%s: %s", (member, value) => {
    expect(contentTypeProblem(value, member)).not.toBeNull();
  });

  test("and so is one beside another spelling of its name", () => {
    const headers = { "Content-Type": "text/plain", Content_Type: "text/html", "content.type": "text/css" };
    expect(headerIssues(headers, "text", "agent").map(({ field }) => field)).toEqual([
      "headers.Content_Type",
      "headers.content.type",
    ]);
  });

  test("a name in another spelling has the same rules", () => {
    expect(headerIssues({ Content_Type: "application/json" }, "text", "agent")).toHaveLength(1);
  });
});

test("a long header takes linear time", () => {
  for (const value of [
    `text/plain${" ".repeat(8_000)}x`,
    `text/plain${";".repeat(8_000)}`,
    `a/b;${'"'.repeat(8_000)}`,
  ]) {
    expect(contentTypeProblem(value, "text")).not.toBeNull();
  }
});

test("bytes are shown as UTF-8 only where their target reads them so", () => {
  const types = ["text/plain", "text/plain; charset=utf-8", "text/plain; charset=utf-7", "application/octet-stream"];
  expect(types.map((type) => isReadAsUtf8(type))).toEqual([true, true, false, true]);
});

test.each<[string, string, readonly string[]]>([
  ["application/json", "application/json", []],
  ["Application/JSON; Charset = UTF-8 ", "application/json", ["utf-8"]],
  ["application/json ;charset=utf-8", "application/json ", ["utf-8"]],
  ['application/json;charset="utf-8";charset=latin1', "application/json", ["utf-8", "latin1"]],
  ['application/json; note="a;charset=latin1"', "application/json", []],
  ['application/json; note="a\\";charset=latin1"', "application/json", []],
  ['application/json; charset="', "application/json", ['"']],
  ["application/json; charset", "application/json", [""]],
  ["application/json; charset==utf-8", "application/json", ["=utf-8"]],
  ["application/jsonx", "application/jsonx", []],
  ["", "", []],
])("a media type is read %p", (header, essence, charsets) => {
  expect(readMediaType(header)).toEqual({ essence, charsets });
});
