import Type, { type Static } from "typebox";
import * as t from "../api/schema-helpers.ts";
import { toJson } from "../api/serializer.ts";
import { auditEntry } from "../core/audit.ts";
import { accountFull, DomainError, invalidFields, notFound } from "../core/domain-error.ts";
import { OAUTH_CLIENTS_PER_ACCOUNT_MAX, OAUTH_REDIRECTS_MAX, URL_CHARS_MAX } from "../core/limits.ts";
import type { OAuthArtifact } from "../core/oauth-store.ts";
import { type Actor, authorize, type Caller } from "../core/roles.ts";
import type { Authenticate } from "../core/session.ts";
import type { Secrets } from "../crypto/secrets.ts";
import { createApiRoutes, jsonBody, operation, optionalBody, pathParams } from "../http/operation.ts";
import { jsonResponse, noContent } from "../http/response.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { BAD_REDIRECT, type ClientMetadata, clientMetadata, isUsableRedirect } from "./clients.ts";
import { artifactId, artifactPlace, openPayload } from "./names.ts";

const OAuthClientId = t.idSchema("ocl", "The client id.");

const clientName = t.nameSchema("Name of the client, which people see when they connect it.");

const redirectUriList = t.shortList(
  t.shortText(URL_CHARS_MAX, "A redirect URI.", "https://client.example.com/callback"),
  OAUTH_REDIRECTS_MAX,
  "Where answers to it may go, each compared as a text: https, http on loopback, where any port fits, or a scheme of an app; without a fragment or a user.",
  ["https://client.example.com/callback"],
);

const clientType = t.choice(
  ["public", "confidential"],
  "Whether it can keep a secret: a server can, a program on someone’s machine or in a browser can’t. Both use PKCE.",
  "confidential",
);

export const CreateOAuthClientBody = t.requestObject(
  "CreateOAuthClient",
  "A client that people of the account can connect by OAuth.",
  { name: clientName, redirect_uris: redirectUriList, type: clientType },
  {
    examples: [
      { name: "Workflows", redirect_uris: ["https://client.example.com/callback"], type: "confidential" as const },
    ],
  },
);

export type CreateOAuthClientBody = Static<typeof CreateOAuthClientBody>;

/** A client that an owner has added. Only people of its account can connect it. */
export type AccountClient = Awaited<ReturnType<OAuthClientService["list"]>>[number];

/** The sealed payload: the client as the library reads it, and who added it, which the library ignores. */
interface StoredClient extends ClientMetadata {
  readonly client_name: string;
  readonly client_secret?: string;
  readonly created_by: Actor;
}

type ConnectionsByClient = ReadonlyMap<unknown, readonly OAuthArtifact[]>;

/** Clients that owners add don't expire. */
const NEVER = new Date("9999-12-31T00:00:00Z");

export type OAuthClientService = ReturnType<typeof createOAuthClientService>;

