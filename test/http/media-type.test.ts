import { expect, test } from "bun:test";
import { readMediaType } from "../../src/api/media-type.ts";

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
