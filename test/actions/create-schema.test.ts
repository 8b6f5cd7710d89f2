import { describe, expect, test } from "bun:test";
import { refusalOf, rigCreate } from "./create-rig.ts";

const check = rigCreate();

const URL = `"url":"https://api.example.com/orders"`;

const create = (members: string) => `{${URL}${members === "" ? "" : `,${members}`}}`;

const chars = (count: number, char = "a") => char.repeat(count);

/** The number of the case in hostile.md, the body, and the fields that `details` must name, in any order. */
type Row = readonly [name: string, text: string, fields: readonly string[]];

function refuses(code: string, rows: readonly Row[]): void {
  for (const [name, text, fields] of rows) {
    const refused = refusalOf(() => check(text));
    expect({ code: refused.code, fields: refused.fields.toSorted() }, name).toEqual({
      code,
      fields: fields.toSorted(),
    });
  }
}

describe("a create that is refused", () => {
  test("without a url it is missing_field", () => {
    refuses("missing_field", [
      ["B31", "{}", ["url"]],
      ["B32", `{"url":null}`, ["url"]],
      ["B31 with other faults", `{"retries":0,"callback":"ftp:x"}`, ["url", "retries", "callback"]],
    ]);
  });

  test("with a url that no call may go to it is invalid_url, for callback alike", () => {
    const urls = ["/x", "ftp://a/", "http://u:p@host/", `http://a.example/${chars(8_193)}`];
    for (const url of urls) {
      refuses("invalid_url", [
        [url, `{"url":"${url}"}`, ["url"]],
        [`callback ${url}`, create(`"callback":"${url}"`), ["callback"]],
      ]);
    }
    refuses("invalid_url", [
      ["B61", `{"url":7}`, ["url"]],
      ["B61 callback", create(`"callback":["x"]`), ["callback"]],
      ["both", `{"url":"x","callback":"y"}`, ["url", "callback"]],
    ]);
  });

  test("says which setting would allow a private target, and that none allows the others", () => {
    const words = (host: string) => {
      try {
        check(`{"url":"http://${host}/"}`);
      } catch (error) {
        return JSON.stringify(error);
      }
      return "";
    };
    for (const host of ["10.1.2.3", "127.0.0.1", "billing.internal"]) {
      expect(words(host)).toContain("ALLOWED_PRIVATE_TARGETS");
    }
    expect(words("169.254.169.254")).toContain("no setting opens it");
  });

  test("with sync and approve it is invalid_sync, whatever else is wrong", () => {
    refuses("invalid_sync", [
      ["B70", create(`"sync":true,"approve":true`), ["sync"]],
      ["B71", create(`"sync":true,"approve":true,"retries":0`), ["sync", "retries"]],
    ]);
    refuses("invalid_url", [["after the url", `{"url":"x","sync":true,"approve":true}`, ["url", "sync"]]]);
  });

  test("with anything else wrong it is validation_error, every issue named", () => {
    refuses("validation_error", [
      ["B73 nested", create(`"notify":{"email":"a@b.example","cc":"x"}`), ["notify.cc"]],
      ["B73 null", create(`"urll":null,"retries":null`), ["urll"]],
      ...["get", "HEAD", "TRACE", ""].map((method): Row => ["B75", create(`"method":"${method}"`), ["method"]]),
      ["B76", create(`"method":"GET","body":{"a":1}`), ["body"]],
      ["B76 empty", create(`"method":"GET","body":{}`), ["body"]],
      ...["0", "101", "5.5", `"5"`, "1e999"].map((retries): Row => [
        "B78",
        create(`"retries":${retries}`),
        ["retries"],
      ]),
      ["B80", create(`"notify":{}`), ["notify.email"]],
      ["B80 null", create(`"notify":{"email":null}`), ["notify.email"]],
      ["on_unknown", create(`"on_unknown":"ignore"`), ["on_unknown"]],
      ["many", create(`"retries":0,"approve":1,"x":1,"method":"get"`), ["retries", "approve", "x", "method"]],
    ]);
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

  test("with a dedupe key that is no key it is validation_error", () => {
    const keys = [`""`, `"${chars(256)}"`, `"a\\nb"`, `"é"`, "7"];
    refuses(
      "validation_error",
      keys.map((key): Row => ["B82", create(`"dedupe":${key}`), ["dedupe"]]),
    );
    expect(check(create(`"dedupe":"${chars(255, "~")}"`)).request.dedupe).toBe(chars(255, "~"));
  });

  test("with headers that may not go it is validation_error, each header named", () => {
    refuses("validation_error", [
      ["B83", create(`"headers":{"A":1,"B":null,"C":"c"}`), ["headers.A", "headers.B"]],
      ["B86", create(`"headers":{"A":"1","a":"2"}`), ["headers.a"]],
      ["B91", create(`"body":{},"headers":{"Content-Type":"text/plain"}`), ["headers.Content-Type"]],
      ["no object", create(`"headers":["A"]`), ["headers"]],
    ]);
  });

  test("with an Idempotency-Key that is no key it is validation_error", () => {
    for (const idempotencyKey of ["", `""`, chars(256), "a\u00e9", "a\u0001"]) {
      const refused = refusalOf(() => check(create(`"retries":0`), { idempotencyKey }));
      expect(refused).toEqual({ code: "validation_error", fields: ["retries", "Idempotency-Key"] });
    }
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