/** Clients that owners add, for software without a metadata document. Owners can change them even while OAuth is off. */
export function createOAuthClientService(app: AppContext, secrets: Secrets, forget: Authenticate["forget"]) {
  const { clock, ids } = app;
  const { oauth: store } = app.store;
  const connectionsByClient = async (accountId: string): Promise<ConnectionsByClient> =>
    Map.groupBy(await store.connections(accountId, clock.now()), (grant) => openPayload(secrets, grant)["clientId"]);

  const toView = (artifact: OAuthArtifact, connections: ConnectionsByClient) => {
    const stored = storedClient(secrets, artifact);
    return {
      id: stored.client_id,
      name: stored.client_name,
      redirectUris: stored.redirect_uris,
      type: stored.client_secret === undefined ? ("public" as const) : ("confidential" as const),
      connections: connections.get(stored.client_id)?.length ?? 0,
      createdAt: artifact.createdAt,
      createdBy: stored.created_by,
    };
  };

  /** Throws `not_found`. */
  const find = async (caller: Caller, clientId: string) => {
    authorize(caller, "manage");
    const id = artifactId(secrets, "Client", clientId);
    const artifact = (await store.clients(caller.accountId)).find((one) => one.id === id);
    if (artifact === undefined) throw notFound("client");
    return { artifact, stored: storedClient(secrets, artifact) };
  };

  const endConnections = async (caller: Caller, clientId: string): Promise<void> => {
    const grants = (await connectionsByClient(caller.accountId)).get(clientId) ?? [];
    for (const { id, keyId } of grants) {
      const at = clock.now();
      const entry = { kind: "key_revoked", subject: keyId ?? "", detail: { unfinished: "keep" } } as const;
      const key = await store.endGrant(id, { at, by: caller.actor, audit: auditEntry(caller, entry, at) });
      if (key !== null) forget(key.hash);
    }
  };

  return {
    /** The account's clients, oldest first, without their secrets. */
    async list(caller: Caller) {
      authorize(caller, "manage");
      const { accountId } = caller;
      const [clients, connections] = await Promise.all([store.clients(accountId), connectionsByClient(accountId)]);
      return clients.map((client) => toView(client, connections));
    },

    /** Returns the secret, shown only now; null for a public client. Throws `validation_error`, also beyond `OAUTH_CLIENTS_PER_ACCOUNT_MAX`. */
    async add(caller: Caller, { name, redirect_uris, type }: CreateOAuthClientBody) {
      authorize(caller, "manage");
      const issues = redirect_uris.flatMap((uri, at) =>
        isUsableRedirect(uri) ? [] : [{ field: `redirect_uris.${at}`, message: BAD_REDIRECT }],
      );
      if (issues.length > 0) throw invalidFields(issues);
      const { accountId, actor: created_by } = caller;
      const createdAt = clock.now();
      const clientId = ids.oauthClient();
      const secret = type === "confidential" ? secrets.newToken() : null;
      const metadata = { client_name: name, redirect_uris: [...new Set(redirect_uris)] };
      const stored = {
        // `client_secret_basic`: the library accepts the secret in the header or in the body.
        ...clientMetadata(clientId, metadata, secret === null ? "none" : "client_secret_basic"),
        client_name: name,
        ...(secret === null ? {} : { client_secret: secret }),
        created_by,
      } satisfies StoredClient;
      const id = artifactId(secrets, "Client", clientId);
      const artifact: OAuthArtifact = {
        id,
        kind: "Client",
        accountId,
        keyId: null,
        grantId: null,
        sealedPayload: secrets.seal(JSON.stringify(stored), artifactPlace(id)),
        createdAt,
        consumedAt: null,
        expiresAt: NEVER,
      };
      const entry = { kind: "oauth_client_added", subject: clientId, detail: { name, type } } as const;
      if (!(await store.addClient(artifact, auditEntry(caller, entry, createdAt)))) {
        throw accountFull(OAUTH_CLIENTS_PER_ACCOUNT_MAX, "clients", "Delete one first.");
      }
      return { ...toView(artifact, new Map()), secret };
    },

    /** Ends the old secret at once; tokens stay valid. Throws `not_found`, and `validation_error` for a public client. */
    async replaceSecret(caller: Caller, clientId: string) {
      const { artifact, stored } = await find(caller, clientId);
      if (stored.client_secret === undefined) {
        throw new DomainError("validation_error", "This client is public: it has no secret.");
      }
      const secret = secrets.newToken();
      const payload = JSON.stringify({ ...stored, client_secret: secret });
      const changed = { ...artifact, sealedPayload: secrets.seal(payload, artifactPlace(artifact.id)) };
      const client = toView(changed, await connectionsByClient(caller.accountId));
      const entry = { kind: "oauth_client_changed", subject: clientId, detail: { name: client.name } } as const;
      if (!(await store.changeClient(changed, auditEntry(caller, entry, clock.now())))) throw notFound("client");
      return { ...client, secret };
    },

    /** Deletes a client and ends its connections, so that their keys are revoked. Throws `not_found`. */
    async remove(caller: Caller, clientId: string): Promise<void> {
      const { artifact, stored } = await find(caller, clientId);
      // Connections first: after a crash in between, the client can still be deleted.
      await endConnections(caller, clientId);
      const entry = { kind: "oauth_client_removed", subject: clientId, detail: { name: stored.client_name } } as const;
      if (!(await store.removeClient(caller.accountId, artifact.id, auditEntry(caller, entry, clock.now()))))
        throw notFound("client");
      // Ends the connections made meanwhile. Without the client, no code gives tokens any more.
      await endConnections(caller, clientId);
    },
  };
}

