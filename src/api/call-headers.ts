import type { BodyMember } from "../core/body.ts";
import type { Issue } from "../core/domain-error.ts";
import { HEADER_NAME_CHARS_MAX, HEADER_VALUE_BYTES_MAX, HEADERS_BYTES_MAX, HEADERS_MAX } from "../core/limits.ts";
import { plainHeaderName } from "../core/method-overrides.ts";
import type { Role } from "../core/roles.ts";
import { charsetProblem, contentTypeProblem } from "./media-type.ts";

/** At most `HEADER_NAME_CHARS_MAX` (128) characters, written out because the linter does not follow imports in patterns. */
export const HEADER_NAME_PATTERN = "^[A-Za-z0-9][!#$%&'*+.^_`|~0-9A-Za-z-]{0,127}$";

/** Printable ASCII, space and tab (RFC 9110, 5.5, without obs-text). */
export const HEADER_VALUE_PATTERN = String.raw`^[\t\x20-\x7e]*$`;

const NAME = new RegExp(HEADER_NAME_PATTERN);

export const NO_HEADER_NAME = "Is not a header name: use letters, digits and hyphens.";

const VALUE = new RegExp(HEADER_VALUE_PATTERN);

/** Headers that frame the message, belong to the connection or are set by Outgate. A star matches every name that begins so. */
const FRAMING = `
  host content-length content-encoding transfer-encoding connection keep-alive te trailer upgrade expect
  http2-settings accept-encoding via cdn-loop date proxy-* sec-* webhook-* x-outgate-*`;

/** Headers that make a target use another method, path or host than was approved. */
const OVERRIDES = `
  x-http-method x-http-method-override x-method-override x-original-method x-override-method x-original-url
  x-original-uri x-rewrite-url x-override-url x-request-uri x-original-path x-http-path-override x-host x-original-host
  script-name x-script-name path-info x-path-info
  x-http-host-override x-backend-host x-proxy-host http-method-override method-override x-method http-method
  x-tunneled-method x-tunnelled-method x-restli-method x-http-verb x-verb-override x-http-verb-override`;

/** Headers by which a proxy identifies the client to its backend, for every caller. */
const IDENTITY = `
  forwarded forwarded-for forwarded-for-ip x-forwarded x-forwarded-* x-real-ip true-client-ip client-ip x-client-ip
  x-cluster-client-ip cluster-client-ip x-custom-ip-authorization x-remote-ip x-remote-addr x-originating-ip x-source-ip x-original-forwarded-for
  x-original-remote-addr x-proxyuser-ip wl-proxy-client-ip fastly-client-ip cf-connecting-ip
  cf-connecting-ipv6 cf-ipcountry fly-client-ip x-appengine-user-ip x-azure-clientip x-azure-socketip
  x-envoy-external-address x-envoy-internal x-nf-client-connection-ip x-vercel-forwarded-for x-remote-user
  remote-user x-ssl-client-cert x-client-cert x-ms-client-principal* x-goog-authenticated-user-* x-goog-iap-*
  x-amzn-oidc-* x-auth-request-*`;

/**
 * Headers by which a proxy tells its backend who has signed in: Grafana and others, CGI, Cloudflare, Pomerium, authentik, Kong,
 * Tailscale, Azure, AWS, Google, Apache and nginx, Envoy, Vouch, Teleport, ngrok, Shibboleth, SiteMinder, WebSEAL, WSO2,
 * APISIX, and RFC 9440. With one of them, an agent could pass for anybody.
 */
const AGENT_IDENTITY = `
  x-webauth-* remote-* x-remote-* cf-access-* x-pomerium-* x-authentik-* x-consumer-* x-credential-* tailscale-*
  x-arr-* x-amzn-mtls-* x-apigateway-* x-endpoint-api-* oidc-claim-* x-ssl-client-* ssl-client-* x-forward-for
  x-envoy-* x-middleware-subrequest x-vouch-* x-authenticated-* teleport-jwt-assertion ngrok-auth-* shib-* x-shib-* mellon-*
  sm-user smuser sm-serversessionid iv-user iv-groups iv-creds x-jwt-assertion x-userinfo client-cert client-cert-chain`;

