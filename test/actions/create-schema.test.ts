import { describe, expect, test } from "bun:test";
import { aRequest } from "../support/factory.ts";
import { words } from "../support/words.ts";
import { refusalOf, rigCreate } from "./create-rig.ts";

const check = rigCreate();

const URL = `"url":"https://api.example.com:8443/orders"`;

const create = (members: string) => `{${URL}${members === "" ? "" : `,${members}`}}`;

const chars = (count: number, char = "a") => char.repeat(count);

/** The number of the case in hostile.md, the body, and the fields that `details` must name, in any order. */
type Row = readonly [name: string, text: string, fields: readonly string[]];

describe("a create that is accepted", () => {
  test("has the defaults of the contract", () => {
    expect(check(create(""))).toEqual({
      sync: false,
      reason: null,
      credential: null,
      overdue: null,
      request: { ...aRequest({ url: "https://api.example.com:8443/orders" }), body: null },
    });
  });

  test("carries everything that it was given", () => {
    const { request, sync, reason } = check(
      create(
        `"method":"PUT","body":{"a":[1,"x",null]},"headers":{"X-A":"b"},"dedupe":"k 1","retries":100,` +
          `"on_unknown":"stop","approve":true,"notify":{"email":"ann@example.com"},"callback":"https://cb.example/x","reason":"Agreed."`,
      ),
      { idempotencyKey: "order-7" },
    );
    expect({ sync, reason }).toEqual({ sync: false, reason: "Agreed." });
    expect(request).toEqual({
      url: "https://api.example.com:8443/orders",
      hostname: "api.example.com",
      host: "api.example.com:8443",
      method: "PUT",
      body: `{"a":[1,"x",null]}`,
      headers: { "X-A": "b" },
      dedupe: "k 1",
      idempotencyKey: "order-7",
      retries: 100,
      onUnknown: "stop",
      approve: true,
      callback: "https://cb.example/x",
      notifyEmail: "ann@example.com",
      title: null,
      expiresAt: null,
      extras: { reason: "Agreed." },
    });
  });

  test("counts what is null as absent, in every field of ours", () => {
    const names = words("method body headers dedupe retries on_unknown approve sync notify callback");
    const nulls = names.map((name) => `"${name}":null`).join(",");
    expect(check(create(nulls))).toEqual(check(create("")));
    // B97
    expect(check(create(`"method":"GET","body":null`)).request.body).toBeNull();
    // Inside `body` null is data.
    expect(check(create(`"body":{"a":null}`)).request.body).toBe(`{"a":null}`);
  });

  test("may name somebody to notify without being held", () => {
    // B98
    expect(check(create(`"notify":{"email":"ann@example.com"}`)).request).toMatchObject({
      approve: false,
      notifyEmail: "ann@example.com",
    });
  });

  test.each([
    [`k1`, "k1"],
    [`"k1"`, "k1"],
    [`"a\\"b\\\\c"`, `a"b\\c`],
    [`"k1`, `"k1`],
    [`"a"b"`, `"a"b"`],
    [`a, b`, "a, b"],
  ])("takes the Idempotency-Key %s as %s", (header, key) => {
    expect(check(create(""), { idempotencyKey: header }).request.idempotencyKey).toBe(key);
  });
});

describe("a create that is refused", () => {
  test("says which setting would allow a private target, and that none allows the others", () => {
    const wordsOf = (host: string) => {
      try {
        check(`{"url":"http://${host}/"}`);
      } catch (error) {
        return JSON.stringify(error);
      }
      return "";
    };
    for (const host of ["10.1.2.3", "127.0.0.1", "billing.internal"]) {
      expect(wordsOf(host)).toContain("ALLOWED_PRIVATE_TARGETS");
    }
    expect(wordsOf("169.254.169.254")).toContain("no setting opens it");
  });

  test("with anything else wrong it is validation_error, every issue named", () => {
    const rows: readonly Row[] = [
      ["B73 nested", create(`"notify":{"email":"a@b.example","cc":"x"}`), ["notify.cc"]],
      ["B73 null", create(`"urll":null,"retries":null`), ["urll"]],
      ["B76", create(`"method":"GET","body":{"a":1}`), ["body"]],
      ["B76 empty", create(`"method":"GET","body":{}`), ["body"]],
      ["B80", create(`"notify":{}`), ["notify.email"]],
      ["B80 null", create(`"notify":{"email":null}`), ["notify.email"]],
    ];
    for (const [name, text, fields] of rows) {
      expect(
        refusalOf(() => check(text)),
        name,
      ).toEqual({ code: "validation_error", fields });
    }
  });

  test("says where a body belongs that is no object", () => {
    for (const body of [`"{}"`, "[1]", "7", "true"]) {
      expect(() => check(create(`"body":${body}`))).toThrow(
        expect.objectContaining({
          issues: [
            {
              field: "body",
              message: "Must be a JSON object. Give a text as text, and any other JSON value as json.",
            },
          ],
        }),
      );
    }
  });

  test("with an Idempotency-Key or a dedupe key that is empty or too long it is validation_error", () => {
    for (const idempotencyKey of ["", `""`, chars(256)]) {
      const refused = refusalOf(() => check(create(`"retries":0`), { idempotencyKey }));
      expect(refused).toEqual({ code: "validation_error", fields: ["retries", "Idempotency-Key"] });
    }
    for (const dedupe of ["", chars(256)]) {
      const refused = refusalOf(() => check(create(`"dedupe":"${dedupe}"`)));
      expect(refused).toEqual({ code: "validation_error", fields: ["dedupe"] });
    }
    expect(check(create(`"dedupe":"${chars(255, "~")}"`)).request.dedupe).toBe(chars(255, "~"));
  });

  test("with an Idempotency-Key header that was given twice it is validation_error", () => {
    for (const idempotencyKey of ["a, b", "a, a", `"a", "b"`, ", b", "a, "]) {
      const refused = refusalOf(() => check(create(`"retries":0`), { idempotencyKey, isKeyHeader: true }));
      expect(refused).toEqual({ code: "validation_error", fields: ["retries", "Idempotency-Key"] });
    }
    const keys = ["a,b", `"a, b"`, String.raw`"a\"b, c"`];
    const taken = keys.map((idempotencyKey) => check(create(""), { idempotencyKey, isKeyHeader: true }).request);
    expect(taken.map((request) => request.idempotencyKey)).toEqual(["a,b", "a, b", `a"b, c`]);
    // An argument of a tool is one value.
    expect(check(create(""), { idempotencyKey: "a, b" }).request.idempotencyKey).toBe("a, b");
  });

  test("says something about every field that it names, and quotes nothing", () => {
    const text = create(`"secret_canary":"s3cr3t","retries":"s3cr3t","headers":{"Host":"s3cr3t"}`);
    const told: string[] = [];
    try {
      check(text);
    } catch (error) {
      told.push(JSON.stringify(error), String(error));
    }
    expect(told.join()).toContain("secret_canary");
    expect(told.join()).not.toContain("s3cr3t");
  });
});
