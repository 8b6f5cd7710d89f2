import { describe, expect, test } from "bun:test";
import { aRequest } from "../support/factory.ts";
import { rigCreate } from "./create-rig.ts";
import { words } from "../support/words.ts";

const check = rigCreate();

const URL = `"url":"https://api.example.com:8443/orders"`;

const create = (members: string) => check(`{${URL},${members}}`);

describe("a create that is accepted", () => {
  test("has the defaults of the contract", () => {
    expect(check(`{${URL}}`)).toEqual({
      sync: false,
      reason: null,
      credential: null,
      request: { ...aRequest({ url: "https://api.example.com:8443/orders" }), body: null },
    });
  });

  test("carries everything that it was given", () => {
    const { request, sync, reason } = check(
      `{${URL},"method":"PUT","body":{"a":[1,"x",null]},"headers":{"X-A":"b"},"dedupe":"k 1","retries":100,` +
        `"on_unknown":"stop","approve":true,"notify":{"email":"ann@example.com"},"callback":"https://cb.example/x","reason":"Agreed."}`,
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
    expect(create(nulls)).toEqual(check(`{${URL}}`));
    // B97
    expect(create(`"method":"GET","body":null`).request.body).toBeNull();
    // Inside `body` null is data.
    expect(create(`"body":{"a":null}`).request.body).toBe(`{"a":null}`);
  });

  test.each(["GET", "POST", "PUT", "PATCH", "DELETE"] as const)("may be a %s", (method) => {
    expect(create(`"method":"${method}"`).request.method).toBe(method);
  });

  test("may name somebody to notify without being held", () => {
    // B98
    expect(create(`"notify":{"email":"ann@example.com"}`).request).toMatchObject({
      approve: false,
      notifyEmail: "ann@example.com",
    });
  });

  test("has its body as it was written, numbers too, and nothing of it pollutes anything", () => {
    const bodies = [
      `{"big":12345678901234567890,"one":1.0,"minus":-0,"e":1e999,"list":[1.50,{"x":2.0}]}`,
      `{"nul":"\\u0000","half":"\\ud800","slash":"\\/"}`,
      `{"__proto__":{"approve":true},"constructor":{"prototype":{"a":1.0}}}`,
    ];
    for (const body of bodies) {
      const written = create(`"body":${body}`).request.body ?? "";
      expect(parts(written)).toEqual(parts(body));
    }
    expect(Object.hasOwn(Object.prototype, "approve")).toBe(false);
    expect(create(`"body":{"big":12345678901234567890,"one":1.0}`).request.body).toBe(
      `{"big":12345678901234567890,"one":1.0}`,
    );
  });

  test.each([
    [`k1`, "k1"],
    [`"k1"`, "k1"],
    [`"a\\"b\\\\c"`, `a"b\\c`],
    [`"k1`, `"k1`],
    [`"a"b"`, `"a"b"`],
    [`a, b`, "a, b"],
  ])("takes the Idempotency-Key %s as %s", (header, key) => {
    expect(check(`{${URL}}`, { idempotencyKey: header }).request.idempotencyKey).toBe(key);
  });
});

/** A JSON text in parts that have to come through: strings as values, numbers as spelled. */
function parts(text: string): readonly string[] {
  const tokens = text.match(/"(?:[^"\\]|\\.)*"|[^\s"]/g) ?? [];
  return tokens.map((token) => (token.startsWith('"') ? JSON.stringify(JSON.parse(token)) : token));
}
