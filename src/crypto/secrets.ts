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
 * Everything that is made or checked with a key, from one master key of 32 bytes and the system's generator. What people
 * were sent hangs on `linkKey`, which outlives a change of the master key. Throws when a key has another length.
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

/** The key of links as long as the master key is the first one; afterwards the store keeps it, sealed. */
export function linkKeyOf(masterKey: Uint8Array): Buffer {
  return subkey(masterKey, "links");
}

const IV_BYTES = 12;

const TAG_BYTES = 16;

interface SealKey {
  readonly bytes: Uint8Array;
  /** Stands in front of every sealed text, so that a later key can tell which of them are still to be sealed anew. */
  readonly id: string;
}

/**
 * AES-256-GCM, `<key id>.<base64 of IV, tag, text>`. `random` gives the IV; safe for 2^32 texts a key (NIST SP
 * 800-38D, 8.3). By node:crypto: 4 us for 300 bytes in all, while a call of WebCrypto alone takes 35 us.
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

/** Throws when the text was altered, belongs to another place or was sealed under another key. */
function open(key: SealKey, sealed: string, place: SealedPlace): Buffer {
  const dot = sealed.indexOf(".");
  if (sealed.slice(0, dot) !== key.id) throw new Error(`${nameOf(place)} was sealed under another key.`);
  const base64 = sealed.slice(dot + 1);
  const bytes = Buffer.from(base64, "base64");
  // The decoder skips foreign characters, and an altered text is to be refused whatever was done to it.
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

/** As JSON, because joined by any character two places could read the same. */
function addressOf({ table, row, column }: SealedPlace): Buffer {
  return Buffer.from(JSON.stringify([table, row, column]));
}

function altered(place: SealedPlace, cause?: unknown): Error {
  return new Error(`${nameOf(place)} can't be opened: it was altered or belongs to another row.`, { cause });
}

function nameOf({ table, row, column }: SealedPlace): string {
  return `The sealed ${column} of ${table} ${row}`;
}
