import * as fc from "fast-check";
import { oddText, printable } from "../support/arbitrary.ts";
import type { Operation } from "../support/openapi.ts";
import { type Draft, JSON_TYPE, known, OWNER, searchOf, someKey, wellFormed } from "./draft.ts";

const headerNoise = fc.dictionary(
  fc.constantFrom(
    ..."x-request-id authorization idempotency-key content-type content-encoding accept cookie origin range".split(" "),
    ..."x-http-method-override x-forwarded-for forwarded if-none-match expect last-event-id".split(" "),
  ),
  fc.oneof(
    printable(0, 300).map((text) => text.trim()),
    fc.constantFrom(
      "gzip",
      "text/plain",
      "application/json; charset=utf-16",
      "APPLICATION/JSON",
      OWNER,
      "bearer x",
      "\u00ff\u0080",
      '"k"',
    ),
  ),
  { maxKeys: 4 },
);

const oddId = fc.oneof(
  known("action"),
  known("key"),
  fc.stringMatching(/^(act|key)_[A-Za-z0-9_-]{1,70}$/),
  oddText.map((text) => encodeURIComponent(wellFormed(text))),
  fc.constantFrom(
    "..",
    "%2e%2e",
    "act_a%2Fb",
    "act_a%00",
    "%zz",
    "%ED%A0%80",
    "act_%F0%9F%98%80",
    ";a=b",
    "act_x%0a",
    "'--",
  ),
);
const oddQuery = fc.oneof(
  fc.constant(""),
  fc.string({ unit: "grapheme-ascii", maxLength: 60 }).map((text) => `?${text}`),
  fc
    .dictionary(fc.constantFrom("wait", "limit", "status", "cursor", "origin", "dedupe", "created_after", "x"), oddText)
    .map((pairs) => searchOf(Object.entries(pairs))),
  fc.constantFrom(
    "?",
    "?&&&",
    "?status=failed&status=failed",
    "?wait=1&wait=1",
    "?__proto__=1",
    "?cursor=%ED%A0%80",
    "?host=%00",
    "?created_after=2026-02-30T00:00:00Z",
  ),
);

const oddJson = fc.oneof(
  { weight: 6, arbitrary: fc.jsonValue({ maxDepth: 5 }).map((value) => JSON.stringify(value)) },
  { weight: 2, arbitrary: fc.uint8Array({ maxLength: 200 }) },
  {
    weight: 2,
    arbitrary: fc
      .integer({ min: 1, max: 3_000 })
      .map((depth) => `{"url":"http://127.0.0.1:9/","body":{"a":${"[".repeat(depth)}${"]".repeat(depth)}}}`),
  },
  {
    weight: 2,
    arbitrary: oddText.map((text) =>
      JSON.stringify({
        url: text,
        dedupe: text,
        headers: { [text]: text },
        body: { [text]: text },
        reason: text,
        name: text,
      }),
    ),
  },
  { weight: 2, arbitrary: oddText.map((text) => JSON.stringify({ reason: text })) },
  { weight: 1, arbitrary: fc.constantFrom(...Object.values(hugeBodies())) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      '{"url":',
      "",
      " ",
      "null",
      "[]",
      '{"url":"http://127.0.0.1:9/","retries":1e999}',
      '{"__proto__":{"url":1}}',
      '{"url":"http://127.0.0.1:9/","body":{"\\ud800":"\\udfff","n":-0.0e-5}}',
      '\ufeff{"url":"http://127.0.0.1:9/"}',
      '{"url":"http://127.0.0.1:9/","url":5}',
    ),
  },
);

/** What is long, deep or wide; few of them, since each costs what a thousand others do. */
export function hugeBodies(): Readonly<Record<string, string>> {
  const url = "http://127.0.0.1:9/";
  return {
    "100,000 levels": "[".repeat(100_000),
    "62 levels": `{"url":"${url}","body":${`{"a":`.repeat(62)}{}${"}".repeat(62)}}`,
    "a text of a megabyte": `{"url":"${url}","body":{"a":"${"y".repeat(1_000_000)}"}}`,
    "40,000 long numbers": `{"url":"${url}","body":{"n":[${"12345678901234567890,".repeat(40_000)}1]}}`,
    "340,000 empty lists": `{"url":"${url}","body":{"n":[${"[],".repeat(340_000)}1.0]}}`,
    "260,000 spaced objects": `{"url":"${url}","body":{"n":[${"{ },".repeat(260_000)}1.0]}}`,
    "500,000 numbers": `{"url":"${url}","body":{"n":[${"1,".repeat(500_000)}1]}}`,
    "9,900 members": `{"url":"${url}","body":{${Array.from({ length: 9_900 }, (_, index) => `"k${index}":1`).join()}}}`,
    "9,900 unknown members": `{"url":"${url}",${Array.from({ length: 9_900 }, (_, index) => `"k${index}":1`).join()}}`,
    "9,900 bad headers": `{"url":"${url}","headers":{${Array.from({ length: 9_900 }, (_, index) => `"k${index}":"\\n"`).join()}}}`,
    "an address of 800 kB": `{"url":"${url}","notify":{"email":"${"a.".repeat(400_000)}@b"}}`,
    "a URL of 800 kB": `{"url":"${url}${"é".repeat(400_000)}"}`,
    "100,000 NULs": `{"reason":"${"\\u0000".repeat(100_000)}"}`,
    "a name of a megabyte": `{"name":"${"x".repeat(1_048_000)}","role":"owner"}`,
    "a text in place of an object": `"${"z".repeat(1_048_575)}"`,
    "white space over the bound": " ".repeat(1_048_577),
  };
}

/** What nobody means well by: odd methods, paths, ids, queries, headers and bodies of an operation. */
export function hostile(operation: Operation): fc.Arbitrary<Draft> {
  const methods = fc.constantFrom(
    ...Array.from({ length: 6 }, () => operation.method),
    "GET",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "HEAD",
    "OPTIONS",
  );
  const path = fc.oneof(
    { weight: 6, arbitrary: oddId.map((id) => operation.path.replace("{id}", id)) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        "/",
        "//",
        "/v1",
        "/v1/",
        "/v1/nothing",
        "/V1/actions",
        "/v1//actions",
        "/%76%31/actions",
        "/v1/actions/x/y/z",
        "/v1/actions/",
        "/r/x",
        "/health/",
      ),
    },
    { weight: 1, arbitrary: fc.webPath() },
  );
  const head = fc.tuple(fc.option(someKey, { freq: 12 }), fc.nat({ max: 4 }), headerNoise);
  return fc
    .record({ method: methods, path, query: oddQuery, head, body: fc.option(oddJson, { freq: 3 }) })
    .map((it) => {
      const [key, typed, noise] = it.head;
      const hasBody = it.body !== null && it.method !== "GET" && it.method !== "HEAD";
      return {
        kind: "hostile",
        method: it.method,
        path: it.path + it.query,
        headers: { ...(key === null ? {} : { authorization: key }), ...(typed > 0 ? JSON_TYPE : {}), ...noise },
        body: hasBody ? it.body : null,
        wrong: null,
      };
    });
}
