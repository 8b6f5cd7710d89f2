import { AsyncLocalStorage } from "node:async_hooks";
import type { InteractionResults, Provider } from "oidc-provider";
import type { CreateKeyBody } from "../accounts/key-schemas.ts";
import type { KeyService } from "../accounts/keys.ts";
import { DomainError } from "../core/domain-error.ts";
import { RecentMap } from "../core/maps.ts";
import { type Actor, authorize, type Caller } from "../core/roles.ts";
import { storedClient } from "./account-clients.ts";
import {
  OAUTH_CONNECTION_MS_MAX,
  OAUTH_INTERACTIONS_PER_PERSON_MAX,
  OAUTH_PEOPLE_COUNTED_MAX,
} from "../core/limits.ts";
import type { OAuthStore } from "../core/oauth-store.ts";
import { answerBy, type BridgedRequest, type BridgedResponse, nodeExchange } from "./bridge.ts";
import { createClientDocuments, isDocumentAddress, SIGNING_ALGORITHMS } from "./clients.ts";
import type { Sender } from "../outbound/sender.ts";
import {
  artifactId,
  AUTH_METHODS,
  AUTHORIZE_PATH,
  REGISTER_PATH,
  REVOKE_PATH,
  SCOPE,
  shownHost,
  subjectOfKey,
  TOKEN_PATH,
} from "./names.ts";
import type { CurrentPerson, ProviderNeeds } from "./provider.ts";
import type { AppContext } from "../runtime/app-context.ts";

interface OAuthNeeds extends Omit<ProviderNeeds, "readDocument" | "currentPerson"> {
  readonly keyService: KeyService;
  /** Fetches clients' documents, from public addresses only. */
  readonly sender: Sender;
}

/** A client's request for a person's consent. */
export interface ConsentRequest {
  readonly clientId: string;
  /** The client's name for itself; null if it has none. */
  readonly clientName: string | null;
  /** Vouches for the name: the host of the client's document, or the one its answers go to. */
  readonly clientHost: string;
  readonly redirectUri: string;
  /** Which owner of the account added the client, and when; null if none did. */
  readonly added: { readonly by: Actor; readonly at: Date } | null;
}

/** The request for consent was answered, has expired, or was begun in another browser. */
class ConsentGone extends DomainError {
  constructor() {
    super(
      "not_found",
      "This request to connect was answered already, is older than ten minutes, or began in another browser. Go back to the client and connect again.",
    );
  }
}

export type OAuthService = ReturnType<typeof createOAuth>;

