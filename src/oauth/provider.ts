import { type Adapter, type AdapterPayload, errors, Provider } from "oidc-provider";
import {
  OAUTH_ACCESS_TOKEN_MS_MAX,
  OAUTH_ASSERTION_MS_MAX,
  OAUTH_CODE_MS_MAX,
  OAUTH_CONNECTION_MS_MAX,
  OAUTH_CONSENT_MS_MAX,
  OAUTH_UNUSED_CLIENT_MS,
} from "../core/limits.ts";
import type { Secrets } from "../crypto/secrets.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { type ClientMetadata, isDocumentAddress, SIGNING_ALGORITHMS, UnusableDocument } from "./clients.ts";
import {
  artifactId,
  artifactPlace,
  AUTH_METHODS,
  AUTHORIZE_PATH,
  CONSENT_PATH,
  keyOfSubject,
  openPayload,
  REGISTER_PATH,
  REVOKE_PATH,
  SCOPE,
  SESSION_COOKIE,
  TOKEN_PATH,
} from "./names.ts";
import Type from "typebox";
import { compile } from "../api/check.ts";
import { auditOfSystem } from "../core/audit.ts";
import { DomainError } from "../core/domain-error.ts";
import { hasEnded } from "../core/account-store.ts";
import { OAUTH_KINDS, type OAuthArtifact } from "../core/oauth-store.ts";

/** The person that the library works for. The endpoints of clients have none. */
export interface CurrentPerson {
  readonly accountId: string;
  /** When the connection that they consent to ends; absent before consent, or if it has no end. */
  readonly until?: Date;
  /** Called with the id of each request for consent that they begin. */
  readonly onBegun?: (id: string) => Promise<void>;
}

export interface ProviderNeeds {
  readonly secrets: Pick<Secrets, "hash" | "oauthKeys" | "open" | "seal">;
  readonly registration: boolean;
  readonly isStopped: (accountId: string) => boolean;
  readonly readDocument: (clientId: string) => Promise<ClientMetadata>;
  /** Makes this node refuse a revoked key at once. */
  readonly forget: (keyHash: string) => void;
  readonly currentPerson: () => CurrentPerson | undefined;
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
    adapter: (kind) => createAdapter(app, needs, kind),
    jwks: { keys: [{ ...keys.signing, alg: "EdDSA", use: "sig" }] },
    clientDefaults: { id_token_signed_response_alg: "EdDSA" },
    // OpenID Connect scopes: none. Our scope belongs to the resource.
    scopes: [],
    responseTypes: ["code"],
    clientAuthMethods: [...AUTH_METHODS],
    enabledJWA: { idTokenSigningAlgValues: ["EdDSA"], clientAuthSigningAlgValues: [...SIGNING_ALGORITHMS] },
    // The library's own protection does not work on Bun. We fetch a client's keys with its document.
    fetch: () => Promise.reject(new Error("The library fetches nothing.")),
    assertJwtClientAuthClaimsAndHeader(_, { exp }) {
      // The machine's time, which the library compares with too. It has checked that this is a number.
      const isLong = Number(exp) * 1_000 > Date.now() + OAUTH_ASSERTION_MS_MAX;
      if (isLong) throw new errors.InvalidClient("a client_assertion may be valid for an hour at most");
    },
    pkce: { required: () => true },
    // Using a token twice ends the whole connection.
    rotateRefreshToken: true,
    issueRefreshToken: () => true,
    expiresWithSession: () => false,
    features: {
      devInteractions: { enabled: false },
      userinfo: { enabled: false },
      rpInitiatedLogout: { enabled: false },
      dPoP: { enabled: false },
      pushedAuthorizationRequests: { enabled: false },
      revocation: { enabled: true, allowedPolicy: (_, client, token) => client.clientId === token.clientId },
      registration: { enabled: registration, issueRegistrationAccessToken: false },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, wanted) => {
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
    interactions: { url: (_, { uid }) => `${CONSENT_PATH}/${uid}` },
    renderError: (context, problem) => {
      Object.assign(context, { type: "json", body: problem });
    },
    async findAccount(_, subject) {
      const of = keyOfSubject(subject);
      const key = of === null ? null : await store.accounts.findKey(of.accountId, of.keyId);
      if (key === null || hasEnded(key, clock.now()) || isStopped(key.accountId)) return undefined;
      return { accountId: subject, claims: () => ({ sub: subject }) };
    },
  });
  // Keeps Koa from printing errors, which we log ourselves.
  Object.assign(provider, { silent: true });
  provider.on("server_error", (_, error) => {
    log.error("oauth.failed", { error: error instanceof Error ? error.name : "unknown" });
  });
  return provider;
}

const CONSENTED = compile(
  Type.Object({
    result: Type.Object({
      login: Type.Object({ accountId: Type.String() }),
      consent: Type.Object({ grantId: Type.String() }),
    }),
  }),
);

