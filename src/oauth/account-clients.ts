import { auditOf } from "../core/audit.ts";
import { DomainError, invalidFields, notFound, accountFull } from "../core/domain-error.ts";
import { OAUTH_CLIENTS_PER_ACCOUNT_MAX } from "../core/limits.ts";
import type { OAuthArtifact, OAuthStore } from "../core/oauth-store.ts";
import { type Actor, authorize, type Caller } from "../core/roles.ts";
import type { Authenticate } from "../core/session.ts";
import type { Secrets } from "../crypto/secrets.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { BAD_REDIRECT, type ClientMetadata, clientMetadata, isUsableRedirect } from "./clients.ts";
import { artifactId, payloadOf, artifactPlace } from "./names.ts";
import type { CreateOAuthClient } from "./schemas.ts";

/** A client that an owner has added by hand. Only people of its account can connect it. */
export interface AccountClient {
  readonly id: string;
  readonly name: string;
  readonly redirectUris: readonly string[];
  readonly isConfidential: boolean;
  /** How many connections it has. */
  readonly connections: number;
  readonly createdAt: Date;
  readonly createdBy: Actor;
}

export interface NewAccountClient {
  readonly client: AccountClient;
  /** In plain text, shown once; null: the client is public. */
  readonly secret: string | null;
}

/** What is sealed: what the library reads of a client, and who added it, which it ignores. */
interface StoredClient extends ClientMetadata {
  readonly client_name: string;
  readonly client_secret?: string;
  readonly created_by: Actor;
}

type ConnectionsByClient = ReadonlyMap<unknown, readonly OAuthArtifact[]>;

/** A client of an account stays until it is deleted. */
const NEVER = new Date("9999-12-31T00:00:00Z");

interface AccountClientDeps extends Pick<AppContext, "clock" | "ids"> {
  readonly store: OAuthStore;
  readonly secrets: Pick<Secrets, "hash" | "newToken" | "open" | "seal">;
  /** Applies at once that a key was revoked. */
  readonly forget: Authenticate["forget"];
}

export type OAuthClientService = ReturnType<typeof createOAuthClientService>;

/** Clients that owners add, for software that has no metadata document. Also while OAuth is off, when none can log in. */
export function createOAuthClientService({ store, secrets, clock, ids, forget }: AccountClientDeps) {
  const connectionsByClient = async (accountId: string): Promise<ConnectionsByClient> =>
    Map.groupBy(await store.connections(accountId, clock.now()), (grant) => payloadOf(secrets, grant)["clientId"]);

  const viewOf = (artifact: OAuthArtifact, connections: ConnectionsByClient): AccountClient => {
    const stored = storedClient(secrets, artifact);
    return {
      id: stored.client_id,
      name: stored.client_name,
      redirectUris: stored.redirect_uris,
      isConfidential: stored.client_secret !== undefined,
      connections: connections.get(stored.client_id)?.length ?? 0,
      createdAt: artifact.createdAt,
      createdBy: stored.created_by,
    };
  };

  const list = async (caller: Caller): Promise<readonly AccountClient[]> => {
    authorize(caller, "manage");
    const [clients, connections] = await Promise.all([
      store.clients(caller.accountId),
      connectionsByClient(caller.accountId),
    ]);
    return clients.map((client) => viewOf(client, connections));
  };

  const endConnections = async (caller: Caller, clientId: string): Promise<void> => {
    const grants = (await connectionsByClient(caller.accountId)).get(clientId) ?? [];
    for (const { id, keyId } of grants) {
      const at = clock.now();
      const entry = { kind: "key_revoked", subject: keyId ?? "", detail: { unfinished: "keep" } } as const;
      const key = await store.endGrant(id, { at, by: caller.actor, audit: auditOf(caller, entry, at) });
      if (key !== null) forget(key.hash);
    }
  };

  return {
    /** The account's clients, oldest first, without their secrets. */
    list,

    /** Throws `validation_error`, also beyond `OAUTH_CLIENTS_PER_ACCOUNT_MAX`. */
    async add(caller: Caller, { name, redirect_uris, type }: CreateOAuthClient): Promise<NewAccountClient> {
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
        // With a secret, the library takes it in the header and in the body.
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
      if (!(await store.addClient(artifact, auditOf(caller, entry, createdAt)))) {
        throw accountFull(OAUTH_CLIENTS_PER_ACCOUNT_MAX, "clients", "Delete one first.");
      }
      return { client: viewOf(artifact, new Map()), secret };
    },

    /**
     * Gives a confidential client a new secret. The old one is refused at once; access tokens stay valid until they expire. Throws
     * `not_found`, and `validation_error` for a public client.
     */
    async replaceSecret(caller: Caller, clientId: string): Promise<NewAccountClient> {
      authorize(caller, "manage");
      const id = artifactId(secrets, "Client", clientId);
      const artifact = (await store.clients(caller.accountId)).find((one) => one.id === id);
      if (artifact === undefined) throw notFound("client");
      const stored = payloadOf(secrets, artifact);
      if (stored["client_secret"] === undefined) {
        throw new DomainError("validation_error", "This client is public: it has no secret.");
      }
      const secret = secrets.newToken();
      const sealedPayload = secrets.seal(JSON.stringify({ ...stored, client_secret: secret }), artifactPlace(id));
      const changed = { ...artifact, sealedPayload };
      const client = viewOf(changed, await connectionsByClient(caller.accountId));
      const entry = { kind: "oauth_client_changed", subject: clientId, detail: { name: client.name } } as const;
      if (!(await store.changeClient(changed, auditOf(caller, entry, clock.now())))) throw notFound("client");
      return { client, secret };
    },

    /** Deletes a client and ends its connections, so that their keys are revoked. Throws `not_found`. */
    async remove(caller: Caller, clientId: string): Promise<void> {
      const found = (await list(caller)).find(({ id }) => id === clientId);
      if (found === undefined) throw notFound("client");
      // First, so that after a crash in between there is still a client to delete.
      await endConnections(caller, clientId);
      const entry = { kind: "oauth_client_removed", subject: clientId, detail: { name: found.name } } as const;
      const id = artifactId(secrets, "Client", clientId);
      if (!(await store.removeClient(caller.accountId, id, auditOf(caller, entry, clock.now()))))
        throw notFound("client");
      // Those that were made meanwhile; from now on no code gives tokens.
      await endConnections(caller, clientId);
    },
  };
}

/** Who added a client of an account. */
export function creatorOf(secrets: Pick<Secrets, "open">, artifact: OAuthArtifact): Actor {
  return storedClient(secrets, artifact).created_by;
}

function storedClient(secrets: Pick<Secrets, "open">, artifact: OAuthArtifact): StoredClient {
  // Safe: `add` sealed it.
  return payloadOf(secrets, artifact) as unknown as StoredClient;
}
