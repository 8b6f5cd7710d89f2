import { createClientThrottle } from "../accounts/throttle.ts";
import { DomainError, RetryLater } from "../core/domain-error.ts";
import { HTTP_STATUS } from "../api/errors.ts";
import { compile } from "../api/check.ts";
import type { Clock } from "../core/clock.ts";
import { OAUTH_REGISTRATIONS_PER_CLIENT_MAX, OAUTH_TOKEN_REQUESTS_PER_CLIENT_MAX } from "../core/limits.ts";
import { createRoutes } from "../http/operation.ts";
import { readForm, readJson } from "../http/body.ts";
import type { RequestContext } from "../http/request.ts";
import { clientNetwork } from "../core/addresses.ts";
import { jsonResponse } from "../http/response.ts";
import { BAD_REDIRECT, clientMetadata, GivenMetadata, isUsableRedirect } from "./clients.ts";
import { REGISTER_PATH, REVOKE_PATH, TOKEN_PATH } from "./names.ts";
import type { OAuthService } from "./service.ts";
import type { BridgedResponse } from "./bridge.ts";

/** Clients in browsers may read public metadata, get tokens and register. No endpoint here uses cookies. */
const ANY_ORIGIN = { "access-control-allow-origin": "*" } as const;

const MAY_ASK = {
  ...ANY_ORIGIN,
  "access-control-allow-methods": "GET, POST",
  "access-control-allow-headers": "Authorization, Content-Type, MCP-Protocol-Version",
  "access-control-max-age": "3600",
} as const;

const RESOURCE_METADATA_PATH = "/.well-known/oauth-protected-resource";
const SERVER_METADATA_PATH = "/.well-known/oauth-authorization-server";

/** The `WWW-Authenticate` value of /mcp, which tells a client where to log in (RFC 9728, 5.1). */
export function mcpChallenge(baseUrl: string): string {
  return `Bearer resource_metadata="${baseUrl}${RESOURCE_METADATA_PATH}/mcp"`;
}

/** The endpoints that OAuth clients call; null if OAuth is off. Errors have the protocol's form (RFC 6749, 5.2). */
export function oauthRoutes({
  oauth,
  clock,
}: {
  readonly oauth: OAuthService | null;
  readonly clock: Pick<Clock, "monotonicMs">;
}) {
  const routes = createRoutes();
  if (oauth === null) return routes;
  const unparsed = { parse: "none" } as const;
  const countTokens = createClientThrottle(clock, OAUTH_TOKEN_REQUESTS_PER_CLIENT_MAX, "requests for tokens");
  const countRegistrations = createClientThrottle(clock, OAUTH_REGISTRATIONS_PER_CLIENT_MAX, "registrations");
  const metadata = (value: object) => () =>
    jsonResponse(value, 200, { ...ANY_ORIGIN, "cache-control": "public, max-age=300" });
  const preflight = () => new Response(null, { status: 204, headers: MAY_ASK });

  const form = (path: string, headers: Readonly<Record<string, string>>) =>
    answerProtocol(headers, async (context) => {
      countTokens(clientNetwork(context.client));
      const fields = new URLSearchParams([...(await readForm(context))]);
      return explained(await oauth.answerClient(path, clientCredentials(context), fields.toString()));
    });
  const register = answerProtocol(ANY_ORIGIN, async (context) => {
    countRegistrations(clientNetwork(context.client));
    const { value } = await readJson(context);
    if (!given.accepts(value)) return refusal(400, "invalid_client_metadata", METADATA);
    if (!value.redirect_uris.every(isUsableRedirect)) return refusal(400, "invalid_redirect_uri", BAD_REDIRECT);
    const method = value.token_endpoint_auth_method ?? "client_secret_basic";
    if (!isMethod(method)) return refusal(400, "invalid_client_metadata", METHODS);
    const { client_id: _, ...client } = clientMetadata("", value, method);
    return oauth.answerClient(REGISTER_PATH, JSON_TYPE, JSON.stringify(client));
  });

  routes
    .get(RESOURCE_METADATA_PATH, metadata(oauth.resourceMetadata))
    .get(`${RESOURCE_METADATA_PATH}/mcp`, metadata(oauth.resourceMetadata))
    .get(SERVER_METADATA_PATH, metadata(oauth.serverMetadata))
    .post(TOKEN_PATH, form(TOKEN_PATH, ANY_ORIGIN), unparsed)
    .post(REVOKE_PATH, form(REVOKE_PATH, {}), unparsed);
  if (oauth.registration) routes.post(REGISTER_PATH, register, unparsed).options(REGISTER_PATH, preflight, unparsed);
  for (const path of [RESOURCE_METADATA_PATH, `${RESOURCE_METADATA_PATH}/mcp`, SERVER_METADATA_PATH, TOKEN_PATH]) {
    routes.options(path, preflight, unparsed);
  }
  return routes;
}