/** Keeps one of the library's models in our store. Payloads are sealed, and found by the hash of their secret name. */
function createAdapter(app: AppContext, needs: ProviderNeeds, name: string): Adapter {
  const { clock } = app;
  const { oauth: store } = app.store;
  const { secrets, readDocument, forget, currentPerson } = needs;
  const kind = OAUTH_KINDS.find((one) => one === name);
  // Sessions, and models of features that are off.
  if (kind === undefined) return NOTHING;
  const storedId = (id: string) => artifactId(secrets, kind, id);

  /** Ends the connection of a grant, by the grant's id in the store. */
  const endConnection = async (id: string): Promise<void> => {
    const grant = await store.find(id);
    if (grant === null) return;
    const at = clock.now();
    const entry = { kind: "key_revoked", subject: grant.keyId ?? "", detail: { unfinished: "keep" } } as const;
    const key = await store.endGrant(id, { at, by: "system", audit: auditOfSystem(grant.accountId, entry, at) });
    if (key !== null) forget(key.hash);
  };
  const storedGrantId = (grantId: string) => artifactId(secrets, "Grant", grantId);
  const endGrant = (grantId: string) => endConnection(storedGrantId(grantId));

  /** How far the clock of all nodes is ahead of the machine's, which the library reads. */
  const aheadSeconds = () => Math.round((clock.now().getTime() - Date.now()) / 1_000);

  const read = (artifact: OAuthArtifact): AdapterPayload => {
    const payload = openPayload(secrets, artifact);
    const { consumedAt } = artifact;
    const consumed = consumedAt === null ? {} : { consumed: Math.floor(consumedAt.getTime() / 1_000) };
    return laterBy(-aheadSeconds(), { ...payload, ...consumed });
  };

  const findClient = async (clientId: string): Promise<AdapterPayload | undefined> => {
    if (isDocumentAddress(clientId)) {
      const found = await readDocument(clientId).catch((error: unknown) => {
        if (error instanceof UnusableDocument) throw new errors.InvalidClient(error.message);
        throw error;
      });
      return { ...found };
    }
    const found = await store.find(storedId(clientId));
    const person = currentPerson();
    const isFound = found !== null && found.kind === "Client" && found.expiresAt > clock.now();
    // Only people of its account may use an account's client. Later requests belong to one of its connections.
    const isTheirs = person === undefined || found?.accountId === "" || found?.accountId === person.accountId;
    if (isFound && isTheirs) return read(found);
    if (person === undefined) return undefined;
    throw new errors.InvalidClient(
      "this account has no client with this id. Check the id, or switch to the account that has it",
    );
  };

  /** Keeps a client that registered itself for as long as its connections. */
  const keepClient = async (clientId: unknown, exp: unknown): Promise<void> => {
    const client = await store.find(artifactId(secrets, "Client", String(clientId)));
    const until = new Date(Number(exp) * 1_000);
    if (client !== null && client.expiresAt < until) await store.put({ ...client, expiresAt: until });
  };

  return {
    ...NOTHING,
    async upsert(raw, given) {
      const id = storedId(raw);
      const payload = laterBy(aheadSeconds(), given);
      // After consent, the request belongs to the connection. If the client never fetches its code, both end together.
      const consented = CONSENTED.accepts(payload) ? payload.result : null;
      const { exp, grantId = consented?.consent.grantId, accountId: subject = consented?.login.accountId } = payload;
      const key = keyOfSubject(subject);
      // Before there is a key, a request for consent belongs to the account of the person asked.
      const accountId = IS_OF_NOBODY.has(kind) ? "" : (key?.accountId ?? currentPerson()?.accountId ?? "");
      const itsGrant = typeof grantId === "string" ? storedGrantId(grantId) : null;
      const isStored = await store.put({
        id,
        kind,
        accountId,
        keyId: key?.keyId ?? null,
        grantId: kind === "Grant" ? id : itsGrant,
        sealedPayload: secrets.seal(JSON.stringify(payload), artifactPlace(id)),
        createdAt: clock.now(),
        consumedAt: null,
        expiresAt:
          typeof exp === "number" ? new Date(exp * 1_000) : new Date(clock.now().getTime() + OAUTH_UNUSED_CLIENT_MS),
      });
      if (isStored && kind === "Grant") await keepClient(payload.clientId, exp);
      if (isStored && kind === "Interaction") await currentPerson()?.onBegun?.(id);
      if (isStored) return;
      // Another request used the assertion after the library looked for it.
      if (kind === "ReplayDetection") throw new errors.InvalidClientAuth();
      if (kind === "Client") throw new errors.TemporarilyUnavailable("too many clients have registered here");
      if (kind === "Grant") throw new DomainError("forbidden", "You can no longer connect clients to this account.");
      throw new errors.InvalidGrant("the connection has ended");
    },
    async find(raw) {
      if (kind === "Client") return findClient(raw);
      const found = await store.find(storedId(raw));
      return found === null || found.kind !== kind ? undefined : read(found);
    },
    async consume(raw) {
      const id = storedId(raw);
      if (await store.consume(id, clock.now())) return;
      // Another request used it after it was read.
      const { grantId = null } = (await store.find(id)) ?? {};
      if (grantId !== null) await endConnection(grantId);
      throw new errors.InvalidGrant("it was already used");
    },
    destroy: async (raw) => (kind === "Grant" ? endGrant(raw) : store.remove(storedId(raw))),
    // Ends the connection with all of its tokens.
    revokeByGrantId: endGrant,
  };
}

/** The times in a payload, in seconds. */
const TIMES = ["exp", "iat", "iiat", "consumed"] as const;

function laterBy(seconds: number, payload: AdapterPayload): AdapterPayload {
  const later = TIMES.flatMap((name) => {
    const time: unknown = payload[name];
    return typeof time === "number" ? [[name, time + seconds] as const] : [];
  });
  return { ...payload, ...Object.fromEntries(later) };
}

const IS_OF_NOBODY: ReadonlySet<string> = new Set(["Client", "ReplayDetection"]);

const NOTHING: Adapter = {
  upsert: async () => {},
  find: async () => undefined,
  findByUid: async () => undefined,
  findByUserCode: async () => undefined,
  consume: async () => {},
  destroy: async () => {},
  revokeByGrantId: async () => {},
};
