import { AsyncLocalStorage } from "node:async_hooks";
import type Provider from "oidc-provider";
import type { CreateKey, KeyService } from "../accounts/keys.ts";
import { DomainError } from "../core/domain-error.ts";
import { type Actor, authorize, type Caller } from "../core/roles.ts";
import { clientCreator } from "./account-clients.ts";
import { OAUTH_INTERACTIONS_PER_PERSON_MAX, OAUTH_PEOPLE_COUNTED_MAX } from "../core/limits.ts";
import type { OAuthStore } from "../core/oauth-store.ts";
import { answerBy, type BridgedRequest, type BridgedResponse, nodeExchange } from "./bridge.ts";
import { createClientDocuments, isDocumentAddress, SIGNING_ALGORITHMS } from "./clients.ts";
import type { Sender } from "../outbound/deadline.ts";
import {
  artifactId,
  AUTH_METHODS,
  AUTHORIZE_PATH,
  REGISTER_PATH,
  REVOKE_PATH,
  SCOPE,
  SESSION_COOKIE,
  shownHost,
  subjectOfKey,
  TOKEN_PATH,
} from "./names.ts";
import type { CurrentPerson, ProviderNeeds } from "./provider.ts";
import type { AppContext } from "../runtime/app-context.ts";

interface OAuthNeeds extends Omit<ProviderNeeds, "readDocument" | "currentPerson"> {
  readonly keyService: KeyService;
  /** Reads the documents of clients: public addresses alone. */
  readonly sender: Sender;
}

/** A request of a client for the consent of a person. */
export interface ConsentRequest {
  readonly clientId: string;
  /** As the client calls itself; null: it has no name. */
  readonly clientName: string | null;
  /** Who vouches for the name: the host of the client's document, or where its answers go. */
  readonly clientHost: string;
  readonly redirectUri: string;
  /** By which owner of the account it was added, and when; null: nobody here has. */
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

/** The library does the protocol, our pages the consent; a connection is an agent's key, with all that holds for keys. */
export function createOAuth(app: AppContext, needs: OAuthNeeds) {
  const { clock } = app;
  const { oauth: store } = app.store;
  const { baseUrl } = app.config;
  const { secrets, registration, keyService } = needs;
  const person = new AsyncLocalStorage<CurrentPerson>();
  /** The account for which documents are read where nobody is logged in: that of the code or token shown; null: none was. */
  const shownOf = new AsyncLocalStorage<string | null>();
  const readDocument = createClientDocuments({ sender: needs.sender, clock });
  const countBegun = createBegunCount(store);
  let making: Promise<Provider> | null = null;

  // Loaded by the first request: few services have connections, and none needs the library to start.
  const provider = () =>
    (making ??= quietly(async () => {
      const { createProvider } = await import("./provider.ts");
      return createProvider(app, {
        ...needs,
        readDocument: (id) => readDocument(id, person.getStore()?.accountId ?? shownOf.getStore() ?? null),
        currentPerson: () => person.getStore(),
      });
    }));
  const answer = async (request: Omit<BridgedRequest, "origin">): Promise<BridgedResponse> =>
    answerBy((await provider()).callback(), { ...request, origin: baseUrl });

  /** The account of a code or token that a request shows; null: none was given out here. */
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
    return found?.accountId === accountId ? { by: clientCreator(secrets, found), at: found.createdAt } : null;
  };

  const interactionOf = async ({ accountId }: Caller, headers: Headers, uid: string) => {
    const made = await provider();
    const exchange = nodeExchange({ ...cookiesOf(headers), method: "GET", target: "/", body: "", origin: baseUrl });
    const interaction = await made.interactionDetails(exchange.request, exchange.response).catch(() => null);
    if (interaction === null || interaction.uid !== uid || interaction.result !== undefined) throw new ConsentGone();
    const { client_id: clientId, redirect_uri: redirectUri } = interaction.params;
    const client = await person.run({ accountId }, () => made.Client.find(String(clientId))).catch(() => undefined);
    if (client === undefined) throw new ConsentGone();
    const consent: ConsentRequest = {
      clientId: client.clientId,
      clientName: client.clientName ?? null,
      clientHost: hostOf(client.clientId, String(redirectUri)),
      redirectUri: String(redirectUri),
      added: await addedTo(accountId, client.clientId),
    };
    return { made, exchange, consent };
  };

  /** Answers a request once; of a form that is sent twice, one. */
  const finish = async (
    uid: string,
    { made, exchange }: { readonly made: Provider; readonly exchange: Exchange },
    result: () => Promise<object>,
  ): Promise<string> => {
    if (!(await store.consume(artifactId(secrets, "Interaction", uid), clock.now()))) throw new ConsentGone();
    const { request, response } = exchange;
    const address = await made.interactionResult(request, response, await result(), { mergeWithLastSubmission: false });
    return new URL(address).pathname;
  };

