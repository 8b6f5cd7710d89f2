import { describe, expect, test } from "bun:test";
import Type from "typebox";
import { MadeByParameters } from "../../src/accounts/key-schemas.ts";
import { bodyCheck, compile, withoutNulls } from "../../src/api/check.ts";
import { dateTime, emailSchema, hostSchema, idSchema, key } from "../../src/api/schema-helpers.ts";
import { credentialNameSchema, DecisionBody, RetryBody } from "../../src/api/action-schemas.ts";
import { FILTERS } from "../../src/api/list-schemas.ts";
import { CreateCredentialBody } from "../../src/credentials/schemas.ts";
import { RuleDefinition } from "../../src/rules/schemas.ts";
import { checkOrigin } from "../../src/accounts/signing-secrets.ts";
import { refusalOf } from "../actions/create-rig.ts";
import { words } from "../support/words.ts";

describe("a check", () => {
  const check = compile(
    Type.Object(
      {
        kind: Type.Enum(["a", "b"], { type: "string" }),
        size: Type.Optional(Type.Integer({ minimum: 1 })),
        inner: Type.Optional(Type.Object({ name: Type.String() }, { additionalProperties: false })),
      },
      { additionalProperties: false },
    ),
  );

  test("gives one issue for each field, named as a user writes it", () => {
    expect(check.issues({ size: "5", inner: { "a/b~c": 1 }, more: 1 })).toEqual([
      { field: "kind", message: "Is required." },
      { field: "size", message: "Must be an integer." },
      { field: "inner.name", message: "Is required." },
      { field: "inner.a/b~c", message: "Is unknown. Check its name, or leave it out." },
      { field: "more", message: "Is unknown. Check its name, or leave it out." },
    ]);
    expect(check.issues({ kind: "c" })).toEqual([{ field: "kind", message: "Must be one of a, b." }]);
    expect(check.issues({ kind: "a", size: 0 })).toEqual([{ field: "size", message: "Must be at least 1." }]);
    expect(check.issues([])).toEqual([{ field: "", message: "Must be an object." }]);
  });

  test("speaks of a text in words, not in the validator's own: no expression, no `a email`", () => {
    const text = compile(Type.Object({ email: emailSchema(""), host: hostSchema(""), key: key("") }));
    expect(text.issues({ email: "x", host: "a/b", key: "" })).toEqual([
      { field: "email", message: "Must be an email address." },
      { field: "host", message: "Must be a host name, with or without a port." },
      { field: "key", message: "Must not be empty." },
    ]);
  });

  test.each([
    [{ id: "x" }, Type.Object({ id: idSchema("key", "") }), "Must be an id that begins with key_."],
    [{ secret: "x" }, CreateCredentialBody, "Must have at least 8 characters."],
    [{ name: "xx" }, Type.Object({ name: Type.String({ maxLength: 1 }) }), "Must have at most 1 character."],
    [{ of: ["x"] }, Type.Object({ of: Type.Array(Type.String(), { minItems: 2 }) }), "Must have at least 2 items."],
    [{ of: ["x", "y"] }, Type.Object({ of: Type.Array(Type.String(), { maxItems: 1 }) }), "Must have at most 1 item."],
    [{ created_by: "x" }, MadeByParameters, "Must be the id of a key or person: it begins with key_ or per_."],
    [{ name: "Stripe Live" }, Type.Object({ name: credentialNameSchema }), /^Must be 1 to 63 lower-case letters/],
    [{ header: "X Y" }, CreateCredentialBody, "Is not a header name: use letters, digits and hyphens."],
    [{ scheme: "a b" }, CreateCredentialBody, "Must be one word that begins with a letter, like Token."],
    [{ username: "a:b" }, CreateCredentialBody, "Must not contain a colon or control characters."],
    [{ metadata: ["a b"] }, Type.Object(FILTERS), "Must be a name of metadata, or name:value, like customer:4711."],
    [{ between: { from: "9" } }, RuleDefinition, "Must be a time of day from 00:00 to 24:00, like 09:30."],
    [{ at: "2026-03-04" }, Type.Object({ at: dateTime("") }), /^Must be a date and time with a time zone, like 2026-/],
  ] as const)("says in words what is wrong with %j", (given, schema, message) => {
    const [name = ""] = Object.keys(given);
    const issue = compile<Type.TObject>(schema)
      .issues(given)
      .find(({ field, message: is }) => {
        return field.startsWith(name) && is !== "Is required.";
      });
    expect(issue?.message).toMatch(message);
  });

  test("writes names as they are, slashes and tildes too", () => {
    const map = compile(Type.Object({ map: Type.Object({}, { additionalProperties: Type.String() }) }));
    expect(map.issues({ map: { "a/b~c~1": 1 } })).toEqual([{ field: "map.a/b~c~1", message: "Must be a string." }]);
  });

  test("lists all of them, however many there are", () => {
    const many = Object.fromEntries(Array.from({ length: 9_000 }, (_, at) => [`k${at}`, at]));
    expect(check.issues({ ...many, kind: "a" })).toHaveLength(9_000);
  });

  test("converts nothing, cuts nothing and fills in nothing", () => {
    const value = Object.freeze({ kind: "a", size: 5 });
    expect(check.accepts(value)).toBe(true);
    expect(check.accepts({ kind: "a", size: "5" })).toBe(false);
  });
});

