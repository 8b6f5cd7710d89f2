import { describe, expect, test } from "bun:test";
import { isUnder, normalPrefix, sentTarget, sentUrl } from "../../src/core/target.ts";
import { words } from "../support/words.ts";

describe("a target is read as it is sent", () => {
  test.each([
    ["https://API.Example.COM./a", "api.example.com", "/a"],
    ["https://api.example.com:443/a/%2e%2E/b", "api.example.com", "/b"],
    ["https://api.example.com:8443/a/../b/./c", "api.example.com:8443", "/b/c"],
    ["https://bücher.example/%70ay", "xn--bcher-kva.example", "/pay"],
    ["https://ａｐｉ.example.com/ü", "api.example.com", "/%C3%BC"],
    ["http://0x7f.1/a", "127.0.0.1", "/a"],
  ])("%s", (url, host, path) => expect(sentTarget(url)).toMatchObject({ host, path, isAmbiguous: false }));

  test("the query without the question mark", () => {
    expect(sentTarget("https://a.example/b?c=%2F;d#e")).toMatchObject({
      path: "/b",
      query: "c=%2F;d",
      isAmbiguous: false,
    });
    expect(sentTarget("https://a.example/b")).toMatchObject({ query: "" });
  });

  test("what is no URL", () => expect(() => sentTarget("ftp://a.example/")).toThrow(TypeError));
});

describe("a prefix", () => {
  const under = (path: string, prefix: string) => {
    const target = sentTarget(`https://a.example${path}`);
    return target !== null && isUnder(target, prefix);
  };

  test.each([
    ["/pay", "/pay", true],
    ["/pay/", "/pay", true],
    ["/pay/1", "/pay", true],
    ["/pay/1", "/pay/", true],
    ["/payments", "/pay", false],
    ["/", "/pay", false],
    ["/PAY", "/pay", false],
    ["/p%61y/1", "/pay", true],
    ["/x/../pay", "/pay", true],
    ["/pay/%2e%2e/admin", "/pay", false],
    ["/anything", "/", true],
    ["/v1/users/7/keys", "/v1/users/*/keys", true],
    ["/v1/users/7/keys/8", "/v1/users/*/keys", true],
    ["/v1/users/keys", "/v1/users/*/keys", false],
    ["/v1/users/7/x/keys", "/v1/users/*/keys", false],
    ["/v1/users/", "/v1/users/*", false],
    ["/v1/users", "/v1/users/*", false],
  ])("%s under %s: %p", (path, prefix, expected) => expect(under(path, prefix)).toBe(expected));

  test.each(
    words(`
    /pay/..;/x /pay%2fx /pay%5Cx /pay/%2ex /pay//x /pay;v=1/x /pay%252f.. /pay%5cx /pay/..%3B/x
    /pay/%c0%ae%c0%ae/x /pay/%E0%80%AE/x /pay/%f0%80%80%ae/x /pay%0ax /pay%zz /pay%3Fx /pay%23x
  `),
  )("%s is under none", (path) => {
    expect(sentTarget(`https://a.example${path}`)?.isAmbiguous).toBe(true);
    for (const prefix of ["/", "/pay", "/*"]) expect(under(path, prefix)).toBe(false);
  });

  test("is written as paths are sent", () => {
    expect(normalPrefix("/v1/Bücher/%61")).toBe("/v1/B%C3%BCcher/a");
    expect(normalPrefix("/v1/users/*/keys")).toBe("/v1/users/*/keys");
    for (const text of ["", "pay", "//pay", "/a;b", "/a%2fb", "/a?b", "/a#b", "/a b", "/a\\b", "https://a.example/b"]) {
      expect(normalPrefix(text)).toBeNull();
    }
  });
});

test.each([
  ["a name in letters that may pass for others", "https://exаmple.com/x", "https://xn--exmple-4nf.com/x"],
  ["full-width letters", "http://ｅxample.com/", "http://example.com/"],
  ["an address in another spelling", "http://0x7f000001/", "http://127.0.0.1/"],
  ["capitals, and the scheme's own port", "HTTPS://API.Example.com:443/A", "https://api.example.com/A"],
  ["what is not seen in a path", "https://example.com/\u202eexe", "https://example.com/%E2%80%AEexe"],
  ["dots that lead elsewhere", "https://example.com/safe/../admin", "https://example.com/admin"],
  ["a fragment, which is not sent", "https://example.com/a?b=c#approved", "https://example.com/a?b=c"],
])("a sent URL is the parser's reading of %s", (_what, url, sent) => {
  expect(sentUrl(url)).toBe(sent);
});

test("a sent URL that is none is left as it is", () => {
  expect(sentUrl("nonsense")).toBe("nonsense");
});
