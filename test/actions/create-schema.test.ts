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
    const urls = [
      "example.com/x",
      "/x",
      "//host/x",
      "ftp://a/",
      "file:///etc/passwd",
      "data:,x",
      "javascript:alert(1)",
      "mailto:a@b",
      "http://u:p@host/",
      "http://",
      " http://a.example/",
      "http://a.example/\\n",
      "http://a.example\\\\x",
      "http://a.example:0/",
      "http://a.example:65536/",
      "http://a.example:22/",
      "http://[::1",
      "http://a..b/",
      `http://a.example/${chars(8_193)}`,
    ];
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

  test("with an address that is never allowed it is invalid_url in every spelling", () => {
    const never = [
      "169.254.169.254",
      "2852039166",
      "0xA9FEA9FE",
      "[::ffff:a9fe:a9fe]",
      "0",
      "0.0.0.0",
      "[fd00:ec2::254]",
      "168.63.129.16",
    ];
    for (const host of never) refuses("invalid_url", [[host, `{"url":"http://${host}/"}`, ["url"]]]);
  });

  test("with a private address it is invalid_url unless the address is listed", () => {
    const listed = rigCreate({ allowedPrivateTargets: ["10.1.2.0/24", "100.64.0.1/32", "fd12::/16"] });
    for (const host of ["10.1.2.3", "100.64.0.1", "[fd12::1]"]) {
      const text = `{"url":"http://${host}/"}`;
      refuses("invalid_url", [[host, text, ["url"]]]);
      expect(listed(text).request.url).toBe(`http://${host}/`);
    }
  });

  test("with a loopback name or address it is invalid_url unless loopback is allowed", () => {
    const open = rigCreate({ loopbackAllowed: true });
    for (const host of ["127.0.0.1", "localhost", "localhost.", "foo.localhost"]) {
      const text = `{"url":"http://${host}/"}`;
      refuses("invalid_url", [[host, text, ["url"]]]);
      expect(open(text).request.url).toBe(`http://${host}/`);
    }
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
      ["B72 null", "null", [""]],
      ["B72 list", "[]", [""]],
      ["B72 string", `"x"`, [""]],
      ["B72 number", "1", [""]],
      ["B73", create(`"urll":"x"`), ["urll"]],
      ["B73 nested", create(`"notify":{"email":"a@b.example","cc":"x"}`), ["notify.cc"]],
      ["B73 null", create(`"urll":null,"retries":null`), ["urll"]],
      ["B74", create(`"__proto__":{"approve":true}`), ["__proto__"]],
      ...["get", "HEAD", "TRACE", ""].map((method): Row => ["B75", create(`"method":"${method}"`), ["method"]]),
      ["B76", create(`"method":"GET","body":{"a":1}`), ["body"]],
      ["B76 empty", create(`"method":"GET","body":{}`), ["body"]],
      ["B77 list", create(`"body":[1]`), ["body"]],
      ["B77 string", create(`"body":"x"`), ["body"]],
      ...["0", "101", "5.5", `"5"`, "1e999"].map((retries): Row => [
        "B78",
        create(`"retries":${retries}`),
        ["retries"],
      ]),
      ["B79", create(`"approve":1`), ["approve"]],
      ["B80", create(`"notify":{}`), ["notify.email"]],
      ["B80 null", create(`"notify":{"email":null}`), ["notify.email"]],
      ["sync no boolean", create(`"sync":"yes"`), ["sync"]],
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

  test("with a malformed address for the mail it is validation_error", () => {
    const addresses = [
      "ann",
      "@b.example",
      "a@",
      "a@b@c.example",
      "a@b.example,c@d.example",
      "a b@c.example",
      "a@b..c",
    ];
    const rows = [...addresses, `"a\\r\\nBcc: x"@b.example`, `${chars(250)}@b.ex`].map((email): Row => [
      "B81",
      create(`"notify":{"email":${JSON.stringify(email)}}`),
      ["notify.email"],
    ]);
    refuses("validation_error", rows);
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
    const many = (count: number) => Array.from({ length: count }, (_, at) => `"X-${at}":"v"`).join(",");
    refuses("validation_error", [
      ["B83", create(`"headers":{"A":1,"B":null,"C":"c"}`), ["headers.A", "headers.B"]],
      ["B84", create(`"headers":{"A":"a\\r\\nB: b","N":"\\u0000"}`), ["headers.A", "headers.N"]],
      ["B85", create(`"headers":{"":"x","A B":"x","A:":"x"}`), ["headers.", "headers.A B", "headers.A:"]],
      ["B85 value unseen by a pattern", create(`"headers":{"a\\nb":5}`), ["headers.a\nb"]],
      ["B86", create(`"headers":{"A":"1","a":"2"}`), ["headers.a"]],
      ["B87", create(`"headers":{${many(65)}}`), ["headers"]],
      ["B88", create(`"headers":{"A":"${chars(8_193)}"}`), ["headers.A"]],
      ["B88 all", create(`"headers":{"A":"${chars(8_192)}","B":"${chars(8_191)}"}`), ["headers"]],
      ["B89", create(`"headers":{"Host":"x","content_length":"1"}`), ["headers.Host", "headers.content_length"]],
      ["B90", create(`"headers":{"__proto__":"x"}`), ["headers.__proto__"]],
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
