import { describe, expect, test } from "bun:test";
import { DecisionBody } from "../../src/api/action-schemas.ts";
import { bodyCheck } from "../../src/api/check.ts";
import { CreateKeyBody } from "../../src/accounts/key-schemas.ts";
import { refusalOf, rigCreate } from "./create-rig.ts";

const checkCreateKey = bodyCheck(CreateKeyBody);

const checkDecision = bodyCheck(DecisionBody);

const check = rigCreate();

const URL = `"url":"https://api.example.com/"`;

/** A value of each kind that JSON has, and some that other services would take for another one. */
const KINDS = {
  boolean: ["true", "false"],
  number: ["0", "1", "1.5"],
  string: [`""`, `"x"`, `"1"`, `"true"`, `"null"`],
  list: ["[]", "[1]", `["x"]`],
  object: ["{}", `{"0":"x"}`],
} as const;

type Kind = keyof typeof KINDS;

/** The one kind that each field takes, as the spec has it. */
const CREATE: Readonly<Record<string, Kind>> = {
  url: "string",
  method: "string",
  body: "object",
  headers: "object",
  dedupe: "string",
  retries: "number",
  on_unknown: "string",
  approve: "boolean",
  sync: "boolean",
  notify: "object",
  callback: "string",
};

function otherKinds(kind: Kind): readonly string[] {
  return Object.entries(KINDS).flatMap(([other, values]) => (other === kind ? [] : values));
}

describe("a field takes one kind of JSON, and nothing is converted to it:", () => {
  test.each(Object.entries(CREATE))("%s of a create", (field, kind) => {
    for (const value of otherKinds(kind)) {
      const text = field === "url" ? `{"url":${value}}` : `{${URL},"${field}":${value}}`;
      const { fields } = refusalOf(() => check(text));
      expect(fields, value).toEqual([field]);
    }
  });

  test("the address of whom to notify, and every header", () => {
    for (const value of otherKinds("string")) {
      const notify = refusalOf(() => check(`{${URL},"notify":{"email":${value}}}`));
      const header = refusalOf(() => check(`{${URL},"headers":{"X-A":${value}}}`));
      expect([notify.fields, header.fields], value).toEqual([["notify.email"], ["headers.X-A"]]);
    }
    // Absent everywhere else; but there is no header without a value.
    expect(refusalOf(() => check(`{${URL},"headers":{"X-A":null}}`)).fields).toEqual(["headers.X-A"]);
  });

  test("the reason of a decision, and what a key is made of", () => {
    for (const text of otherKinds("string")) {
      const value: unknown = JSON.parse(text);
      expect(refusalOf(() => checkDecision({ reason: value })).fields).toEqual(["reason"]);
      const key = { name: value, role: value, hold: value };
      expect(refusalOf(() => checkCreateKey(key)).fields.toSorted()).toEqual(["hold", "name", "role"]);
    }
  });

  test("an integer may be written as any number with that value", () => {
    const written = ["5", "5.0", "5e0", "0.5e1", "50E-1", "5.000000000000000000000"];
    for (const number of written) expect(check(`{${URL},"retries":${number}}`).request.retries).toBe(5);
    for (const number of ["5.5", "1e999", "-0.0", "1e-5", "100.0000001"]) {
      expect(refusalOf(() => check(`{${URL},"retries":${number}}`)).fields).toEqual(["retries"]);
    }
  });
});

test.each(["extra", "URL", "Url", "__proto__", "constructor", "toString", "hasOwnProperty", "", "url "])(
  "what nobody knows is refused at every level that is ours: %j",
  (name) => {
    const member = `${JSON.stringify(name)}:1`;
    expect(refusalOf(() => check(`{${URL},${member}}`)).fields).toEqual([name]);
    expect(refusalOf(() => check(`{${URL},"notify":{"email":"a@b.example",${member}}}`)).fields).toEqual([
      `notify.${name}`,
    ]);
    expect(refusalOf(() => checkDecision(JSON.parse(`{${member}}`))).fields).toEqual([name]);
    const key = `{"name":"a","role":"agent",${member}}`;
    expect(refusalOf(() => checkCreateKey(JSON.parse(key))).fields).toEqual([name]);
    // Inside `body` nothing is ours.
    expect(check(`{${URL},"body":{${member}}}`).request.body).toBe(`{${member}}`);
  },
);

/** Every character that is not printable ASCII up to U+00FF, and some beyond. */
const ODD = [
  ...Array.from({ length: 0x20 }, (_, code) => String.fromCharCode(code)),
  ...Array.from({ length: 0x81 }, (_, code) => String.fromCharCode(code + 0x7f)),
  "\u2028",
  "\u202e",
  "\ufeff",
  "\ufffd",
  "\ud800",
  "\udfff",
  "😀",
  "\u017f",
  "\u212a",
];