/** The headers of these families with which clients log in. */
const LOGINS = new Set(["cf-access-client-id", "cf-access-client-secret"]);

interface Families {
  readonly names: ReadonlySet<string>;
  readonly prefixes: readonly string[];
}

function familiesIn(...tables: readonly string[]): Families {
  const all = tables.flatMap((table) => table.trim().split(/\s+/));
  const prefixes = all.filter((name) => name.endsWith("*")).map((name) => name.slice(0, -1));
  return { names: new Set(all.filter((name) => !name.endsWith("*"))), prefixes };
}

/** The family of a name as the tables write it; null if it is in none. */
function findFamily(plain: string, { names, prefixes }: Families): string | null {
  if (names.has(plain)) return plain;
  const prefix = prefixes.find((one) => plain.startsWith(one));
  return prefix === undefined ? null : `${prefix}*`;
}

const DENIED = familiesIn(FRAMING, OVERRIDES, IDENTITY);

const DENIED_FOR_AGENTS = familiesIn(AGENT_IDENTITY);

/** Every problem in the headers that a caller with this role wants to send with this body. */
export function headerIssues(
  headers: Readonly<Record<string, string>>,
  bodyMember: BodyMember | null,
  role: Role,
): readonly Issue[] {
  const names = Object.keys(headers);
  const issues = names.flatMap((name) => {
    const message =
      headerProblem(name, headers[name] ?? "", bodyMember) ?? (role === "agent" ? identityProblem(name) : null);
    return message === null ? [] : [{ field: `headers.${name}`, message }];
  });
  return [...issues, ...repeated(names), ...repeatedType(names, bodyMember), ...oversize(headers, names)];
}

export function isHeaderName(name: string): boolean {
  return name.length <= HEADER_NAME_CHARS_MAX && NAME.test(name);
}

function headerProblem(name: string, value: string, bodyMember: BodyMember | null): string | null {
  if (!isHeaderName(name)) return NO_HEADER_NAME;
  const plain = plainHeaderName(name);
  if (findFamily(plain, DENIED) !== null) {
    return "Can't be set by a caller: Outgate, the connection or a proxy sets it.";
  }
  if (!VALUE.test(value)) return "May hold only printable ASCII, spaces and tabs.";
  if (value.length > HEADER_VALUE_BYTES_MAX) return `Is longer than ${HEADER_VALUE_BYTES_MAX} bytes.`;
  if (plain !== "content-type") return null;
  return bodyMember === null ? charsetProblem(value) : contentTypeProblem(value, bodyMember);
}

function identityProblem(name: string): string | null {
  const plain = plainHeaderName(name);
  const family = LOGINS.has(plain) ? null : findFamily(plain, DENIED_FOR_AGENTS);
  if (family === null) return null;
  return `Can't be set by an agent's key: proxies use ${family} to tell a target who the user is. Leave it out, or let an owner key send the call.`;
}

function repeated(names: readonly string[]): readonly Issue[] {
  const seen = new Set<string>();
  return names
    .filter((name) => seen.size === seen.add(name.toLowerCase()).size)
    .map((name) => ({ field: `headers.${name}`, message: "Is given twice: header names are case-insensitive." }));
}

/** Targets read either the first or the last of `Content-Type` and `Content_Type`. */
function repeatedType(names: readonly string[], bodyMember: BodyMember | null): readonly Issue[] {
  const [, ...others] = names.filter((name) => plainHeaderName(name) === "content-type");
  if (bodyMember === null || bodyMember === "body") return [];
  return others.map((name) => ({ field: `headers.${name}`, message: "Is another spelling of Content-Type." }));
}

function oversize(headers: Readonly<Record<string, string>>, names: readonly string[]): readonly Issue[] {
  const issues: Issue[] = [];
  if (names.length > HEADERS_MAX) issues.push({ field: "headers", message: `Has more than ${HEADERS_MAX} headers.` });
  const bytes = names.reduce((sum, name) => sum + name.length + (headers[name]?.length ?? 0), 0);
  if (bytes > HEADERS_BYTES_MAX) {
    issues.push({ field: "headers", message: `Is larger than ${HEADERS_BYTES_MAX} bytes in all.` });
  }
  return issues;
}