  return {
    /** What a client learns of /mcp (RFC 9728). */
    resourceMetadata: {
      resource: `${baseUrl}/mcp`,
      authorization_servers: [baseUrl],
      scopes_supported: [SCOPE],
      bearer_methods_supported: ["header"],
      resource_name: "Outgate",
      resource_documentation: `${baseUrl}/docs/connect`,
    },

    /** What a client learns of the authorization server (RFC 8414). */
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

    /** Begins a log-in of somebody who is logged in here: an answer that leads to the consent page, or back to the client. */
    authorize: (caller: Caller, search: string, headers: Headers): Promise<BridgedResponse> => {
      const target = `${AUTHORIZE_PATH}?${authorizationQuery(search).toString()}`;
      const begin = () => answer({ ...cookiesOf(headers), method: "GET", target, body: "" });
      const onBegun = (id: string) => countBegun(caller.personId ?? "", id);
      return person.run({ accountId: caller.accountId, onBegun }, begin);
    },

    /** Goes on after consent: back to the client, with a code. */
    async resume(uid: string, headers: Headers): Promise<BridgedResponse> {
      const interaction = await store.find(artifactId(secrets, "Interaction", uid));
      const target = `${AUTHORIZE_PATH}/${uid}`;
      const go = () => answer({ ...cookiesOf(headers), method: "GET", target, body: "" });
      return shownOf.run(interaction?.accountId ?? null, go);
    },

    /** What a client asks for. Throws `ConsentGone`. */
    consentOf: async (caller: Caller, uid: string, headers: Headers): Promise<ConsentRequest> =>
      (await interactionOf(caller, headers, uid)).consent,

    /**
     * Creates the key that the connection is, and returns where to go on. For people who may create keys. `prepare` is called
     * with the id of the key before the client can use it. Where anything fails, the key is revoked. Throws
     * `ConsentGone`, and what creating a key or preparing it throws.
     */
    async consent(caller: Caller, uid: string, headers: Headers, key: CreateKey, prepare: PrepareKey): Promise<string> {
      authorize(caller, "manage");
      const asked = await interactionOf(caller, headers, uid);
      // Before the request is used up, so that what is wrong with the form can be corrected.
      const { row } = await keyService.create(caller, key);
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

    /** Refuses, and returns where to go on. Throws `ConsentGone`. */
    async refuse(caller: Caller, uid: string, headers: Headers): Promise<string> {
      const denied = { error: "access_denied", error_description: "the person did not allow the connection" };
      return finish(uid, await interactionOf(caller, headers, uid), async () => denied);
    },

    /** Answers the endpoints of clients: token, revocation, registration. */
    async answerClient(
      path: string,
      headers: Readonly<Record<string, string>>,
      body: string,
    ): Promise<BridgedResponse> {
      const accountId = path === REGISTER_PATH ? null : await accountShownIn(new URLSearchParams(body));
      return shownOf.run(accountId, () => answer({ method: "POST", target: path, headers, body }));
    },

    /** The ids of the keys that are connections of the account. */
    async connectedKeys(caller: Caller): Promise<ReadonlySet<string>> {
      authorize(caller, "manage");
      const connections = await store.connections(caller.accountId, clock.now());
      return new Set(connections.flatMap(({ keyId }) => keyId ?? []));
    },
  };
}

/**
 * Counts the requests for consent that each person has begun, and removes the oldest beyond `OAUTH_INTERACTIONS_PER_PERSON_MAX`: the
 * store's bound is of the account, and anybody in it can begin some. Each node counts by itself.
 */
function createBegunCount(store: Pick<OAuthStore, "find" | "remove">) {
  const idsOf = new Map<string, readonly string[]>();
  return async (personId: string, id: string): Promise<void> => {
    const ids = [...(idsOf.get(personId) ?? []), id];
    // To the end of the map: those who began last are remembered.
    idsOf.delete(personId);
    idsOf.set(personId, ids.slice(-OAUTH_INTERACTIONS_PER_PERSON_MAX));
    const [longestAgo = ""] = idsOf.keys();
    if (idsOf.size > OAUTH_PEOPLE_COUNTED_MAX) idsOf.delete(longestAgo);
    const [oldest = ""] = ids;
    if (ids.length <= OAUTH_INTERACTIONS_PER_PERSON_MAX) return;
    // One with consent stays: by it the key is revoked if the client never comes for its code.
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
function cookiesOf(headers: Headers): { readonly headers: Readonly<Record<string, string>> } {
  const cookies = (headers.get("cookie") ?? "").split(";").map((pair) => pair.trim());
  const own = cookies.filter((pair) => pair.startsWith("outgate_oauth") && !pair.startsWith(SESSION_COOKIE));
  return { headers: own.length === 0 ? {} : { cookie: own.join("; ") } };
}

/** What we read of a request, each as often as it was given: the library refuses what is there twice. */
const AUTHORIZATION_PARAMETERS: ReadonlySet<string> = new Set([
  "client_id",
  "redirect_uri",
  "response_type",
  "state",
  "code_challenge",
  "code_challenge_method",
  "resource",
]);

/** There is one scope, which every connection has, whatever a client asks for. */
function authorizationQuery(search: string): URLSearchParams {
  const given = [...new URLSearchParams(search)];
  const known = given.filter(([name]) => AUTHORIZATION_PARAMETERS.has(name));
  // Without a page, there is no consent.
  const isSilent = given.some(([name, value]) => name === "prompt" && value === "none");
  const query = new URLSearchParams([...known, ["scope", SCOPE]]);
  if (isSilent) query.set("prompt", "none");
  return query;
}

/** The host that vouches for the name of a client; of one that registered itself, where its answers go. */
function hostOf(clientId: string, redirectUri: string): string {
  const url = URL.parse(isDocumentAddress(clientId) ? clientId : redirectUri);
  return url === null ? "" : shownHost(url);
}

/** The library says at its start that it was made for another runtime, which our tests cover. */
async function quietly<Made>(make: () => Promise<Made>): Promise<Made> {
  const { warn, info } = console;
  Object.assign(console, { warn: () => {}, info: () => {} });
  try {
    return await make();
  } finally {
    Object.assign(console, { warn, info });
  }
}