test("known members that are null are dropped, no others, and no name becomes a prototype", () => {
  const given: unknown = JSON.parse(`{"a":null,"b":0,"c":null,"__proto__":{"x":1}}`);
  const left = withoutNulls(given, { a: 1, b: 1 });
  expect(Object.entries(Object(left))).toEqual([
    ["b", 0],
    ["c", null],
    ["__proto__", { x: 1 }],
  ]);
  expect(Object.getPrototypeOf(left)).toBe(Object.prototype);
});

describe("an e-mail address", () => {
  const address = compile(emailSchema("Somebody."));

  test.each(["a@b", "ann.o'neil+tag@mail.example.com", `${"a".repeat(242)}@example.com`])("may be %s", (text) => {
    expect(address.issues(text)).toEqual([]);
  });

  test.each([
    "",
    "a",
    "a@",
    "@b",
    "a@b@c",
    "a@-b",
    "a@b.",
    "a b@c",
    "a@b,c@d",
    '"a b"@c',
    "a\n@b",
    "ä@b",
    `${"a".repeat(243)}@example.com`,
  ])("may not be %j", (text) => expect(address.accepts(text)).toBe(false));
});

describe("a decision", () => {
  const checkDecision = bodyCheck(DecisionBody);
  const checkRetry = bodyCheck(RetryBody);

  test("may be empty, and have a reason in any Unicode", () => {
    for (const said of [{}, { reason: null, run: null }]) expect(checkDecision(said)).toEqual({});
    expect(checkDecision({ reason: "Zu teuer.\n→ 👎" }).reason).toBe("Zu teuer.\n→ 👎");
    expect(checkDecision({ reason: "👎".repeat(1_000) }).reason).toHaveLength(2_000);
    expect(checkRetry({ reason: "👎".repeat(1_000) }).reason).toHaveLength(2_000);
  });

  test("may name a run, and so may a retry", () => {
    for (const check of [checkDecision, checkRetry]) {
      expect(check({ run: 2 })).toEqual({ run: 2 });
      for (const run of [0, -1, 1.5, "1", true])
        expect(refusalOf(() => check({ run }))).toMatchObject({ code: "validation_error", fields: ["run"] });
    }
  });

  test.each([
    [{ reason: "a".repeat(1_001) }, ["reason"]],
    [{ reason: "x", by: "me" }, ["by"]],
    ["why", [""]],
    [null, [""]],
  ])("is refused as %j", (value, fields) => {
    expect(refusalOf(() => checkDecision(value))).toEqual({ code: "validation_error", fields });
  });
});

describe("an origin", () => {
  test.each([
    ["https://api.example.com", "https://api.example.com"],
    ["HTTPS://API.Example.com:443", "https://api.example.com"],
    ["http://127.0.0.1:8080", "http://127.0.0.1:8080"],
    ["http://[::1]:80", "http://[::1]"],
  ])("%s is %s", (text, origin) => expect(checkOrigin(text)).toBe(origin));

  test.each([
    ...words(`
      api.example.com https:// https://a/ https://a/x https://a?x https://a#x ftp://a https://u@a javascript:x
      http://a:99999
    `),
    "",
    "https://a b",
    " https://a",
    "https://a\\b",
    "https://a\n",
  ])("%j is none", (text) => {
    expect(refusalOf(() => checkOrigin(text))).toEqual({ code: "invalid_query", fields: ["origin"] });
  });
});
