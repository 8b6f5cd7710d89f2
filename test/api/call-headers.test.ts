import { describe, expect, test } from "bun:test";
import type { Role } from "../../src/core/roles.ts";
import { headerIssues } from "../../src/api/call-headers.ts";
import { words } from "../support/words.ts";

type Headers = Readonly<Record<string, string>>;

/** What is refused, field by field. */
function fieldsOf(headers: Headers, hasBody = true, role: Role = "owner"): readonly string[] {
  return headerIssues(headers, hasBody ? "body" : null, role).map(({ field }) => field);
}

/** So many headers of this size each, names included. */
function many(count: number, bytesEach: number): Headers {
  const names = Array.from({ length: count }, (_, at) => `n${String(at).padStart(3, "0")}`);
  return Object.fromEntries(names.map((name) => [name, "v".repeat(bytesEach - name.length)]));
}

describe("headers that may go", () => {
  test.each<[string, Headers]>([
    ["none", {}],
    ["credentials", { Authorization: "Bearer abc", Cookie: "a=b; c=d", "X-Api-Key": "k" }],
    ["what is theirs to choose", { Accept: "text/plain", "Idempotency-Key": "k", "User-Agent": "Agent/1" }],
    ["names that only begin like denied ones", { Hostess: "a", Teapot: "b", Dated: "c", Section: "d", Webhooks: "e" }],
    ["every character of a name", { "a!#$%&'*+.^_`|~9-Z": "x" }],
    ["a name of one character, and one of 128", { x: "a", ["y".repeat(128)]: "b" }],
    ["an empty value, spaces and a tab", { A: "", B: "a b\tc ~!" }],
    ["a value of 8,192 bytes", { A: "v".repeat(8_192) }],
    ["64 headers", many(64, 10)],
    ["16,384 bytes of names and values", many(4, 4_096)],
  ])("%s", (_name, headers) => {
    expect(headerIssues(headers, "body", "agent")).toEqual([]);
  });

  // With a body: media-type.test.ts.
  test.each(["text/plain", "application/xml", ""])("no body of the type %p", (type) => {
    expect(fieldsOf({ "Content-Type": type }, false)).toEqual([]);
  });
});

describe("headers that may not go", () => {
  test.each<[string, Headers, readonly string[]]>([
    ["a name that is empty", { "": "x" }, ["headers."]],
    ["a name with a space", { "a b": "x" }, ["headers.a b"]],
    ["a name with a colon", { "a:b": "x" }, ["headers.a:b"]],
    ["a name with a line break", { "a\r\nb": "x" }, ["headers.a\r\nb"]],
    ["a name that begins with no letter or digit", { "-a": "x", _b: "y" }, ["headers.-a", "headers._b"]],
    ["a name that is not ASCII", { é: "x" }, ["headers.é"]],
    ["a name of 129 characters", { ["y".repeat(129)]: "x" }, [`headers.${"y".repeat(129)}`]],
    ["CR in a value", { A: "x\ry" }, ["headers.A"]],
    ["LF in a value", { A: "x\ny" }, ["headers.A"]],
    ["NUL in a value", { A: "x\0y" }, ["headers.A"]],
    ["DEL in a value", { A: "x\x7f" }, ["headers.A"]],
    ["a value that is not ASCII", { A: "é" }, ["headers.A"]],
    ["a value of 8,193 bytes", { A: "v".repeat(8_193) }, ["headers.A"]],
    ["65 headers", many(65, 10), ["headers"]],
    ["16,385 bytes of names and values", { ...many(4, 4_096), n003: "v".repeat(4_093) }, ["headers"]],
    ["two names that differ in case", { Accept: "a", ACCEPT: "b", accept: "c" }, ["headers.ACCEPT", "headers.accept"]],
  ])("%s", (_name, headers, fields) => {
    expect(fieldsOf(headers)).toEqual(fields);
  });

  test("__proto__, as JSON brings it", () => {
    // Safe: a JSON object of strings.
    const headers = JSON.parse('{"__proto__":"x"}') as Headers;
    expect(fieldsOf(headers)).toEqual(["headers.__proto__"]);
  });

  test("each with a sentence of its own, all at once", () => {
    const issues = headerIssues({ Host: "x", A: "é", a: "b" }, "body", "owner");
    expect(issues.map(({ field }) => field)).toEqual(["headers.Host", "headers.A", "headers.a"]);
    expect(new Set(issues.map(({ message }) => message)).size).toBe(3);
    expect(JSON.stringify(issues)).not.toContain("é");
  });
});

