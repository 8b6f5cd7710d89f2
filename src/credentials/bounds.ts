import { addressOfHost } from "../core/addresses.ts";
import type { CredentialBounds } from "../core/credential.ts";
import type { Issue } from "../core/domain-error.ts";
import { CREDENTIAL_PATHS_CHARS_MAX } from "../core/limits.ts";
import { readHosts } from "../core/key-limits.ts";
import { namedMethods, type SentRequest } from "../core/method-overrides.ts";
import { isUnder, normalPrefix, type SentTarget, sentTarget, type HttpMethod } from "../core/target.ts";
import type { ChangeCredentialBody } from "./schemas.ts";

/** The bounds in a body in normal form, and what is wrong with them. Bounds that are not given are absent. */
export function boundsFrom({ hosts, paths, methods }: Pick<ChangeCredentialBody, "hosts" | "paths" | "methods">): {
  readonly bounds: Partial<CredentialBounds>;
  readonly issues: readonly Issue[];
} {
  const read = hosts === undefined ? null : readHosts(hosts);
  const issues: Issue[] = [...(read?.issues ?? [])];
  for (const [at, host] of (hosts ?? []).entries()) {
    if (isTooWide(readHosts([host]).hosts[0] ?? "")) issues.push({ field: `hosts.${at}`, message: TOO_WIDE });
  }
  const prefixes = paths?.map((path) => (DOTS.test(path) ? null : normalPrefix(path)));
  for (const [at, prefix] of (prefixes ?? []).entries()) {
    if (prefix === null) issues.push({ field: `paths.${at}`, message: NO_PREFIX });
  }
  if ((prefixes ?? []).reduce((sum, prefix) => sum + (prefix?.length ?? 0), 0) > CREDENTIAL_PATHS_CHARS_MAX) {
    issues.push({ field: "paths", message: `Have more than ${CREDENTIAL_PATHS_CHARS_MAX} characters in all.` });
  }
  return {
    bounds: {
      ...(read !== null && { hosts: [...new Set(read.hosts.map((host) => host.replace(/:(?:443|80)$/, "")))] }),
      ...(prefixes !== undefined && { paths: [...new Set(prefixes.flatMap((prefix) => prefix ?? []))] }),
      ...(methods !== undefined && { methods: [...new Set(methods)] }),
    },
    issues,
  };
}

const TOO_WIDE = "Is too wide: name at least two labels behind the star, as in *.example.com.";

const NO_PREFIX = "Must begin with / and have no code, dot segment or query that targets read in two ways.";

/** Whether a host is a whole top-level domain, or looks like a part of an IP address. */
function isTooWide(host: string): boolean {
  const below = host.slice(2).replace(PORT, "");
  return host.startsWith("*.") && (!below.includes(".") || addressOfHost(below) !== null);
}

const PORT = /:\d{1,5}$/;

/** A dot segment, which would name another path. */
const DOTS = /\/(?:\.|%2e){1,2}(?:\/|$)/i;

/** Which part of a request is outside the bounds, or null. A request that names another method counts as both. */
export function outOfBounds(
  { hosts, paths, methods }: CredentialBounds,
  request: SentRequest,
): { readonly bound: keyof CredentialBounds; readonly found: string } | null {
  const target = sentTarget(request.url);
  if (!hosts.some((allowed) => isHost(allowed, target))) return { bound: "hosts", found: target.host };
  if (paths !== null && !paths.some((prefix) => isUnder(target, prefix))) return { bound: "paths", found: target.path };
  const method = methods === null ? undefined : namedMethods(request).find((one) => !methods.some((it) => it === one));
  return method === undefined ? null : { bound: "methods", found: method };
}

/** The credentials whose secrets may have been sent to the host of this URL. */
export function forOneHost<Bounds extends Pick<CredentialBounds, "hosts">>(
  url: string,
  credentials: readonly Bounds[],
): readonly Bounds[] {
  if (credentials.length === 0) return [];
  const target = sentTarget(url);
  return credentials.filter(({ hosts }) => hosts.some((allowed) => isHost(allowed, target)));
}

/** Compares label by label, so that names with equal endings differ. A host without a port means the scheme's default port. */
function isHost(allowed: string, { host }: SentTarget): boolean {
  if (!allowed.startsWith("*.")) return allowed === host;
  const below = allowed.slice(2).split(".").toReversed();
  const labels = host.split(".").toReversed();
  return labels.length > below.length && below.every((label, at) => label === labels[at]);
}

/** The bounds in words: "api.stripe.com, /v1/charges, POST". */
export function describeBounds({ hosts, paths, methods }: CredentialBounds): string {
  return [hosts.join(", "), paths?.join(", "), methods?.join(", ")].filter((text) => text !== undefined).join("; ");
}

/** What is risky about the bounds, one sentence each. */
export function boundWarnings(bounded: CredentialBounds): readonly string[] {
  const included = secretGivers(bounded);
  if (included.length === 0) return [];
  return [
    `Its bounds include ${LIST.format(included)}, where answers hold a new secret. Name the paths that calls need.`,
  ];
}

const LIST = new Intl.ListFormat("en-GB");

