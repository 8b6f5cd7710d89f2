import type { SigningUse, SealedPlace } from "../core/account-store.ts";
import { KEY_BYTES } from "../config/values.ts";
import { createCipheriv, createDecipheriv, hkdfSync, timingSafeEqual } from "node:crypto";
import { masterKeyId, subkey, fingerprint, KEY_FACTS, LINK_KEY_PLACE, INTERRUPTED, ANOTHER_KEY } from "./master-key.ts";
import { createCredentials, createTokens } from "./tokens.ts";
import { type Store, TRANSFER_FACT } from "../core/store.ts";
import { urlOrigin } from "../core/target.ts";

/**
 * All cryptography with keys, from one master key of 32 bytes and a random generator. Tokens that people were sent depend on
 * `linkKey`, which stays the same when the master key is rotated. Throws if a key is not 32 bytes.
 */
export function createSecrets(
  masterKey: Uint8Array,
  random: (count: number) => Uint8Array,
  linkKey: Uint8Array = deriveLinkKey(masterKey),
) {
  const sealKey = { bytes: subkey(masterKey, "seal"), id: masterKeyId(masterKey) };
  return {
    ...createCredentials(random),
    ...createTokens(masterKey, linkKey),
    /** A new root secret of an account. */
    newRootSecret: () => random(KEY_BYTES),
    /** Encrypts with AES-256-GCM under the master key, bound to its place. */
    seal: (plain: Uint8Array | string, place: SealedPlace) => seal(sealKey, plain, place, random),
    /** Decrypts. Throws if the text was altered, moved to another place or encrypted under another key. */
    open: (sealed: string, place: SealedPlace) => open(sealKey, sealed, place),
    signingSecret,
    /** The `webhook-signature` of the exact bytes that are sent: a `v1,…` for each secret (Standard Webhooks 1.0.0). */
    sign: (signing: readonly string[], message: SignedMessage) =>
      signing.map((secret) => sign(secret, message)).join(" "),
  };
}

export type Secrets = ReturnType<typeof createSecrets>;

/** A signing secret can't be decrypted: its row was altered or encrypted under another key. */
export class UnreadableSecret extends Error {
  override readonly name = "UnreadableSecret";
}

/** The link key before the first rotation of the master key; afterwards the store keeps it, encrypted. */
export function deriveLinkKey(masterKey: Uint8Array): Buffer {
  return subkey(masterKey, "links");
}

const IV_BYTES = 12;

const TAG_BYTES = 16;

interface SealKey {
  readonly bytes: Uint8Array;
  /** Prefix of every encrypted text, so that a rotation knows which ones are still under the old key. */
  readonly id: string;
}

/**
 * Encrypts with AES-256-GCM to `<key id>.<base64 of IV, tag, ciphertext>`, bound to its place. `random` gives the IV, which is
 * safe for 2^32 texts per key (NIST SP 800-38D, 8.3). node:crypto takes 4 µs for 300 bytes, WebCrypto 35 µs.
 */
function seal(
  key: SealKey,
  plain: Uint8Array | string,
  place: SealedPlace,
  random: (count: number) => Uint8Array,
): string {
  const iv = random(IV_BYTES);
  const cipher = createCipheriv("aes-256-gcm", key.bytes, iv, { authTagLength: TAG_BYTES }).setAAD(placeAddress(place));
  const text = Buffer.concat([cipher.update(plain), cipher.final()]);
  return `${key.id}.${Buffer.concat([iv, cipher.getAuthTag(), text]).toString("base64")}`;
}

/** Decrypts. Throws if the text was altered, belongs to another place or was encrypted under another key. */
function open(key: SealKey, sealed: string, place: SealedPlace): Buffer {
  const dot = sealed.indexOf(".");
  if (sealed.slice(0, dot) !== key.id) throw new Error(`${placeText(place)} was sealed under another key.`);
  const base64 = sealed.slice(dot + 1);
  const bytes = Buffer.from(base64, "base64");
  // The decoder skips unknown characters, but every altered text must be refused.
  if (bytes.length < IV_BYTES + TAG_BYTES || bytes.toString("base64") !== base64) throw altered(place);
  const decipher = createDecipheriv("aes-256-gcm", key.bytes, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
    .setAAD(placeAddress(place))
    .setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]);
  } catch (cause) {
    throw altered(place, cause);
  }
}

/** A place as bytes. As JSON, since different places joined by a separator could be equal. */
function placeAddress({ table, row, column }: SealedPlace): Buffer {
  return Buffer.from(JSON.stringify([table, row, column]));
}

function altered(place: SealedPlace, cause?: unknown): Error {
  return new Error(`${placeText(place)} can't be opened: it was altered or belongs to another row.`, { cause });
}

function placeText({ table, row, column }: SealedPlace): string {
  return `The sealed ${column} of ${table} ${row}`;
}

const SIGNING_PREFIX = "whsec_";

const SIGNING_SECRET_BYTES = 32;

const SIGNING_INFO = {
  calls: "outgate/signing/1/",
  callbacks: "outgate/signing-callbacks/1/",
} as const satisfies Record<SigningUse, string>;

interface SignedMessage {
  /** `webhook-id`: the same for all attempts, without dots. */
  readonly id: string;
  /** `webhook-timestamp`: whole seconds, of this attempt. */
  readonly timestampSeconds: number;
  /** The exact text or bytes that are sent; empty for a GET. */
  readonly body: string | Uint8Array;
}

/**
 * The `whsec_…` secret for calls or callbacks to one origin (HKDF-SHA-256 of the account's root secret). Each origin has its
 * own, so that no target can forge calls to another. `origin` in the form of `URL.origin`.
 */
