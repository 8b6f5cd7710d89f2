import { describe, expect, test } from "bun:test";
import { methodOverrides, namedMethods, OTHER_METHOD } from "../../src/core/method-overrides.ts";
import { aRequest } from "../support/factory.ts";
import { quickestMs } from "../support/core.ts";
import { GROWTH_MAX, growthOf } from "../support/growth.ts";

type Members = Parameters<typeof aRequest>[0];

const form = (body: string): Members => ({ body, extras: { bodyKind: "form" } });

const json = (body: string): Members => ({ body });

const multipart = (text: string): Members => ({
  body: Buffer.from(text).toString("base64"),
  extras: { bodyKind: "base64" },
  headers: { "Content-Type": "multipart/form-data; boundary=b" },
});

const part = (disposition: string, value: string, newline = "\r\n") =>
  ["--b", `Content-Disposition: form-data; ${disposition}`, "", value, "--b--", ""].join(newline);

const url = (query: string): Members => ({ url: `https://api.example.com/orders/7?${query}`, body: null });

describe("another method is found in", () => {
  test.each<[string, Members]>([
    ["the query", url("_method=DELETE")],
    ["any case", url("a=1&_METHOD=delete")],
    ["a name in codes", url("%5Fm%65thod=D%45LETE")],
    ["a name as PHP reads it", url("+.method%5B%5D=DELETE")],
    ["a query with semicolons", url("a=1;_method=DELETE")],
    ["the second of two", url("_method=PUT&_method=DELETE")],
    ["_HttpMethod", url("_HttpMethod=DELETE")],
    ["$httpMethod", url("$httpMethod=DELETE")],
    ["$httpMethod in codes", url("%24httpMethod=DELETE")],
    ["a parameter that is named like the header", url("X-HTTP-Method-Override=DELETE")],
    ["the parameter method", url("access_token=t&method=delete")],
    ["a field of a form", form("a=1&_method=Delete")],
    ["a field that is named like the header", form("X-HTTP-Method-Override=DELETE")],
    ["a member", json('{"id":7,"_method":"DELETE"}')],
    ["a member with an escaped name", json('{"\\u005fmethod":"DELETE"}')],
    ["a member of other case", json('{"_HTTPMETHOD":" delete "}')],
    ["a member that is a list", json('{"_method":["PUT","DELETE"]}')],
    ["a member of json", { ...json('{"$httpMethod":"DELETE"}'), extras: { bodyKind: "json" } }],
    ["a part", multipart(part('name="_method"', "DELETE"))],
    ["a part without quotes", multipart(part("name=_method", "delete", "\n"))],
    ["a part with codes, before a header", multipart(part("filename=x; name*=utf-8''%5Fmethod\r\nX-A: b", "DELETE"))],
    ["a part whose header is folded", multipart(part('\r\n name="_method"', "DELETE"))],
    ["a header", { headers: { "X-Override-HTTP-Method": "DELETE" } }],
    ["a header of other spelling", { headers: { x_request_verb: " delete" } }],
    ["a header in quotes", { headers: { "X-Foo-Method": '"DELETE"' } }],
    ["a header of other quotes", { headers: { "X-Foo-Method": "'delete'" } }],
    ["a header with a list", { headers: { "X-Foo-Method": "POST, DELETE" } }],
    ["a header with a list without spaces", { headers: { "X-HTTP-Method-Override": "post,delete" } }],
    ["a header with a parameter", { headers: { "X-Foo-Verb": "DELETE;q=1" } }],
    ["the parameter method in quotes", url("method=%22DELETE%22")],
    ["the parameter method with a list", url("method=POST,DELETE")],
    ["a parameter with an index", url("_method[0]=DELETE")],
    ["a member that is a list with more than texts", json('{"_method":[7,"DELETE"]}')],
  ])("%s", (_name, members) => {
    const found = methodOverrides(aRequest(members));
    expect(found.map(({ method }) => method)).toContain("DELETE");
    expect(namedMethods(aRequest({ ...members, method: "POST" }))).toContain("POST");
  });

  test("a value that is no known method, which counts as none that is allowed", () => {
    for (const members of [
      url("_method=sk_live_0123456789"),
      json('{"_method":"PURGE"}'),
      json('{"_method":{"value":"DELETE"}}'),
      json('{"_method":[["DELETE"]]}'),
      json('{"_method":true}'),
      json('{"X-HTTP-Method":7}'),
      form("_method=%00"),
      { headers: { "X-Tunneled-Method": "D3LETE" } },
    ]) {
      expect(methodOverrides(aRequest(members))).toHaveLength(1);
    }
    expect(JSON.stringify(methodOverrides(aRequest(url("_method=sk_live_0123456789"))))).not.toContain("sk_live");
  });

  test("no header of another subject", () => {
    for (const headers of [
      { "X-Shipping-Method": "Post NL" },
      { "X-Payment-Method": "card" },
      { "X-Verbose": "trace" },
    ] as const) {
      expect(methodOverrides(aRequest({ headers }))).toEqual([]);
    }
  });

  test("its part, in words", () => {
    const places = [
      url("_method=PUT"),
      form("_method=PUT"),
      json('{"_method":"PUT"}'),
      { headers: { "X-Verb": "PUT" } },
    ];
    expect(places.map((members) => methodOverrides(aRequest(members))[0]?.place)).toEqual([
      "parameter _method of the URL",
      "field _method of the form",
      "member _method of the body",
      "header X-Verb",
    ]);
    expect(methodOverrides(aRequest(multipart(part('name="_method"', "PUT"))))[0]?.place).toBe(
      "part _method of the body",
    );
  });
});

