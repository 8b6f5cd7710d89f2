import Type, { type Static } from "typebox";
import { readMediaType } from "../api/media-type.ts";
import { compile } from "../api/check.ts";
import type { Clock } from "../core/clock.ts";
import { jsonIn } from "../core/json.ts";
import {
  OAUTH_DOCUMENT_CHARS_MAX,
  OAUTH_DOCUMENT_FRESH_MS,
  OAUTH_DOCUMENT_KEPT_MS,
  OAUTH_DOCUMENT_MS_MAX,
  OAUTH_DOCUMENTS_AT_ONCE_MAX,
  OAUTH_DOCUMENTS_KEPT_MAX,
  OAUTH_DOCUMENTS_PER_ACCOUNT_MAX,
  OAUTH_FAILED_DOCUMENT_MS,
  OAUTH_REDIRECTS_MAX,
} from "../core/limits.ts";
import type { Sender } from "../outbound/sender.ts";
import { readHeaders } from "../receipts/response-headers.ts";

/** A client's metadata, with the names of RFC 7591. */
export interface ClientMetadata {
  readonly client_id: string;
  readonly client_name?: string;
  readonly redirect_uris: readonly string[];
  readonly token_endpoint_auth_method: "none" | "private_key_jwt" | "client_secret_basic" | "client_secret_post";
  /** The keys by which it authenticates. */
  readonly jwks?: Static<typeof Keys>;
  readonly token_endpoint_auth_signing_alg?: (typeof SIGNING_ALGORITHMS)[number];
  readonly grant_types: readonly string[];
  readonly response_types: readonly ["code"];
  readonly application_type: "native";
}

/** A client's document can't be used. The message is for the person and the client's developer. */
export class UnusableDocument extends Error {
  override readonly name = "UnusableDocument";
}

const text = (maxLength: number) => Type.String({ minLength: 1, maxLength });

/** The metadata members that we read. RFC 7591 asks us to ignore all others. */
export const GivenMetadata = Type.Object({
  client_name: Type.Optional(text(200)),
  redirect_uris: Type.Array(text(2_048), { minItems: 1, maxItems: OAUTH_REDIRECTS_MAX }),
  token_endpoint_auth_method: Type.Optional(Type.String()),
});

/** The signature algorithms of clients. None needs a shared secret, since these clients have none. */
export const SIGNING_ALGORITHMS = ["RS256", "PS256", "ES256", "EdDSA"] as const;

const Document = Type.Intersect([
  Type.Object({
    client_id: Type.String(),
    token_endpoint_auth_methods_supported: Type.Optional(Type.Array(Type.String(), { maxItems: 20 })),
    token_endpoint_auth_signing_alg: Type.Optional(Type.Enum([...SIGNING_ALGORITHMS], { type: "string" })),
    jwks_uri: Type.Optional(text(2_048)),
  }),
  GivenMetadata,
]);

const document = compile(Document);

const Keys = Type.Object({ keys: Type.Array(Type.Object({ kty: Type.String() }), { maxItems: 20 }) });

const keys = compile(Keys);

/**
 * Whether a client's answers may go there: to https, to a program on the person's machine, or to an app with its own scheme.
 * The library compares the whole text, and ignores the port only on loopback.
 */
export function isUsableRedirect(uri: string): boolean {
  const url = URL.parse(uri);
  if (url === null || url.username !== "" || url.password !== "" || uri.includes("#")) return false;
  // Refuses a text that `URL` would change, because it leads somewhere else than it says.
  if (url.protocol === "http:") return LOOPBACK_REDIRECT.test(uri);
  if (url.protocol === "https:") return url.href === uri || url.href === `${uri}/`;
  return APP_SCHEME.test(uri) && !NO_APPS.has(url.protocol) && !OF_SYSTEM.test(url.protocol);
}

