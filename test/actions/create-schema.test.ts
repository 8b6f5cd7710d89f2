import { describe, expect, test } from "bun:test";
import { refusalOf, rigCreate } from "./create-rig.ts";

const check = rigCreate();

const URL = `"url":"https://api.example.com/orders"`;

const create = (members: string) => `{${URL}${members === "" ? "" : `,${members}`}}`;

const chars = (count: number, char = "a") => char.repeat(count);

/** The number of the case in hostile.md, the body, and the fields that `details` must name, in any order. */
type Row = readonly [name: string, text: string, fields: readonly string[]];

describe("a create that is refused", () => {
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

  test("with anything else wrong it is validation_error, every issue named", () => {
    const rows: readonly Row[] = [
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
