import Provider, { errors } from "oidc-provider";
import {
  OAUTH_ACCESS_TOKEN_MS_MAX,
  OAUTH_ASSERTION_MS_MAX,
  OAUTH_CODE_MS_MAX,
  OAUTH_CONNECTION_MS_MAX,
  OAUTH_CONSENT_MS_MAX,
} from "../core/limits.ts";
import type { Secrets } from "../crypto/secrets.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { type AdapterNeeds, createAdapter } from "./adapter.ts";
import { SIGNING_ALGORITHMS } from "./clients.ts";
import {
  AUTH_METHODS,
  AUTHORIZE_PATH,
  CONSENT_PATH,
  keyOfSubject,
  REGISTER_PATH,
  REVOKE_PATH,
  SCOPE,
  SESSION_COOKIE,
  TOKEN_PATH,
} from "./names.ts";

export interface ProviderNeeds extends AdapterNeeds {
  readonly secrets: AdapterNeeds["secrets"] & Pick<Secrets, "oauthKeys">;
  readonly registration: boolean;
  readonly isStopped: (accountId: string) => boolean;
}

export function createProvider(app: AppContext, needs: ProviderNeeds): Provider {
  const { clock, log, store } = app;
  const { baseUrl } = app.config;
  const { secrets, registration, isStopped } = needs;
  const keys = secrets.oauthKeys();
  const resource = `${baseUrl}/mcp`;
  const isHttps = baseUrl.startsWith("https:");
  const seconds = (ms: number) => () => Math.floor(ms / 1_000);
  const cookie = { signed: true, httpOnly: true, sameSite: "lax", secure: isHttps, overwrite: true } as const;
  const provider = new Provider(baseUrl, {
    adapter: (kind: string) => createAdapter(app, needs, kind),
    jwks: { keys: [{ ...keys.signing, alg: "EdDSA", use: "sig" }] },
    clientDefaults: { id_token_signed_response_alg: "EdDSA" },
    // The scopes of OpenID Connect; ours belongs to the resource.
    scopes: [],
    responseTypes: ["code"],
    clientAuthMethods: [...AUTH_METHODS],
    enabledJWA: { idTokenSigningAlgValues: ["EdDSA"], clientAuthSigningAlgValues: [...SIGNING_ALGORITHMS] },
    // Its own protection does not work on Bun: what is read for a client comes with its document.
    fetch: () => Promise.reject(new Error("The library fetches nothing.")),
    assertJwtClientAuthClaimsAndHeader(_: unknown, { exp }: { readonly exp: number }) {
      // The library compares it with the machine's time too.
      const isLong = exp * 1_000 > Date.now() + OAUTH_ASSERTION_MS_MAX;
      if (isLong) throw new errors.InvalidClient("a client_assertion may be valid for an hour at most");
    },
    pkce: { required: () => true },
    // A token that was used twice ends the whole connection.
    rotateRefreshToken: true,
    issueRefreshToken: () => true,
    revokeGrantPolicy: () => true,
    expiresWithSession: () => false,
    features: {
      devInteractions: { enabled: false },
      userinfo: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      dPoP: { enabled: false },
      pushedAuthorizationRequests: { enabled: false },
      revocation: {
        enabled: true,
        allowedPolicy: (_: unknown, client: Owned, token: Owned) => client.clientId === token.clientId,
      },
      registration: { enabled: registration, issueRegistrationAccessToken: false },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: (_: unknown, wanted: string) => {
          if (wanted !== resource) throw new errors.InvalidTarget(`the only resource here is ${resource}`);
          const accessTokenTTL = OAUTH_ACCESS_TOKEN_MS_MAX / 1_000;
          return { scope: SCOPE, audience: resource, accessTokenTTL, accessTokenFormat: "opaque" };
        },
      },
    },
    routes: {
      authorization: AUTHORIZE_PATH,
      token: TOKEN_PATH,
      revocation: REVOKE_PATH,
      registration: REGISTER_PATH,
    },
    cookies: {
      keys: [keys.cookie],
      names: { session: SESSION_COOKIE, interaction: "outgate_oauth", resume: "outgate_oauth_resume" },
      short: cookie,
      long: cookie,
    },
    ttl: {
      Interaction: seconds(OAUTH_CONSENT_MS_MAX),
      Session: seconds(OAUTH_CONSENT_MS_MAX),
      AuthorizationCode: seconds(OAUTH_CODE_MS_MAX),
      AccessToken: seconds(OAUTH_ACCESS_TOKEN_MS_MAX),
      RefreshToken: seconds(OAUTH_CONNECTION_MS_MAX),
      IdToken: seconds(OAUTH_CODE_MS_MAX),
      Grant: () => {
        const until = needs.currentPerson()?.until?.getTime() ?? Number.POSITIVE_INFINITY;
        const leftMs = Math.min(until - clock.now().getTime(), OAUTH_CONNECTION_MS_MAX);
        return Math.max(1, Math.floor(leftMs / 1_000));
      },
    },
    interactions: { url: (_: unknown, { uid }: { readonly uid: string }) => `${CONSENT_PATH}/${uid}` },
    renderError: (context: { type: string; body: unknown }, problem: object) => {
      Object.assign(context, { type: "json", body: problem });
    },
    async findAccount(_: unknown, subject: string) {
      const of = keyOfSubject(subject);
      const key = of === null ? null : await store.accounts.findKey(of.accountId, of.keyId);
      if (key === null || key.revokedAt !== null || isStopped(key.accountId)) return undefined;
      if (key.expiresAt !== null && key.expiresAt <= clock.now()) return undefined;
      return { accountId: subject, claims: () => ({ sub: subject }) };
    },
  });
  // Koa prints errors of handlers; they are logged here.
  Object.assign(provider, { silent: true });
  provider.on("server_error", (_, error) => {
    log.error("oauth.failed", { error: error instanceof Error ? error.name : "unknown" });
  });
  return provider;
}

interface Owned {
  readonly clientId: string;
}