describe("text of ours is printable ASCII:", () => {
  test("keys, names, header names and addresses hold no other character", () => {
    for (const odd of ODD) {
      const text = JSON.stringify(`a${odd}b`);
      const dedupe = refusalOf(() => check(`{${URL},"dedupe":${text}}`));
      const name = refusalOf(() => check(`{${URL},"headers":{${text}:"x"}}`));
      const email = refusalOf(() => check(`{${URL},"notify":{"email":${JSON.stringify(`a${odd}b@c.example`)}}}`));
      const host = refusalOf(() => check(`{${URL},"notify":{"email":${JSON.stringify(`a@b${odd}c.example`)}}}`));
      const idempotencyKey = refusalOf(() => check(`{${URL}}`, { idempotencyKey: `a${odd}b` }));
      const key = refusalOf(() => checkCreateKey({ name: `a${odd}b`, role: "agent" }));
      const refused = [dedupe, name, email, host, idempotencyKey, key].map(({ code, fields }) => [code, ...fields]);
      expect([odd, ...refused]).toEqual([
        odd,
        ["validation_error", "dedupe"],
        ["validation_error", `headers.a${odd}b`],
        ["validation_error", "notify.email"],
        ["validation_error", "notify.email"],
        ["validation_error", "Idempotency-Key"],
        ["validation_error", "name"],
      ]);
    }
  });

  test("a header value may hold a tab beside it", () => {
    for (const odd of ODD.filter((character) => character !== "\t")) {
      const refused = refusalOf(() => check(`{${URL},"headers":{"X-A":${JSON.stringify(`a${odd}b`)}}}`));
      expect(refused.fields, odd).toEqual(["headers.X-A"]);
    }
    expect(check(`{${URL},"headers":{"X-A":"a\\tb"}}`).request.headers).toEqual({ "X-A": "a\tb" });
  });

  test("a reason is any Unicode, new lines too, but neither NUL nor half a character", () => {
    for (const odd of ODD) {
      const reason = `a${odd}b`;
      if (odd !== "\0" && odd.isWellFormed()) {
        expect(checkDecision({ reason }).reason ?? null).toBe(reason);
        expect(check(`{${URL},"reason":${JSON.stringify(reason)}}`).reason).toBe(reason);
      } else {
        expect(refusalOf(() => checkDecision({ reason })).fields).toEqual(["reason"]);
        expect(refusalOf(() => check(`{${URL},"reason":${JSON.stringify(reason)}}`)).fields).toEqual(["reason"]);
      }
    }
  });
});

/** One thing that is wrong, the code that it has when nothing before it is wrong, and the field that it is named by. */
const FAULTS = [
  { code: "missing_field", field: "url", members: [] },
  { code: "invalid_url", field: "url", members: [`"url":"ftp://a.example/"`] },
  { code: "invalid_url", field: "callback", members: [`"callback":7`] },
  { code: "invalid_sync", field: "sync", members: [`"sync":true`, `"approve":true`] },
  { code: "validation_error", field: "retries", members: [`"retries":"5"`] },
  { code: "validation_error", field: "headers.X-A", members: [`"headers":{"X-A":"\\n"}`] },
  { code: "validation_error", field: "notify.email", members: [`"notify":{"email":"nobody"}`] },
  { code: "validation_error", field: "more", members: [`"more":1`] },
  { code: "validation_error", field: "Idempotency-Key", members: [], idempotencyKey: "" },
] as const;

test("of all that is wrong the code is of the first, and details name every field, in every combination", () => {
  for (let chosen = 1; chosen < 2 ** FAULTS.length; chosen += 1) {
    const faults = FAULTS.filter((_, at) => (chosen & (2 ** at)) !== 0);
    // A url is not both absent and wrong.
    if (faults.filter(({ field }) => field === "url").length > 1) continue;
    const members: string[] = faults.flatMap((fault) => [...fault.members]);
    if (!faults.some(({ field }) => field === "url")) members.push(URL);
    const idempotencyKey = faults.some(({ field }) => field === "Idempotency-Key") ? "" : null;
    const refused = refusalOf(() => check(`{${members.join(",")}}`, { idempotencyKey }));
    expect({ code: refused.code, fields: refused.fields.toSorted() }, JSON.stringify(members)).toEqual({
      code: faults[0]?.code ?? "",
      fields: faults.map(({ field }) => field as string).toSorted(),
    });
  }
});

test("what is wrong with the whole is named by nothing, and nothing else is named then", () => {
  for (const text of ["null", "[]", `"x"`, "1", "true"]) {
    expect(refusalOf(() => check(text))).toEqual({ code: "validation_error", fields: [""] });
  }
});
