import type { ApiKey } from "../core/account-store.ts";
import type { OAuthArtifact, OAuthKind } from "../core/oauth-store.ts";
import type { Secrets } from "../crypto/secrets.ts";

// Names and helpers that don't load the library.

/** The only scope: a connection may do on /mcp what its key may do. */
export const SCOPE = "mcp";

export const AUTHORIZE_PATH = "/oauth/authorize";
export const CONSENT_PATH = "/oauth/consent";
export const TOKEN_PATH = "/oauth/token";
export const REVOKE_PATH = "/oauth/revoke";
export const REGISTER_PATH = "/oauth/register";

/** The library's session cookie. It is never set, because people consent in a session of ours. */
export const SESSION_COOKIE = "outgate_oauth_session";

/** The subject of a connection: its account and its key. */
export function subjectOfKey({ accountId, id }: Pick<ApiKey, "accountId" | "id">): string {
  return `${accountId}.${id}`;
}

/** The account and key in the subject of a connection; null for any other subject. */
export function keyOfSubject(subject: unknown): { readonly accountId: string; readonly keyId: string } | null {
  const [accountId = "", keyId = ""] = typeof subject === "string" ? subject.split(".") : [];
  return keyId === "" ? null : { accountId, keyId };
}

export function artifactId(secrets: Pick<Secrets, "hash">, kind: OAuthKind, id: string): string {
  return secrets.hash(`${kind} ${id}`);
}

/** The place that an artifact's payload is sealed for. */
export const artifactPlace = (id: string) => ({ table: "oauth_artifacts", row: id, column: "sealed_payload" });

/** Opens the payload of an artifact: the library's JSON. */
export function openPayload(
  secrets: Pick<Secrets, "open">,
  { id, sealedPayload }: OAuthArtifact,
): Readonly<Record<string, unknown>> {
  // Safe: it was an object when it was sealed.
  return JSON.parse(secrets.open(sealedPayload, artifactPlace(id)).toString("utf8")) as Readonly<
    Record<string, unknown>
  >;
}

/** How a client proves its identity at the token endpoint. */
export const AUTH_METHODS = ["none", "private_key_jwt", "client_secret_basic", "client_secret_post"] as const;

/** The host of an address, or the scheme of an app's address, whose host can be any name. */
export function shownHost({ protocol, host }: Pick<URL, "protocol" | "host">): string {
  return /^https?:$/.test(protocol) ? host : protocol;
}