const DENIED = words(`
  host content-length content-encoding transfer-encoding connection keep-alive proxy-authorization proxy-connection
  proxy- te trailer upgrade expect http2-settings accept-encoding via forwarded x-forwarded-for x-forwarded-host
  x-forwarded-proto x-real-ip cdn-loop sec-fetch-site sec-websocket-key date webhook-id webhook-timestamp
  webhook-signature x-outgate-attempt x-http-method x-http-method-override x-method-override x-original-url
  x-rewrite-url x-original-method x-http-path-override x-host script-name x-script-name path-info true-client-ip
  cf-connecting-ip x-client-ip x-remote-user x-ms-client-principal-name x-goog-authenticated-user-email
  x-amzn-oidc-identity x-auth-request-email
`);

test.each(DENIED)("a denied name %s is refused in every case, and with _ for -", (name) => {
  const capital = name.replaceAll(/(^|-)[a-z]/g, (email) => email.toUpperCase());
  const spellings = [name, name.toUpperCase(), capital, name.replaceAll("-", "_"), capital.replace("-", "_")];
  for (const spelling of spellings) {
    for (const hasBody of [true, false]) {
      expect(fieldsOf({ [spelling]: "application/json" }, hasBody)).toEqual([`headers.${spelling}`]);
    }
  }
});

/** By each family a proxy tells its backend who somebody is; with one name of it. */
const IDENTITIES = [
  ["x-webauth-*", "X-WEBAUTH-USER"],
  ["remote-*", "Remote-Groups"],
  ["x-remote-*", "X-Remote-Group"],
  ["cf-access-*", "Cf-Access-Authenticated-User-Email"],
  ["cf-access-*", "Cf-Access-Jwt-Assertion"],
  ["x-pomerium-*", "X-Pomerium-Claim-Email"],
  ["x-authentik-*", "X-authentik-username"],
  ["x-consumer-*", "X-Consumer-Username"],
  ["x-credential-*", "X-Credential-Identifier"],
  ["tailscale-*", "Tailscale-User-Login"],
  ["x-arr-*", "X-ARR-ClientCert"],
  ["x-amzn-mtls-*", "X-Amzn-Mtls-Clientcert-Subject"],
  ["x-apigateway-*", "X-Apigateway-Api-Userinfo"],
  ["x-endpoint-api-*", "X-Endpoint-API-UserInfo"],
  ["oidc-claim-*", "OIDC_CLAIM_email"],
  ["x-ssl-client-*", "X-SSL-Client-S-DN"],
  ["ssl-client-*", "SSL_CLIENT_S_DN"],
  ["x-forward-for", "X-Forward-For"],
  ["x-envoy-*", "X-Envoy-Peer-Metadata"],
  ["x-middleware-subrequest", "X-Middleware-Subrequest"],
  ["x-vouch-*", "X-Vouch-User"],
  ["x-authenticated-*", "X-Authenticated-Userid"],
  ["teleport-jwt-assertion", "Teleport-Jwt-Assertion"],
  ["ngrok-auth-*", "ngrok-auth-user-email"],
  ["shib-*", "Shib-Identity-Provider"],
  ["x-shib-*", "X-Shib-User"],
  ["mellon-*", "MELLON_NAME_ID"],
  ["sm-user", "SM_USER"],
  ["smuser", "SMUSER"],
  ["sm-serversessionid", "SM_SERVERSESSIONID"],
  ["iv-user", "iv-user"],
  ["iv-groups", "iv-groups"],
  ["iv-creds", "iv-creds"],
  ["x-jwt-assertion", "X-JWT-Assertion"],
  ["x-userinfo", "X-Userinfo"],
  ["client-cert", "Client-Cert"],
  ["client-cert-chain", "Client-Cert-Chain"],
] as const;

describe("an agent's key tells no target who somebody is", () => {
  test.each(IDENTITIES)("%s: %s is refused in every spelling, and the refusal names the family", (family, name) => {
    const spellings = [
      name,
      name.toLowerCase(),
      name.toUpperCase(),
      name.replaceAll("-", "_"),
      name.replaceAll(/[-_]/g, "."),
    ];
    for (const spelling of spellings) {
      for (const hasBody of [true, false]) {
        expect(fieldsOf({ [spelling]: "admin" }, hasBody, "agent")).toEqual([`headers.${spelling}`]);
      }
      const [issue] = headerIssues({ [spelling]: "admin" }, null, "agent");
      expect(issue?.message).toContain(`proxies use ${family} to tell a target who the user is`);
      expect(fieldsOf({ [spelling]: "admin" }, true, "owner")).toEqual([]);
    }
  });

  test("but sets what it logs in with, and names that only begin alike", () => {
    const headers = {
      "CF-Access-Client-Id": "i",
      CF_Access_Client_Secret: "s",
      Remote: "a",
      "X-Array": "b",
      Tailscales: "c",
    };
    expect(fieldsOf(headers, true, "agent")).toEqual([]);
  });
});