const LOOPBACK_REDIRECT = /^http:\/\/(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?(\/[!-~]*)?$/;

const APP_SCHEME = /^[a-z][a-z0-9+.-]*:[!-~]+$/;

/** Schemes that Windows and Apple's systems have for their own programs, such as one that installs what it is given. */
const OF_SYSTEM = /^(?:ms-|itms|x-apple|app-?prefs|prefs:)/;

/** Schemes of browsers and systems, which no client can have: also who refuses to connect it is sent there. */
const NO_APPS: ReadonlySet<string> = new Set(
  `javascript vbscript data blob file about filesystem view-source ws wss ftp jar res resource chrome edge intent mailto tel sms
  smsto facetime ldap ldaps telnet ssh sftp smb nfs shell search search-ms magnet`
    .split(/\s+/)
    .map((scheme) => `${scheme}:`),
);

/** The client that the metadata describes, without any other members. */
export function clientMetadata(
  client_id: string,
  { client_name, redirect_uris }: Pick<ClientMetadata, "client_name" | "redirect_uris">,
  token_endpoint_auth_method: ClientMetadata["token_endpoint_auth_method"],
): ClientMetadata {
  return {
    client_id,
    ...(client_name === undefined ? {} : { client_name }),
    redirect_uris,
    token_endpoint_auth_method,
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    application_type: "native",
  };
}

/** A client id that is the address of a metadata document: https with a path, and written as `URL` writes it. */
export function isDocumentAddress(id: string): boolean {
  if (!id.startsWith("https://") || id.length > 2_048 || id.includes("#") || id.includes("?")) return false;
  const url = URL.parse(id);
  return url !== null && url.href === id && url.pathname !== "/" && url.username === "" && url.password === "";
}

interface Known {
  readonly client: ClientMetadata | UnusableDocument;
  readonly readAtMs: number;
  /** When the document is read again. */
  readonly untilMs: number;
}

/**
 * Reads clients whose id is the address of their metadata document (draft-ietf-oauth-client-id-metadata-document). The sender
 * checks every address, follows no redirect, and bounds time and size. Reads a document again after `OAUTH_DOCUMENT_FRESH_MS`.
 * If its host fails, the last one counts for `OAUTH_DOCUMENT_KEPT_MS`, so that connections outlive an outage there.
 */
export function createClientDocuments({
  sender,
  clock,
}: {
  readonly sender: Sender;
  readonly clock: Pick<Clock, "monotonicMs">;
}) {
  const known = new Map<string, Known>();
  const reading = new Map<string, { readonly accountId: string; readonly client: Promise<ClientMetadata> }>();

  /** Drops the oldest failure first, so that nobody can push clients out by causing many failures. */
  const keep = (id: string, one: Known): void => {
    known.delete(id);
    if (known.size >= OAUTH_DOCUMENTS_KEPT_MAX) {
      const all = [...known];
      const [oldest] = all.find(([, { client }]) => client instanceof UnusableDocument) ?? all[0] ?? [id];
      known.delete(oldest);
    }
    known.set(id, one);
  };

  /** The last good document, used while the host does not answer. */
  const findKept = (id: string): Known | null => {
    const found = known.get(id);
    if (found === undefined || found.client instanceof UnusableDocument) return null;
    return clock.monotonicMs() - found.readAtMs < OAUTH_DOCUMENT_KEPT_MS ? found : null;
  };

  const read = async (id: string): Promise<ClientMetadata> => {
    const client = await fetchDocument(sender, id).catch((error: unknown) => {
      if (error instanceof UnusableDocument) return error;
      throw error;
    });
    const readAtMs = clock.monotonicMs();
    const freshMs = client instanceof UnusableDocument ? OAUTH_FAILED_DOCUMENT_MS : OAUTH_DOCUMENT_FRESH_MS;
    const found = (client instanceof DocumentAway ? findKept(id) : null) ?? { client, readAtMs };
    keep(id, { ...found, untilMs: readAtMs + freshMs });
    return usable(found);
  };

  /** `accountId`: the account that needs it; null: don't fetch, use what was read before. Throws `UnusableDocument`. */
  return async (id: string, accountId: string | null): Promise<ClientMetadata> => {
    const found = known.get(id);
    if (found !== undefined && clock.monotonicMs() < found.untilMs) return usable(found);
    const kept = findKept(id);
    if (accountId === null) {
      if (kept !== null) return usable(kept);
      throw new UnusableDocument("The client and its code or token are not known here. Connect again.");
    }
    const open = reading.get(id);
    if (open !== undefined) return open.client;
    const own = [...reading.values()].filter((one) => one.accountId === accountId);
    if (reading.size >= OAUTH_DOCUMENTS_AT_ONCE_MAX || own.length >= OAUTH_DOCUMENTS_PER_ACCOUNT_MAX) {
      if (kept !== null) return usable(kept);
      throw new UnusableDocument(
        "Too many documents of clients are being read at the moment. Try again in a few seconds.",
      );
    }
    const client = read(id).finally(() => reading.delete(id));
    reading.set(id, { accountId, client });
    return client;
  };
}

function usable({ client }: Pick<Known, "client">): ClientMetadata {
  if (client instanceof UnusableDocument) throw client;
  return client;
}

/** The host does not answer properly now, but may later. */
class DocumentAway extends UnusableDocument {}

/** Reads JSON for a client; undefined: it is none. Throws `UnusableDocument`. */
async function fetchJson(sender: Sender, url: string, what: "metadata document" | "keys"): Promise<unknown> {
  const outcome = await sender.send(
    { url, method: "GET", headers: [["Accept", "application/json"]], body: null },
    { timeoutMs: OAUTH_DOCUMENT_MS_MAX },
  );
  const of = `The address of the client's ${what}`;
  if (outcome.kind === "not_sent" && (outcome.fault === "address_never" || outcome.fault === "address_private")) {
    throw new UnusableDocument(`${of} is a private address. It must be a public one.`);
  }
  if (outcome.kind !== "answered") throw new DocumentAway(`${of} can't be reached. Try again later.`);
  if (outcome.code >= 300 && outcome.code < 400) throw new UnusableDocument(`${of} redirects, which it must not.`);
  if (outcome.code !== 200) throw new DocumentAway(`${of} answers ${outcome.code}.`);
  if (outcome.brokenBy !== null) throw new DocumentAway(`${of} did not answer whole.`);
  if (outcome.truncated || outcome.body === null || outcome.body.length > OAUTH_DOCUMENT_CHARS_MAX) {
    throw new UnusableDocument(`${of} answers nothing, or more than ${OAUTH_DOCUMENT_CHARS_MAX} characters.`);
  }
  if (what === "metadata document" && !isJsonType(outcome.headers)) {
    throw new UnusableDocument(`${of} answers with another content type than application/json.`);
  }
  return jsonIn(outcome.body);
}

/**
 * Whether an answer calls itself JSON. The host of a document vouches for its client, and many hosts show files of anybody, such as
 * texts and images.
 */
function isJsonType(headers: string | null): boolean {
  const [, type = ""] = readHeaders(headers).find(([name]) => name === "content-type") ?? [];
  return /^application\/(?:json|[\w.-]+\+json)$/.test(readMediaType(type).essence);
}

/** Reads and checks the document at an address. Throws `UnusableDocument`. */
export async function fetchDocument(sender: Sender, id: string): Promise<ClientMetadata> {
  const value = await fetchJson(sender, id, "metadata document");
  if (!document.accepts(value)) {
    throw new UnusableDocument("The client's metadata document has no valid client_id and redirect_uris.");
  }
  if (value.client_id !== id) throw new UnusableDocument("The client's metadata document is about another client_id.");
  if (!value.redirect_uris.every(isUsableRedirect)) throw new UnusableDocument(BAD_REDIRECT);
  const { token_endpoint_auth_method: method = "none", token_endpoint_auth_methods_supported: others = [] } = value;
  const { jwks_uri, token_endpoint_auth_signing_alg } = value;
  if (method === "private_key_jwt" && jwks_uri !== undefined && isDocumentAddress(jwks_uri)) {
    const signing = token_endpoint_auth_signing_alg === undefined ? {} : { token_endpoint_auth_signing_alg };
    return { ...clientMetadata(id, value, method), jwks: await fetchKeys(sender, jwks_uri), ...signing };
  }
  if (method === "none" || others.includes("none")) return clientMetadata(id, value, "none");
  throw new UnusableDocument(
    "The client's metadata document asks for another token_endpoint_auth_method than none, or private_key_jwt with a jwks_uri.",
  );
}

/** Fetches a client's keys together with its document, so that the library fetches nothing. */
async function fetchKeys(sender: Sender, url: string): Promise<Static<typeof Keys>> {
  const value = await fetchJson(sender, url, "keys");
  if (!keys.accepts(value)) throw new UnusableDocument("The client's keys are not a JSON Web Key Set.");
  return value;
}

export const BAD_REDIRECT =
  "A redirect URI must be https, http on loopback, or of an app's own scheme, without a fragment or a user.";