export function signingSecret(rootSecret: Uint8Array, origin: string, use: SigningUse): string {
  const bytes = hkdfSync("sha256", rootSecret, "", SIGNING_INFO[use] + origin, SIGNING_SECRET_BYTES);
  return SIGNING_PREFIX + Buffer.from(bytes).toString("base64");
}

/** `v1,` and base64 of HMAC-SHA256 of `id.timestamp.body` (Standard Webhooks 1.0.0). Throws if `secret` is no `whsec_…`. */
export function sign(secret: string, { id, timestampSeconds, body }: SignedMessage): string {
  if (!secret.startsWith(SIGNING_PREFIX)) throw new Error(`A signing secret begins with ${SIGNING_PREFIX}.`);
  const key = Buffer.from(secret.slice(SIGNING_PREFIX.length), "base64");
  // In two updates, since concatenation would copy a body of up to a megabyte.
  return `v1,${new Bun.CryptoHasher("sha256", key).update(`${id}.${timestampSeconds}.`).update(body).digest("base64")}`;
}

/** The length of an HMAC-SHA256. */
export const SIGNATURE_BYTES = 32;

/** Whether one of these digests, of `SIGNATURE_BYTES` each, signs the message. Takes the same time whatever differs. */
export function isSignedBy(secret: string, message: SignedMessage, digests: readonly Uint8Array[]): boolean {
  const right = Buffer.from(sign(secret, message).slice("v1,".length), "base64");
  return digests.filter((digest) => timingSafeEqual(digest, right)).length > 0;
}

/**
 * Throws an error for the operator unless this is the master key of the store. Writes only the check value of a new store.
 */
export async function checkMasterKey(
  store: Store,
  masterKey: Uint8Array,
  secrets: Pick<Secrets, "open">,
): Promise<void> {
  const mark = fingerprint(masterKey);
  const [present, transfer] = await Promise.all([checkKeyMark(store, mark), store.facts.read(TRANSFER_FACT)]);
  if (transfer !== null) throw new Error(UNFINISHED_COPY);
  await checkOpens(store, secrets);
  if (present !== null) return;
  await store.facts.write({ [KEY_FACTS.present]: mark });
  // A migration that began since has found the store empty.
  if ((await store.facts.read(TRANSFER_FACT)) !== null) throw new Error(UNFINISHED_COPY);
}

/** Throws if the store is encrypted under another key by now, or is about to be. Returns its mark; null: it has none yet. */
export async function checkKeyMark({ facts }: Pick<Store, "facts">, mark: string): Promise<string | null> {
  const [present, next] = await Promise.all([facts.read(KEY_FACTS.present), facts.read(KEY_FACTS.next)]);
  if (next !== null) throw new Error(INTERRUPTED);
  if (present !== null && present !== mark) throw new Error(ANOTHER_KEY);
  return present;
}

/** Throws unless a key decrypts the first account's root secret: a damaged store may still have its check value. */
export async function checkOpens({ accounts }: Store, ...keys: readonly Pick<Secrets, "open">[]): Promise<void> {
  const account = await accounts.first();
  if (account === null) return;
  const place = { table: "accounts", row: account.id, column: "sealed_root_secret" };
  const opens = (key: Pick<Secrets, "open">) => {
    try {
      return key.open(account.sealedRootSecret, place).length > 0;
    } catch {
      return false;
    }
  };
  if (keys.some(opens)) return;
  throw new Error(
    `The root secret of account ${account.id} can't be opened: the database is damaged, or its master key is another one. ` +
      "Nothing was written to it. Restore a backup of the database and its key.",
  );
}

/** The link key that the store keeps after a rotation of the master key; null: it is derived from the master key. */
export async function keptLinkKey({ facts }: Store, secrets: Pick<Secrets, "open">): Promise<Uint8Array | null> {
  const sealed = await facts.read(KEY_FACTS.links);
  return sealed === null ? null : secrets.open(sealed, LINK_KEY_PLACE);
}

const UNFINISHED_COPY =
  "The copy of a database file to this database is not complete. Run `outgate migrate` again: it goes on where it stopped.";

export interface SecretsInUse {
  /** The secrets that sign now, the newest first. */
  inUse(accountId: string, origin: string, now: Date, use: SigningUse): Promise<readonly string[]>;
}

interface Signable {
  readonly accountId: string;
  readonly url: string;
  /** `webhook-id`: the same for all attempts. */
  readonly id: string;
  /** The exact text or bytes that are sent; empty when there is none. */
  readonly body: string | Uint8Array;
}

export type Header = readonly [name: string, value: string];

export type SignedHeaders = (message: Signable, now: Date) => Promise<readonly Header[]>;

/**
 * Creates the three headers of Standard Webhooks 1.0.0, signed with the secret of the account and the target's origin; during
 * a rotation, with both secrets. Calls and callbacks have separate secrets.
 */
export function createSignedHeaders(
  secrets: Pick<Secrets, "sign">,
  signingSecrets: SecretsInUse,
  use: SigningUse,
): SignedHeaders {
  return async ({ accountId, url, id, body }, now) => {
    const timestampSeconds = Math.floor(now.getTime() / 1_000);
    const signing = await signingSecrets.inUse(accountId, urlOrigin(url), now, use);
    return [
      ["webhook-id", id],
      ["webhook-timestamp", String(timestampSeconds)],
      ["webhook-signature", secrets.sign(signing, { id, timestampSeconds, body })],
    ];
  };
}
