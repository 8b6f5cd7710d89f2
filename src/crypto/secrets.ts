import type { Secrets, SealedPlace } from "./types.ts";
import {
  createHandedOut,
  approvalToken,
  deviceToken,
  isOfHash,
  isQuestionToken,
  questionToken,
  readApprovalToken,
  readDeviceToken,
  readReceiptToken,
  receiptToken,
} from "./tokens.ts";
import { KEY_BYTES, keyIdOf, subkey } from "./key.ts";
import { sign, signingSecret } from "./signature.ts";
import { createCipheriv, createDecipheriv } from "node:crypto";

/**
 * All cryptography with keys, from one master key of 32 bytes and a random generator. Tokens that people were sent depend on
 * `linkKey`, which stays the same when the master key is rotated. Throws if a key is not 32 bytes.
 */
export function createSecrets(
  masterKey: Uint8Array,
  random: (count: number) => Uint8Array,
  linkKey: Uint8Array = linkKeyOf(masterKey),
): Secrets {
  const sealKey = { bytes: subkey(masterKey, "seal"), id: keyIdOf(masterKey) };
  const questionKey = subkey(masterKey, "question");
  const receiptKey = subkey(linkKey, "receipt");
  const approvalKey = subkey(linkKey, "approval");
  const deviceKey = subkey(linkKey, "device");
  return {
    ...createHandedOut(random),
    newRootSecret: () => random(KEY_BYTES),
    seal: (plain, place) => seal(sealKey, plain, place, random),
    open: (sealed, place) => open(sealKey, sealed, place),
    signingSecret,
    sign: (signing, message) => signing.map((secret) => sign(secret, message)).join(" "),
    deviceToken: (device) => deviceToken(deviceKey, device),
    readDeviceToken: (token) => readDeviceToken(deviceKey, token),
    questionToken: (about) => questionToken(questionKey, about),
    isQuestionToken: (about, token) => isQuestionToken(questionKey, about, token),
    receiptToken: (actionId) => receiptToken(receiptKey, actionId),
    readReceiptToken: (token) => readReceiptToken(receiptKey, token),
    approvalToken: (link) => approvalToken(approvalKey, link),
    readApprovalToken,
    isOfHash,
  };
}

/** The link key before the first rotation of the master key; afterwards the store keeps it, encrypted. */
export function linkKeyOf(masterKey: Uint8Array): Buffer {
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
  const cipher = createCipheriv("aes-256-gcm", key.bytes, iv, { authTagLength: TAG_BYTES }).setAAD(addressOf(place));
  const text = Buffer.concat([cipher.update(plain), cipher.final()]);
  return `${key.id}.${Buffer.concat([iv, cipher.getAuthTag(), text]).toString("base64")}`;
}

/** Decrypts. Throws if the text was altered, belongs to another place or was encrypted under another key. */
function open(key: SealKey, sealed: string, place: SealedPlace): Buffer {
  const dot = sealed.indexOf(".");
  if (sealed.slice(0, dot) !== key.id) throw new Error(`${nameOf(place)} was sealed under another key.`);
  const base64 = sealed.slice(dot + 1);
  const bytes = Buffer.from(base64, "base64");
  // The decoder skips unknown characters, but every altered text must be refused.
  if (bytes.length < IV_BYTES + TAG_BYTES || bytes.toString("base64") !== base64) throw altered(place);
  const decipher = createDecipheriv("aes-256-gcm", key.bytes, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES })
    .setAAD(addressOf(place))
    .setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]);
  } catch (cause) {
    throw altered(place, cause);
  }
}

/** As JSON, since two places joined by a separator could be equal. */
function addressOf({ table, row, column }: SealedPlace): Buffer {
  return Buffer.from(JSON.stringify([table, row, column]));
}

function altered(place: SealedPlace, cause?: unknown): Error {
  return new Error(`${nameOf(place)} can't be opened: it was altered or belongs to another row.`, { cause });
}

function nameOf({ table, row, column }: SealedPlace): string {
  return `The sealed ${column} of ${table} ${row}`;
}
