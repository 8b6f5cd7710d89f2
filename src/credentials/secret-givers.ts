import type { HttpMethod } from "../core/action.ts";
import type { CredentialBounds } from "../core/credential.ts";

/** An endpoint that answers with a new secret: a caller that may reach it gets a credential of its own. */
interface SecretGiver {
  /** As in bounds, but that `*` stands for one label; null: many services have such an endpoint. */
  readonly host: string | null;
  /** `*` stands for one segment. */
  readonly path: string;
  /** Null: any. */
  readonly methods: readonly HttpMethod[] | null;
  readonly what: string;
}

const POST: readonly HttpMethod[] = ["POST"];

const of = (host: string | null, path: string, what: string, methods: SecretGiver["methods"] = POST): SecretGiver => ({
  host,
  path,
  methods,
  what,
});

/** Common ones. A list of all would never be complete, so that the guide says to name paths too. */
const SECRET_GIVERS: readonly SecretGiver[] = [
  of("api.stripe.com", "/v1/api_keys", "Stripe's /v1/api_keys", null),
  of("api.stripe.com", "/v1/ephemeral_keys", "Stripe's /v1/ephemeral_keys"),
  of("api.stripe.com", "/v1/webhook_endpoints", "Stripe's /v1/webhook_endpoints"),
  of("api.github.com", "/app/installations/*/access_tokens", "GitHub's access_tokens"),
  of("api.github.com", "/app-manifests/*/conversions", "GitHub's conversions of app manifests"),
  of("api.github.com", "/applications/*/token", "GitHub's tokens of applications", ["POST", "PATCH"]),
  of("api.github.com", "/orgs/*/actions/runners", "GitHub's tokens of runners"),
  of("api.github.com", "/repos/*/*/actions/runners", "GitHub's tokens of runners"),
  of("gitlab.com", "/api/v4/personal_access_tokens", "GitLab's personal_access_tokens"),
  of("gitlab.com", "/api/v4/users/*/personal_access_tokens", "GitLab's personal_access_tokens"),
  of("gitlab.com", "/api/v4/projects/*/access_tokens", "GitLab's access_tokens"),
  of("slack.com", "/api/oauth.v2.access", "Slack's oauth.v2.access", null),
  of("slack.com", "/api/tooling.tokens.rotate", "Slack's tooling.tokens.rotate", null),
  of("sts.amazonaws.com", "/", "AWS STS", null),
  of("sts.*.amazonaws.com", "/", "AWS STS", null),
  of("iam.amazonaws.com", "/", "AWS IAM", null),
  of("secretsmanager.*.amazonaws.com", "/", "AWS Secrets Manager"),
  of("oauth2.googleapis.com", "/", "Google's token endpoint", null),
  of("sts.googleapis.com", "/", "Google's token endpoint", null),
  of("iamcredentials.googleapis.com", "/", "Google's tokens of service accounts"),
  of("login.microsoftonline.com", "/", "Microsoft's token endpoint", null),
  of("api.openai.com", "/v1/organization/admin_api_keys", "OpenAI's admin_api_keys"),
  of("api.openai.com", "/v1/organization/projects/*/service_accounts", "OpenAI's service_accounts"),
  of("api.openai.com", "/v1/realtime/client_secrets", "OpenAI's client_secrets"),
  ...["/oauth/token", "/oauth/access_token", "/oauth2/token", "/oauth2/*/token", "/connect/token"].map((path) =>
    of(null, path, path, ["GET", "POST"]),
  ),
];

/** Which endpoints the bounds include that would answer with a new secret: those of services that are known, or else any. */
export function secretGivers(bounds: CredentialBounds): readonly string[] {
  const reached = SECRET_GIVERS.filter((giver) => reaches(bounds, giver));
  const known = new Set(reached.flatMap(({ host, what }) => (host === null ? [] : [what])));
  const [first] = reached;
  if (known.size > 0 || first === undefined) return [...known];
  return [bounds.paths === null ? `any path, and so token endpoints such as ${first.what}` : first.what];
}

/** Whether a request within the bounds may go to this endpoint. */
function reaches({ hosts, paths, methods }: CredentialBounds, giver: SecretGiver): boolean {
  const { host } = giver;
  return (
    (host === null || hosts.some((one) => mayBeHost(one, host))) &&
    (paths === null || paths.some((prefix) => mayBeUnder(giver.path, prefix))) &&
    (methods === null || giver.methods === null || methods.some((one) => giver.methods?.includes(one)))
  );
}

/** Label by label from the end. On another port it is taken for the same service. */
function mayBeHost(allowed: string, wanted: string): boolean {
  const named = allowed.replace(/:\d+$/, "").split(".").toReversed();
  const labels = wanted.split(".").toReversed();
  const below = named.at(-1) === "*" ? named.slice(0, -1) : null;
  return below === null
    ? named.length === labels.length && alike(named, labels)
    : labels.length > below.length && alike(below, labels);
}

/** Segment by segment, of which either may have stars. What lies below an endpoint, as the rotation of one key, is a part of it. */
function mayBeUnder(endpoint: string, prefix: string): boolean {
  return alike(segmentsOf(prefix), segmentsOf(endpoint));
}

function segmentsOf(path: string): readonly string[] {
  return path.split("/").filter((segment) => segment !== "");
}

/** Up to the end of the shorter one. */
function alike(some: readonly string[], others: readonly string[]): boolean {
  return some.every((one, at) => {
    const other = others[at] ?? "*";
    return one === "*" || other === "*" || one === other;
  });
}
