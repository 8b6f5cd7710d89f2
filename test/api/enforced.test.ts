import { describe, expect, test } from "bun:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { encodeCursor } from "../../src/api/cursor.ts";
import { checkList, ListParameters } from "../../src/api/list-schemas.ts";
import { checkOrigin } from "../../src/accounts/signing-secrets.ts";
import { headerIssues } from "../../src/api/call-headers.ts";
import { HEADERS_MAX, HEADER_VALUE_BYTES_MAX, URL_CHARS_MAX } from "../../src/core/limits.ts";
import { checkTarget } from "../../src/config/target-policy.ts";
import { loopbackPolicy } from "../support/engine.ts";
import { at, DOCUMENT, inlined, OPERATIONS } from "../support/openapi.ts";

const ajv = new Ajv2020({ strict: false, validateFormats: false });

const operation = (id: string) => at(OPERATIONS.find((one) => one.id === id)?.node);

const create = at(inlined(at(DOCUMENT, "components", "schemas", "CreateAction", "properties")));

const parameter = (id: string, name: string) => {
  const { parameters } = operation(id);
  return at((Array.isArray(parameters) ? parameters : []).find((one) => at(one)["name"] === name));
};

/** Both ways, but for what no schema can say: what the service takes the schema takes, what the schema refuses it refuses. */
const policy = loopbackPolicy();

describe("what is enforced in sentences of its own stands in the schema too:", () => {
  const long = (length: number) => `https://a.example/${"x".repeat(length - "https://a.example/".length)}`;
  test.each([
    ["https://api.example.com/orders?a=1", true],
    ["HTTPS://api.example.com", true],
    ["https://bücher.example/ä", true],
    [long(URL_CHARS_MAX), true],
    [long(URL_CHARS_MAX + 1), false],
    ["api.example.com/x", false],
    ["ftp://api.example.com", false],
    ["http://", false],
    ["http://a.example/a b", false],
    [String.raw`http://a.example\x`, false],
    [" http://a.example/", false],
    ["", false],
  ])("url %p: %p", (url, isFine) => {
    const checked = !("refused" in checkTarget(policy, url));
    const [ofUrl, ofCallback] = [ajv.validate(create["url"] ?? {}, url), ajv.validate(create["callback"] ?? {}, url)];
    expect({ checked, ofUrl, ofCallback }).toEqual({ checked: isFine, ofUrl: isFine, ofCallback: isFine });
  });

  const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`X-${index}`, "1"]));
  test.each([
    ["plain ones", { "X-Order": "7", Accept: "a\tb" }, true],
    ["as many as there may be", many(HEADERS_MAX), true],
    ["one more", many(HEADERS_MAX + 1), false],
    ["a name with a space", { "X A": "1" }, false],
    ["an empty name", { "": "1" }, false],
    ["a line break in a value", { "X-A": "a\nb" }, false],
    ["a value that is not ASCII", { "X-A": "é" }, false],
    ["a long value", { "X-A": "x".repeat(HEADER_VALUE_BYTES_MAX) }, true],
    ["one that is too long", { "X-A": "x".repeat(HEADER_VALUE_BYTES_MAX + 1) }, false],
  ])("headers, %s", (_what, headers, isFine) => {
    const isTaken = headerIssues(headers, null, "owner").length === 0;
    const isDescribed = ajv.validate(create["headers"] ?? {}, headers);
    expect({ isTaken, isDescribed }).toEqual({ isTaken: isFine, isDescribed: isFine });
  });

  test.each([
    ["https://api.example.com", true],
    ["HTTP://127.0.0.1:8080", true],
    ["https://api.example.com/", false],
    ["https://u@api.example.com", false],
    ["api.example.com", false],
  ])("origin %p: %p", (origin, isFine) => {
    const isDescribed = ["getSigningSecret", "rotateSigningSecret"].map((id) =>
      ajv.validate(at(parameter(id, "origin"), "schema"), origin),
    );
    expect({ isTaken: takes(() => checkOrigin(origin)), isDescribed }).toEqual({
      isTaken: isFine,
      isDescribed: [isFine, isFine],
    });
  });

  test.each([
    [encodeCursor("act_01kjwa5v00e7v8c9x2m4n6p8qr"), true],
    ["a cursor", false],
    ["", false],
  ])("cursor %p: %p", (cursor, isFine) => {
    const isDescribed = ajv.validate(at(parameter("listActions", "cursor"), "schema"), cursor);
    expect({ isTaken: takes(() => checkList({ cursor })), isDescribed }).toEqual({
      isTaken: isFine,
      isDescribed: isFine,
    });
  });
});

describe("a generated client that sends every default and validates what it sends", () => {
  test("waits for nothing that it was not told to wait for: wait of a read has none", () => {
    expect(parameter("getAction", "wait")).toMatchObject({ required: false, schema: { minimum: 1, maximum: 120 } });
    expect(at(parameter("getAction", "wait"), "schema")).not.toHaveProperty("default");
    expect(at(parameter("createAction", "wait"), "schema")["default"]).toBe(30);
  });

  test("finds a description of every operation, and the code of its own for one key too many", () => {
    const bare = OPERATIONS.filter(({ node }) => typeof node["description"] !== "string" || node["description"] === "");
    expect(bare.map(({ id }) => id)).toEqual([]);
    const conflict = at(operation("createKey"), "responses", "409", "content", "application/json");
    expect(Object.keys(at(conflict, "examples"))).toEqual(["too_many_keys"]);
  });

  test("is told that no request is refused for its X-Request-Id", () => {
    const id = at(inlined(at(DOCUMENT, "components", "parameters", "X-Request-Id")));
    expect(id).toMatchObject({ required: false });
    expect(String(id["description"])).toContain("replaced");
  });

  test("is shown no word of ours that JSON Schema does not know", () => {
    expect(JSON.stringify(DOCUMENT)).not.toContain("x-enforced");
    expect(Object.keys(ListParameters.properties.cursor)).not.toContain("pattern");
  });
});

function takes(check: () => unknown): boolean {
  try {
    check();
    return true;
  } catch {
    return false;
  }
}