/** OAuth for /mcp. The library speaks the protocol, our pages ask for consent, and each connection is an agent key. */
export function createOAuth(app: AppContext, needs: OAuthNeeds) {
  const { clock } = app;
  const { oauth: store } = app.store;
  const { baseUrl } = app.config;
  const { secrets, registration, keyService } = needs;
  const person = new AsyncLocalStorage<CurrentPerson>();
  /** The account to read documents for if nobody is logged in: the one of the code or token shown; null if none was. */
  const shownAccount = new AsyncLocalStorage<string | null>();
  const readDocument = createClientDocuments({ sender: needs.sender, clock });
  const countBegun = createBegunCount(store);
  let making: Promise<Provider> | null = null;

  // Loaded with the first request, because few services have connections and none needs the library to start.
  const provider = () =>
    (making ??= quietly(async () => {
      const { createProvider } = await import("./provider.ts");
      return createProvider(app, {
        ...needs,
        readDocument: (id) => readDocument(id, person.getStore()?.accountId ?? shownAccount.getStore() ?? null),
        currentPerson: () => person.getStore(),
      });
    }));
  const answer = async (request: Omit<BridgedRequest, "origin">): Promise<BridgedResponse> =>
    answerBy((await provider()).callback(), { ...request, origin: baseUrl });

  /** The account of the code or token in a request; null if we issued none of them. */
  const accountShownIn = async (fields: URLSearchParams): Promise<string | null> => {
    for (const [name, kind] of SHOWN) {
      const secret = fields.get(name);
      const found = secret === null ? null : await store.find(artifactId(secrets, kind, secret));
      if (found !== null) return found.accountId;
    }
    return null;
  };

  const addedTo = async (accountId: string, clientId: string): Promise<ConsentRequest["added"]> => {
    const found = isDocumentAddress(clientId) ? null : await store.find(artifactId(secrets, "Client", clientId));
    return found?.accountId === accountId ? { by: storedClient(secrets, found).created_by, at: found.createdAt } : null;
  };

  const openInteraction = async ({ accountId }: Caller, headers: Headers, uid: string) => {
    const made = await provider();
    const exchange = nodeExchange({ ...cookieHeaders(headers), method: "GET", target: "/", body: "", origin: baseUrl });
    const interaction = await made.interactionDetails(exchange.request, exchange.response).catch(() => null);
    if (interaction === null || interaction.uid !== uid || interaction.result !== undefined) throw new ConsentGone();
    const { client_id: clientId, redirect_uri: redirectUri } = interaction.params;
    const client = await person.run({ accountId }, () => made.Client.find(String(clientId))).catch(() => undefined);
    if (client === undefined) throw new ConsentGone();
    const consent: ConsentRequest = {
      clientId: client.clientId,
      clientName: client.clientName ?? null,
      clientHost: clientHost(client.clientId, String(redirectUri)),
      redirectUri: String(redirectUri),
      added: await addedTo(accountId, client.clientId),
    };
    return { made, exchange, consent };
  };

  /** Answers a request for consent once, even if its form is sent twice. */
  const finish = async (
    uid: string,
    { made, exchange }: { readonly made: Provider; readonly exchange: Exchange },
    result: () => Promise<InteractionResults>,
  ): Promise<string> => {
    if (!(await store.consume(artifactId(secrets, "Interaction", uid), clock.now()))) throw new ConsentGone();
    const { request, response } = exchange;
    const address = await made.interactionResult(request, response, await result(), { mergeWithLastSubmission: false });
    return new URL(address).pathname;
  };

  return {
    /** Tells clients about /mcp (RFC 9728). */
    resourceMetadata: {
      resource: `${baseUrl}/mcp`,
      authorization_servers: [baseUrl],
      scopes_supported: [SCOPE],
      bearer_methods_supported: ["header"],
      resource_name: "Outgate",
      resource_documentation: `${baseUrl}/docs/connect`,
    },

    /** Tells clients about the authorization server (RFC 8414). */
    serverMetadata: {
      issuer: baseUrl,
      authorization_endpoint: baseUrl + AUTHORIZE_PATH,
      token_endpoint: baseUrl + TOKEN_PATH,
      revocation_endpoint: baseUrl + REVOKE_PATH,
      ...(registration ? { registration_endpoint: baseUrl + REGISTER_PATH } : {}),
      scopes_supported: [SCOPE],
      response_types_supported: ["code"],
      response_modes_supported: ["query"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      token_endpoint_auth_methods_supported: AUTH_METHODS,
      token_endpoint_auth_signing_alg_values_supported: SIGNING_ALGORITHMS,
      revocation_endpoint_auth_methods_supported: AUTH_METHODS,
      revocation_endpoint_auth_signing_alg_values_supported: SIGNING_ALGORITHMS,
      code_challenge_methods_supported: ["S256"],
      authorization_response_iss_parameter_supported: true,
      client_id_metadata_document_supported: true,
      service_documentation: `${baseUrl}/docs/connect`,
    },

    registration,

    /** Begins a login for a person with a session here. Redirects to the consent page, or back to the client. */
    authorize: (caller: Caller, search: string, headers: Headers): Promise<BridgedResponse> => {
      const target = `${AUTHORIZE_PATH}?${authorizationQuery(search).toString()}`;
      const begin = () => answer({ ...cookieHeaders(headers), method: "GET", target, body: "" });
      const onBegun = (id: string) => countBegun(caller.personId ?? "", id);
      return person.run({ accountId: caller.accountId, onBegun }, begin);
    },

    /** Returns to the client after consent, with a code. */
    async resume(uid: string, headers: Headers): Promise<BridgedResponse> {
      const interaction = await store.find(artifactId(secrets, "Interaction", uid));
      const target = `${AUTHORIZE_PATH}/${uid}`;
      const go = () => answer({ ...cookieHeaders(headers), method: "GET", target, body: "" });
      return shownAccount.run(interaction?.accountId ?? null, go);
    },

    /** Reads what a client asks for. Throws `ConsentGone`. */
    readConsent: async (caller: Caller, uid: string, headers: Headers): Promise<ConsentRequest> =>
      (await openInteraction(caller, headers, uid)).consent,

    /**
     * Creates the connection's key and returns the next URL. For people who may create keys. Calls `prepare` with the key's id
     * before the client can use it. Revokes the key if anything fails. Throws `ConsentGone`, and what creating or preparing
     * the key throws.
     */
    async consent(
      caller: Caller,
      uid: string,
      headers: Headers,
      key: CreateKeyBody,
      prepare: PrepareKey,
    ): Promise<string> {
      authorize(caller, "manage");
      const asked = await openInteraction(caller, headers, uid);
      // Before the request is used up, so that the person can correct the form.
      const latest = new Date(clock.now().getTime() + OAUTH_CONNECTION_MS_MAX);
      const isOfTokens = key.expires_at === undefined || new Date(key.expires_at) > latest;
      // A key ends with its tokens, and lists say so.
      const request = isOfTokens ? { ...key, expires_at: latest.toISOString() } : key;
      // The person may have changed the name of the key, which tells the client.
      const { clientId: oauth_client, redirectUri: redirect_uri } = asked.consent;
      const { row } = await keyService.create(caller, request, null, { oauth_client, redirect_uri });
      const until = row.expiresAt === null ? {} : { until: row.expiresAt };
      const connect = async () => {
        await prepare(row.id);
        return finish(uid, asked, async () => {
          const accountId = subjectOfKey(row);
          const grant = new asked.made.Grant({ accountId, clientId: asked.consent.clientId });
          grant.addResourceScope(`${baseUrl}/mcp`, SCOPE);
          return { login: { accountId, remember: false }, consent: { grantId: await grant.save() } };
        });
      };
      return person.run({ accountId: row.accountId, ...until }, connect).catch(async (error: unknown) => {
        await keyService.revoke(caller, row.id);
        throw error;
      });
    },

    /** Refuses, and returns the next URL. Throws `ConsentGone`. */
    async refuse(caller: Caller, uid: string, headers: Headers): Promise<string> {
      const denied = { error: "access_denied", error_description: "the person did not allow the connection" };
      return finish(uid, await openInteraction(caller, headers, uid), async () => denied);
    },

    /** Answers the endpoints of clients: token, revocation, registration. */
    async answerClient(
      path: string,
      headers: Readonly<Record<string, string>>,
      body: string,
    ): Promise<BridgedResponse> {
      const accountId = path === REGISTER_PATH ? null : await accountShownIn(new URLSearchParams(body));
      return shownAccount.run(accountId, () => answer({ method: "POST", target: path, headers, body }));
    },

    /** The ids of the account's keys that are connections. */
    async connectedKeys(caller: Caller): Promise<ReadonlySet<string>> {
      authorize(caller, "manage");
      const connections = await store.connections(caller.accountId, clock.now());
      return new Set(connections.flatMap(({ keyId }) => keyId ?? []));
    },
  };
}

/**
 * Counts each person's open requests for consent, and removes the oldest beyond `OAUTH_INTERACTIONS_PER_PERSON_MAX`. The store
 * bounds only the account, so one person could use up everybody's. Each node counts its own.
 */
function createBegunCount(store: Pick<OAuthStore, "find" | "remove">) {
  const begunIds = new RecentMap<readonly string[]>(OAUTH_PEOPLE_COUNTED_MAX);
  return async (personId: string, id: string): Promise<void> => {
    const ids = [...(begunIds.get(personId) ?? []), id];
    begunIds.set(personId, ids.slice(-OAUTH_INTERACTIONS_PER_PERSON_MAX));
    const [oldest = ""] = ids;
    if (ids.length <= OAUTH_INTERACTIONS_PER_PERSON_MAX) return;
    // Keeps a request with consent: its end revokes the key if the client never fetches its code.
    if ((await store.find(oldest))?.grantId === null) await store.remove(oldest);
  };
}

/** The form fields that hold a code or token. */
const SHOWN = [
  ["code", "AuthorizationCode"],
  ["refresh_token", "RefreshToken"],
  ["token", "AccessToken"],
  ["token", "RefreshToken"],
] as const;

type PrepareKey = (keyId: string) => Promise<void>;

type Exchange = ReturnType<typeof nodeExchange>;

/** The cookies by which the library knows the browser that began. */
function cookieHeaders(headers: Headers): { readonly headers: Readonly<Record<string, string>> } {
  const cookies = (headers.get("cookie") ?? "").split(";").map((pair) => pair.trim());
  const own = cookies.filter((pair) => pair.startsWith("outgate_oauth"));
  return { headers: own.length === 0 ? {} : { cookie: own.join("; ") } };
}

/** The parameters that we pass on. Repeated ones are passed on as often, and the library refuses them. */
const AUTHORIZATION_PARAMETERS: ReadonlySet<string> = new Set([
  "client_id",
  "redirect_uri",
  "response_type",
  "state",
  "code_challenge",
  "code_challenge_method",
  "resource",
]);

/** The query for the library. Always asks for our one scope, whatever the client asks for. */
function authorizationQuery(search: string): URLSearchParams {
  const given = [...new URLSearchParams(search)];
  const known = given.filter(([name]) => AUTHORIZATION_PARAMETERS.has(name));
  // `prompt=none`: no page may be shown, so there is no consent.
  const isSilent = given.some(([name, value]) => name === "prompt" && value === "none");
  const query = new URLSearchParams([...known, ["scope", SCOPE]]);
  if (isSilent) query.set("prompt", "none");
  return query;
}

/** The host that vouches for a client's name: the one of its document, or of its redirect if it registered itself. */
function clientHost(clientId: string, redirectUri: string): string {
  const url = URL.parse(isDocumentAddress(clientId) ? clientId : redirectUri);
  return url === null ? "" : shownHost(url);
}

/** Hides the library's warning that it was made for another runtime; our tests cover ours. */
async function quietly<Made>(make: () => Promise<Made>): Promise<Made> {
  const { warn, info } = console;
  Object.assign(console, { warn: () => {}, info: () => {} });
  try {
    return await make();
  } finally {
    Object.assign(console, { warn, info });
  }
}
