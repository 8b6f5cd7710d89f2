import { describe, expect, test } from "bun:test";
import type { CredentialBounds } from "../../src/core/credential.ts";
import { warningsOf } from "../../src/credentials/bounds.ts";

/** What they are said to include; empty: nothing. */
const included = (hosts: readonly string[], more: Partial<CredentialBounds> = {}) =>
  warningsOf({ hosts, paths: null, methods: null, ...more })
    .map((warning) => /include (?:any path, and so token endpoints such as )?(.+), where/.exec(warning)?.[1] ?? warning)
    .join("; ");

const GITHUB = ["api.github.com"];

describe("bounds that include an endpoint which answers with a new secret", () => {
  test("are warned of, in a sentence that says what to do", () => {
    const bounds = { hosts: ["api.stripe.com"], paths: ["/v1/api_keys"], methods: null };
    expect(warningsOf(bounds)).toEqual([
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
