import { describe, expect, test } from "bun:test";
import { PARSED_TARGET_CHARS_MAX, PARSED_TARGETS_MAX } from "../../src/core/limits.ts";
import { normalHost, normalTarget, urlOrigin, parseTarget } from "../../src/core/target.ts";
import { words } from "../support/words.ts";

const API = "https://api.example.com";

describe("spellings of one target", () => {
  test.each([
    [`${API}/x`, API],
    ["HTTPS://API.Example.COM/x", API],
    ["https://api.example.com./x", API],
    ["https://api.example.com.:443/x", API],
    ["https://api.example.com:0443/x", API],
    ["https://api。example。com/x", API],
    ["https://%61pi.example.com/x", API],
    ["https://api.example.com:8443/x", `${API}:8443`],
    ["http://api.example.com.:443/x", "http://api.example.com:443"],
    ["http://bücher.example/x", "http://xn--bcher-kva.example"],
    ["http://BÜCHER.example.:80/x", "http://xn--bcher-kva.example"],
    ["http://xn--BCHER-kva.example/x", "http://xn--bcher-kva.example"],
    ["http://[2001:DB8:0:0:0:0:0:1]:80/x", "http://[2001:db8::1]"],
    ["http://[2001:db8::0.0.0.1]/x", "http://[2001:db8::1]"],
    ["http://0x7f.1./x", "http://127.0.0.1"],
  ])("%s belongs to %s", (url, origin) => {
    expect(urlOrigin(url)).toBe(origin);
    expect(normalTarget(url)).toMatchObject({ origin, host: new URL(origin).host, rest: "/x" });
    // The normal form of a normal form is itself.
    expect(urlOrigin(`${origin}/x`)).toBe(origin);
  });

  test("the port is always known, and what is no http or https URL has no normal form", () => {
    const ports = ["http://a.example", "https://a.example", "https://a.example:80"].map(
      (url) => normalTarget(url)?.port,
    );
    expect(ports).toEqual([80, 443, 80]);
    for (const text of ["nonsense", "ftp://a.example/", "file:///etc/passwd", "http://[::1"]) {
      expect(normalTarget(text)).toBeNull();
      expect(() => urlOrigin(text)).toThrow("no http or https URL");
    }
  });
});

describe("a host that somebody looks for", () => {
  test.each([
    ["API.Example.com.", "api.example.com"],
    ["api.example.com.:8443", "api.example.com:8443"],
    ["api.example.com:0443", "api.example.com:443"],
    ["bücher.example:80", "xn--bcher-kva.example:80"],
    ["[2001:DB8:0::1]:8080", "[2001:db8::1]:8080"],
    ["2001:DB8:0::1", "[2001:db8::1]"],
    ["0x7f.1", "127.0.0.1"],
  ])("%s is %s", (text, host) => {
    expect(normalHost(text)).toBe(host);
  });

  test.each([...words(":80 a.example: a.example:65536 a/b a?b a#b u@a.example [::1 a:b"), "", "a\\b", "a b"])(
    "%p is none",
    (text) => {
      expect(normalHost(text)).toBeNull();
    },
  );
});

describe("a URL that was parsed before", () => {
  const longest = `${API}/${"x".repeat(PARSED_TARGET_CHARS_MAX - API.length - 1)}`;

  test("is not parsed again, for its origin neither, unless it is long", () => {
    const target = parseTarget(longest);
    expect(parseTarget(longest)).toBe(target);
    expect(urlOrigin(longest)).toBe(API);
    expect(parseTarget(`${longest}x`)).not.toBe(parseTarget(`${longest}x`));
    expect(parseTarget(`${longest}x`)).toEqual(parseTarget(`${longest}x`));
  });

  test("is forgotten after so many others", () => {
    const target = parseTarget(longest);
    for (let n = 0; n <= PARSED_TARGETS_MAX; n += 1) parseTarget(`${API}/${n}`);
    expect(parseTarget(longest)).not.toBe(target);
    expect(parseTarget(longest)).toEqual(target);
  });

  test("that was refused is refused again", () => {
    expect(parseTarget("http://a b/")).toHaveProperty("refused");
    expect(parseTarget("http://a b/")).toHaveProperty("refused");
    // It has an origin, but no call may go there.
    expect(urlOrigin("https://ann@api.example.com/x")).toBe(API);
    expect(parseTarget("https://ann@api.example.com/x")).toHaveProperty("refused");
  });
});