export function storedClient(secrets: Pick<Secrets, "open">, artifact: OAuthArtifact): StoredClient {
  const stored: unknown = openPayload(secrets, artifact);
  // Safe: `add` sealed it.
  return stored as StoredClient;
}

const members = {
  id: OAuthClientId,
  name: clientName,
  redirect_uris: redirectUriList,
  type: clientType,
  connections: t.quantity("How many connections it has.", 1),
  created_at: t.dateTime("When it was added."),
  created_by: t.plainText("Who added it.", "user:ann@example.com"),
};

const OAuthClientJson = t.answerObject("OAuthClient", "A client that an owner has added.", members);

export const NewOAuthClientJson = t.answerObject("NewOAuthClient", "A client that was just added, with its secret.", {
  ...members,
  secret: t.nullable(
    t.plainText(
      "The client secret, shown only once; null for a public client.",
      "0f3a51c2de9b4b6f8d7c1e2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e",
    ),
  ),
});

export const OAuthClientListJson = t.answerObject(
  "OAuthClientList",
  "The clients that the account's owners have added.",
  {
    data: Type.Array(OAuthClientJson, {
      maxItems: OAUTH_CLIENTS_PER_ACCOUNT_MAX,
      description: "The clients, oldest first.",
    }),
  },
);

export const OAuthClientParams = pathParams(Type.Object({ id: OAuthClientId }), "There is no such client.");

export function oauthClientRoutes({ oauthClients }: { readonly oauthClients: OAuthClientService }) {
  return createApiRoutes()
    .get(
      "/v1/oauth-clients",
      async ({ caller }) => jsonResponse(toJson(OAuthClientListJson, { data: await oauthClients.list(caller) })),
      operation({
        operationId: "listOAuthClients",
        permission: "manage",
        summary: "List the OAuth clients of the account",
        description: "Lists the clients that owners have added, without their secrets.",
        notes: ["Clients with a metadata document, or that registered themselves, belong to no account."],
        answers: { 200: { description: "The clients.", schema: OAuthClientListJson } },
      }),
    )
    .post(
      "/v1/oauth-clients",
      async ({ caller, body }) => jsonResponse(toJson(NewOAuthClientJson, await oauthClients.add(caller, body)), 201),
      operation({
        operationId: "createOAuthClient",
        permission: "manage",
        summary: "Add an OAuth client",
        description: "Adds a client for software that has no metadata document. People of the account connect it.",
        notes: ["The answer shows the secret of a confidential client once."],
        body: jsonBody(CreateOAuthClientBody),
        answers: { 201: { description: "The client, with its secret.", schema: NewOAuthClientJson } },
      }),
    )
    .post(
      "/v1/oauth-clients/:id/secret",
      async ({ caller, params }) =>
        jsonResponse(toJson(NewOAuthClientJson, await oauthClients.replaceSecret(caller, params.id)), 200, {
          "cache-control": "no-store",
        }),
      operation({
        operationId: "replaceOAuthClientSecret",
        permission: "manage",
        summary: "Replace the secret of an OAuth client",
        description: "Gives a confidential client a new secret. Only this response shows it. Takes no body.",
        notes: [
          "The old secret is refused at once. Connections stay: the client needs the new secret for its next token.",
          "A public client has no secret: it gets 400.",
        ],
        params: OAuthClientParams,
        body: optionalBody(t.NoBody),
        answers: {
          200: {
            description: "The client, with its new secret.",
            schema: NewOAuthClientJson,
            headers: ["Cache-Control"],
          },
        },
      }),
    )
    .delete(
      "/v1/oauth-clients/:id",
      ({ caller, params }) => noContent(oauthClients.remove(caller, params.id)),
      operation({
        operationId: "removeOAuthClient",
        permission: "manage",
        summary: "Delete an OAuth client",
        description:
          "Deletes a client and ends its connections: their keys are revoked. What its connections have left unfinished stays.",
        params: OAuthClientParams,
        answers: { 204: { description: "The client is gone.", schema: null } },
      }),
    );
}