/**
 * An endpoint that answers with a new secret, so that a caller who may reach it gets their own credential. The host is as in
 * bounds, but `*` stands for one label; null: many services have such an endpoint. `*` in the path stands for one segment.
 * Methods: POST if left out; null: any.
 */
type SecretGiver = readonly [host: string | null, path: string, what: string, methods?: readonly HttpMethod[] | null];

/** Common endpoints. The list can't be complete, so the guide also recommends to name paths. */
const SECRET_GIVERS: readonly SecretGiver[] = [
  ["api.stripe.com", "/v1/api_keys", "Stripe's /v1/api_keys", null],
  ["api.stripe.com", "/v1/ephemeral_keys", "Stripe's /v1/ephemeral_keys"],
  ["api.stripe.com", "/v1/webhook_endpoints", "Stripe's /v1/webhook_endpoints"],
  ["api.github.com", "/app/installations/*/access_tokens", "GitHub's access_tokens"],
  ["api.github.com", "/app-manifests/*/conversions", "GitHub's conversions of app manifests"],
  ["api.github.com", "/applications/*/token", "GitHub's tokens of applications", ["POST", "PATCH"]],
  ["api.github.com", "/orgs/*/actions/runners", "GitHub's tokens of runners"],
  ["api.github.com", "/repos/*/*/actions/runners", "GitHub's tokens of runners"],
  ["gitlab.com", "/api/v4/personal_access_tokens", "GitLab's personal_access_tokens"],
  ["gitlab.com", "/api/v4/users/*/personal_access_tokens", "GitLab's personal_access_tokens"],
  ["gitlab.com", "/api/v4/projects/*/access_tokens", "GitLab's access_tokens"],
  ["slack.com", "/api/oauth.v2.access", "Slack's oauth.v2.access", null],
  ["slack.com", "/api/tooling.tokens.rotate", "Slack's tooling.tokens.rotate", null],
  ["sts.amazonaws.com", "/", "AWS STS", null],
  ["sts.*.amazonaws.com", "/", "AWS STS", null],
  ["iam.amazonaws.com", "/", "AWS IAM", null],
  ["secretsmanager.*.amazonaws.com", "/", "AWS Secrets Manager"],
  ["oauth2.googleapis.com", "/", "Google's token endpoint", null],
  ["sts.googleapis.com", "/", "Google's token endpoint", null],
  ["iamcredentials.googleapis.com", "/", "Google's tokens of service accounts"],
  ["login.microsoftonline.com", "/", "Microsoft's token endpoint", null],
  ["api.openai.com", "/v1/organization/admin_api_keys", "OpenAI's admin_api_keys"],
  ["api.openai.com", "/v1/organization/projects/*/service_accounts", "OpenAI's service_accounts"],
  ["api.openai.com", "/v1/realtime/client_secrets", "OpenAI's client_secrets"],
  ...["/oauth/token", "/oauth/access_token", "/oauth2/token", "/oauth2/*/token", "/connect/token"].map(
    (path): SecretGiver => [null, path, path, ["GET", "POST"]],
  ),
];

/** The endpoints within the bounds that answer with a new secret: of known services or, if there are none, general ones. */
function secretGivers(bounds: CredentialBounds): readonly string[] {
  const prefixes = bounds.paths?.map(pathSegments) ?? null;
  const reached = SECRET_GIVERS.filter((giver) => reaches(bounds, prefixes, giver));
  const known = new Set(reached.flatMap(([host, , what]) => (host === null ? [] : [what])));
  const [[, , first] = []] = reached;
  if (known.size > 0 || first === undefined) return [...known];
  return [bounds.paths === null ? `any path, and so token endpoints such as ${first}` : first];
}

/** `prefixes`: the bounds' paths by segments; null: any path. */
function reaches(
  { hosts, methods }: CredentialBounds,
  prefixes: readonly (readonly string[])[] | null,
  [host, path, , its = ["POST"]]: SecretGiver,
): boolean {
  const wanted = pathSegments(path);
  return (
    (host === null || hosts.some((one) => mayBeHost(one, host))) &&
    (prefixes === null || prefixes.some((prefix) => alike(prefix, wanted))) &&
    (methods === null || its === null || methods.some((one) => its.includes(one)))
  );
}

/** Compares label by label from the end, ignoring the port. */
function mayBeHost(allowed: string, wanted: string): boolean {
  const named = allowed.replace(/:\d+$/, "").split(".").toReversed();
  const labels = wanted.split(".").toReversed();
  const below = named.at(-1) === "*" ? named.slice(0, -1) : null;
  return below === null
    ? named.length === labels.length && alike(named, labels)
    : labels.length > below.length && alike(below, labels);
}

/** More segments than the path of an endpoint has. A list of credentials has thousands of paths, each with up to hundreds of segments. */
const SEGMENTS_READ = 16;

/** The first segments of a path. */
function pathSegments(path: string): readonly string[] {
  return path.split("/", SEGMENTS_READ).filter((segment) => segment !== "");
}

/** Whether two lists agree up to the end of the shorter one: paths below an endpoint, such as the rotation of one key, are part of it. */
function alike(some: readonly string[], others: readonly string[]): boolean {
  return some.every((one, at) => {
    const other = others[at] ?? "*";
    return one === "*" || other === "*" || one === other;
  });
}
