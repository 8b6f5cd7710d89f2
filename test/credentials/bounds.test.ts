import { describe, expect, test } from "bun:test";
import type { CredentialBounds } from "../../src/core/credential.ts";
import { boundsFrom, describeBounds, outOfBounds, boundWarnings } from "../../src/credentials/bounds.ts";
import type { HttpMethod } from "../../src/core/target.ts";
import { quickestMs } from "../support/core.ts";

const STRIPE: CredentialBounds = {
  hosts: ["api.stripe.com", "*.pay.example.com", "127.0.0.1:8080"],
  paths: ["/v1/charges", "/v1/customers/*/sources"],
  methods: ["GET", "POST"],
};

const bound = (url: string, method: HttpMethod = "POST", bounds: Partial<CredentialBounds> = {}) =>
  outOfBounds({ ...STRIPE, ...bounds }, { url, method, headers: null, body: null, extras: {} })?.bound ?? null;

describe("a credential goes", () => {
  test.each([
    "https://api.stripe.com/v1/charges",
    "https://API.Stripe.com./v1/charges/ch_1?expand=all",
    "https://api.stripe.com:443/v1/charges",
    "https://api.stripe.com/v1/%63harges",
    "https://api.stripe.com/v1/customers/cus_1/sources/7",
    "https://eu.pay.example.com/v1/charges",
    "https://a.b.pay.example.com/v1/charges",
    "http://127.0.0.1:8080/v1/charges",
  ])("to %s", (url) => {
    expect(bound(url)).toBeNull();
  });

  test.each([
    "https://evil-api.stripe.com/v1/charges",
    "https://api.stripe.com.evil.example/v1/charges",
    "https://api.stripe.community/v1/charges",
    "https://stripe.com/v1/charges",
    "https://pay.example.com/v1/charges",
    "https://evilpay.example.com/v1/charges",
    "https://eu.pay.example.com.evil/v1/charges",
    "https://api.stripe.com:8443/v1/charges",
    "https://eu.pay.example.com:8443/v1/charges",
    "http://127.0.0.1/v1/charges",
    "https://api.stripe.com@evil.example/v1/charges",
    "https://evil.example/api.stripe.com/v1/charges",
    "https://evil.example?https://api.stripe.com/v1/charges",
    "https://evil.example#@api.stripe.com/v1/charges",
    // Cyrillic: xn--pi-7kc.stripe.com.
    "https://аpi.stripe.com/v1/charges",
    "https://xn--pi-7kc.stripe.com/v1/charges",
  ])("to no other host: %s", (url) => {
    expect(bound(url)).toBe("hosts");
  });

  test.each([
    "https://api.stripe.com/v1/chargesback",
    "https://api.stripe.com/v1/api_keys",
    "https://api.stripe.com/V1/charges",
    "https://api.stripe.com/v1/charges/../api_keys",
    "https://api.stripe.com/v1/charges/%2e%2e/api_keys",
    "https://api.stripe.com/v1/charges/..%2fapi_keys",
    "https://api.stripe.com/v1/charges/..;/api_keys",
    "https://api.stripe.com/v1/charges;/api_keys",
    "https://api.stripe.com/v1//charges",
    "https://api.stripe.com//v1/charges",
    "https://api.stripe.com/v1/charges/%252e%252e/api_keys",
    "https://api.stripe.com/v1/charges%5c..%5capi_keys",
    "https://api.stripe.com/v1/charges/%00/api_keys",
    "https://api.stripe.com/v1/customers//sources",
    "https://api.stripe.com/?/v1/charges",
  ])("to no other path: %s", (url) => {
    expect(bound(url)).toBe("paths");
  });

  test("by no other method, also where the request names it elsewhere", () => {
    expect(bound("https://api.stripe.com/v1/charges", "DELETE")).toBe("methods");
    expect(bound("https://api.stripe.com/v1/charges?_method=DELETE")).toBe("methods");
    expect(bound("https://api.stripe.com/v1/charges", "DELETE", { methods: null })).toBeNull();
  });

  test("to any path where none is named, however it is written", () => {
    expect(bound("https://api.stripe.com/v1//charges/%2e%2e", "POST", { paths: null })).toBeNull();
  });
});

/** What they are said to include; empty: nothing. */
const included = (hosts: readonly string[], more: Partial<CredentialBounds> = {}) =>
  boundWarnings({ hosts, paths: null, methods: null, ...more })
    .map((warning) => /include (?:any path, and so token endpoints such as )?(.+), where/.exec(warning)?.[1] ?? warning)
    .join("; ");

const GITHUB = ["api.github.com"];