test.each<[string, Members]>([
  ["a usual request", json('{"order":7,"payment_method":"card","method":"tools/call","http_method":"DELETE"}')],
  ["a member further down", json('{"order":{"_method":"DELETE"},"list":[{"_method":"DELETE"}]}')],
  ["a list", json('[{"_method":"DELETE"}]')],
  ["a field of a name in brackets", form("order%5B_method%5D=DELETE")],
  ["a field method, of which many forms have one", form("method=delete")],
  ["an empty value", url("_method=&a=_method")],
  ["a member that is null or an empty list", json('{"_method":null,"_Method":[]}')],
  ["a parameter method that names a procedure", url("method=flickr.photos.delete")],
  ["a header that names a procedure", { headers: { "X-Rpc-Method": "orders.delete" } }],
  ["a parameter method that names no method", url("method=flickr.photos.getInfo")],
  ["the fragment", url("a=1#?_method=DELETE")],
  ["the path", { url: "https://api.example.com/_method=DELETE", body: null }],
  ["a header of another meaning", { headers: { "X-Payment-Method": "card", "X-Delete": "delete" } }],
  ["a text", { body: "_method=DELETE", extras: { bodyKind: "text" } }],
  ["bytes", { ...multipart(part('name="_method"', "DELETE")), headers: null }],
  ["a text of JSON", json('"_method"')],
  ["an empty text of JSON", json('""')],
])("no other method is found in %s", (_name, members) => {
  expect(methodOverrides(aRequest(members))).toEqual([]);
});

test("a megabyte is searched in linear time", () => {
  const bodies: readonly ((size: number) => Members)[] = [
    (size) => json(`{"method":"${"x".repeat(size)}","_method":"PUT"}`),
    (size) => json(`{${Array.from({ length: size / 100 }, (_, at) => `"method${at}":"${"y".repeat(90)}"`).join(",")}}`),
    (size) => form("_method=".repeat(size / 8)),
    (size) => multipart("content-disposition:".repeat(size / 40)),
    (size) => multipart(`content-disposition: ${"name=".repeat(size / 8)}`),
    (size) => multipart(`content-disposition:${"\r\n ".repeat(size / 6)}`),
  ];
  for (const body of bodies) {
    const search = (size: number) => {
      const request = aRequest(body(size));
      return () => methodOverrides(request);
    };
    expect(growthOf(search, 250_000)).toBeLessThanOrEqual(GROWTH_MAX);
  }
});

test.each<[string, Members]>([
  ["parts that name one", multipart("content-disposition:;name=_method\n\nPUT\n".repeat(18_000))],
  ["parts with codes in their names", multipart("content-disposition:;name=%5fa\n\nPUT\n".repeat(20_000))],
  ["items of a list", json(`{"_method":[${Array.from({ length: 100_000 }, (_, at) => `"m${at}"`).join(",")}]}`)],
])("a body full of %s counts as one of an unknown method, and is not read to its end", (_name, members) => {
  const request = aRequest(members);
  expect(methodOverrides(request).at(-1)?.method).toBe(OTHER_METHOD);
  // Read to its end it took 40 ms and more, several times for each create.
  expect(quickestMs(20, () => methodOverrides(request))).toBeLessThan(20);
});

test("a name with more in it than any target leaves out is none", () => {
  expect(methodOverrides(aRequest(json(`{"_${"[".repeat(1_000)}method":"DELETE"}`)))).toEqual([]);
  expect(
    methodOverrides(aRequest(json(`{"${" ".repeat(1_000)}_method\\u0000${"x".repeat(1_000)}":"DELETE"}`))),
  ).toEqual([{ method: "DELETE", place: "member method of the body" }]);
  expect(methodOverrides(aRequest(multipart(part(String.raw`name="_m\ethod"`, "PUT"))))).toHaveLength(1);
});

test("a list names each method once, however long it is", () => {
  const values = Array.from({ length: 100_000 }, (_, at) => (at % 2 === 0 ? '"DELETE"' : `"m${at}"`));
  const found = methodOverrides(aRequest(json(`{"_method":[${values.join(",")}]}`)));
  expect(found.map(({ method }) => method)).toEqual(["DELETE", OTHER_METHOD]);
});