const given = compile(GivenMetadata);

const METADATA = "Send redirect_uris with 1 to 20 addresses, and a client_name of at most 200 characters.";

const METHODS = "token_endpoint_auth_method is none, client_secret_basic or client_secret_post here.";

/** Without `private_key_jwt`: only clients with a document have keys. */
const REGISTERED_METHODS = ["none", "client_secret_basic", "client_secret_post"] as const;

function isMethod(text: string): text is (typeof REGISTERED_METHODS)[number] {
  return REGISTERED_METHODS.some((method) => method === text);
}

const JSON_TYPE = { "content-type": "application/json" } as const;

const FORM_TYPE = { "content-type": "application/x-www-form-urlencoded" } as const;

/** Replaces the library's "invalid grant", which it says whatever is wrong, because clients show it to people. */
function explained(answer: BridgedResponse): BridgedResponse {
  if (answer.status !== 400 || !answer.body.includes('"invalid_grant"')) return answer;
  return refusal(400, "invalid_grant", GONE);
}

const GONE =
  "The code or token is unknown, expired or was used before, belongs to another client, redirect_uri or code_verifier, or the " +
  "connection has ended. Connect again.";

/** The header with which a client sends its secret. */
function clientCredentials({ request }: RequestContext): Readonly<Record<string, string>> {
  const authorization = request.headers.get("authorization");
  return authorization === null ? FORM_TYPE : { ...FORM_TYPE, authorization };
}

function refusal(status: number, error: string, description: string): BridgedResponse {
  const body = JSON.stringify({ error, error_description: description });
  return { status, headers: new Headers(JSON_TYPE), body };
}

/** The headers that clients need. We set the others ourselves. */
const KEPT_HEADERS = ["content-type", "www-authenticate", "retry-after"];

function answerProtocol(
  headers: Readonly<Record<string, string>>,
  answer: (context: RequestContext) => Promise<BridgedResponse>,
) {
  return async ({ context }: { readonly context: RequestContext }): Promise<Response> => {
    const answered = await answer(context).catch(refused(context));
    const init = { status: answered.status, headers: { ...headers, "cache-control": "no-store" } };
    const response = new Response(answered.body === "" ? null : answered.body, init);
    for (const name of KEPT_HEADERS) {
      const value = answered.headers.get(name);
      if (value !== null) response.headers.set(name, value);
    }
    return response;
  };
}

/** Our own errors in the protocol's form. Rethrows unexpected ones, which are then logged. */
function refused(context: RequestContext) {
  return (error: unknown): BridgedResponse => {
    if (!(error instanceof DomainError)) throw error;
    context.errorCode = error.code;
    const isBusy = error.code === "rate_limited" || error.code === "unavailable";
    const answer = refusal(
      HTTP_STATUS[error.code],
      isBusy ? "temporarily_unavailable" : "invalid_request",
      error.message,
    );
    if (error instanceof RetryLater) answer.headers.set("retry-after", String(error.retryAfterSeconds));
    return answer;
  };
}