describe("bounds that include an endpoint which answers with a new secret", () => {
  test("are warned of, in a sentence that says what to do", () => {
    const bounds = { hosts: ["api.stripe.com"], paths: ["/v1/api_keys"], methods: null };
    expect(boundWarnings(bounds)).toEqual([
      "Its bounds include Stripe's /v1/api_keys, where answers hold a new secret. Name the paths that calls need.",
    ]);
  });

  test.each<[string, readonly string[], Partial<CredentialBounds>, string]>([
    ["a prefix above it", GITHUB, { paths: ["/app"] }, "GitHub's access_tokens"],
    ["its own path", GITHUB, { paths: ["/app/installations/1/access_tokens"] }, "GitHub's access_tokens"],
    ["a star for one segment of it", GITHUB, { paths: ["/*/installations/1/access_tokens"] }, "GitHub's access_tokens"],
    ["an owner's repositories", GITHUB, { paths: ["/repos/acme"] }, "GitHub's tokens of runners"],
    ["one token below it", GITHUB, { paths: ["/applications/1/token/scoped"] }, "GitHub's tokens of applications"],
    ["one of several paths", GITHUB, { paths: ["/user", "/app/"] }, "GitHub's access_tokens"],
    ["another part of a repository", GITHUB, { paths: ["/repos/acme/*/issues"] }, ""],
    ["a name that only begins alike", GITHUB, { paths: ["/application"] }, ""],
    ["only methods that it has not", GITHUB, { paths: ["/app"], methods: ["GET", "DELETE"] }, ""],
    ["one of its methods", GITHUB, { paths: ["/app"], methods: ["GET", "POST"] }, "GitHub's access_tokens"],
    ["a host with a port", ["api.github.com:8443"], { paths: ["/app"] }, "GitHub's access_tokens"],
    ["all names above its host", ["*.github.com"], { paths: ["/app"] }, "GitHub's access_tokens"],
    ["names below its host", ["*.api.github.com"], { paths: ["/app"] }, ""],
    ["a host that only ends alike", ["evil-api.github.com"], { paths: ["/app"] }, ""],
    ["STS", ["sts.amazonaws.com"], { paths: ["/any"] }, "AWS STS"],
    ["STS of a region", ["sts.eu-west-1.amazonaws.com"], {}, "AWS STS"],
    ["all of AWS, each once", ["*.amazonaws.com"], {}, "AWS STS, AWS IAM and AWS Secrets Manager"],
    ["a region of AWS", ["*.eu-west-1.amazonaws.com"], {}, "AWS STS and AWS Secrets Manager"],
    ["another service of AWS", ["s3.amazonaws.com"], { paths: ["/bucket"] }, ""],
    ["an OAuth path of any host", ["api.example.com"], { paths: ["/oauth"] }, "/oauth/token"],
    ["a version of one", ["acme.okta.example"], { paths: ["/oauth2/v1/token"] }, "/oauth2/*/token"],
    ["the root", ["api.example.com"], { paths: ["/"] }, "/oauth/token"],
    ["no path at all", ["api.example.com"], {}, "/oauth/token"],
    ["no path, with methods that no token endpoint has", ["api.example.com"], { methods: ["DELETE"] }, ""],
    ["another path", ["api.example.com"], { paths: ["/v1/oauth"] }, ""],
  ])("%s", (_, hosts, more, expected) => {
    expect(included(hosts, more)).toBe(expected);
  });
});

test("paths have 8,192 characters in all, however many they are", () => {
  const paths = Array.from({ length: 8 }, (_, n) => `/${n}${"x".repeat(1_022)}`);
  expect(boundsFrom({ paths }).issues).toEqual([]);
  expect(boundsFrom({ paths: [...paths, "/y"] }).issues).toEqual([
    { field: "paths", message: "Have more than 8192 characters in all." },
  ]);
});

test("many long paths are compared with endpoints only as far as those go", () => {
  // Without that, 200 credentials take 3 s.
  const paths = Array.from({ length: 50 }, (_, n) => `/${"a/".repeat(500)}${n}`);
  const warnOfAll = () => {
    for (let n = 0; n < 200; n += 1)
      boundWarnings({ hosts: ["api.stripe.com", "api.github.com"], paths, methods: null });
  };
  expect(quickestMs(600, warnOfAll)).toBeLessThan(600);
});

test("bounds are told in words", () => {
  expect(describeBounds({ ...STRIPE, hosts: ["api.stripe.com"] })).toBe(
    "api.stripe.com; /v1/charges, /v1/customers/*/sources; GET, POST",
  );
});
