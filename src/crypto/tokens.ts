import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { type ApprovalLink, DECISIONS } from "../actions/status.ts";
import { ACTION_ID } from "../runtime/ids.ts";
import type { KnownDevice, Secrets } from "./types.ts";

const ID_PREFIX = "act_";

const MAC_BYTES = 16;

const MAC_CHARS = 2 * MAC_BYTES;

/**
 * The token of an action's receipt: the id without its prefix and 128 bits of HMAC-SHA-256 over the id. It contains the id,
 * so it needs no index. Hex, because chat programs cut `-` and `_` off the end of links.
 */
export function receiptToken(key: Uint8Array, actionId: string): string {
  return actionId.slice(ID_PREFIX.length) + macOf(key, actionId).toString("hex");
}

/** The id of the action whose receipt the token opens, or null. Constant in time for texts of one length. */
export function readReceiptToken(key: Uint8Array, token: string): string | null {
  const actionId = ID_PREFIX + token.slice(0, -MAC_CHARS);
  if (!ACTION_ID.test(actionId)) return null;
  return isSame(token.slice(-MAC_CHARS), macOf(key, actionId).toString("hex")) ? actionId : null;
}

/** The whole HMAC-SHA-256, untruncated, since the token authorizes a decision. */
export function questionToken(key: Uint8Array, about: string): string {
  return createHmac("sha256", key).update(about).digest("base64url");
}

/** Constant in time for tokens of the right length. */
export function isQuestionToken(key: Uint8Array, about: string, token: string): boolean {
  return isSame(token, questionToken(key, about));
}

const DEVICE_TOKEN = /^(per_[A-Za-z0-9_]{1,64})\.([0-9a-f]{32})\.(\d{1,15})\.[A-Za-z0-9_-]{43}$/;

/** The device in clear text and the whole HMAC-SHA-256 over it. */
export function deviceToken(key: Uint8Array, { personId, deviceId, expiresAt }: KnownDevice): string {
  const device = `${personId}.${deviceId}.${expiresAt.getTime()}`;
  return `${device}.${createHmac("sha256", key).update(device).digest("base64url")}`;
}

/** The device of a token, or null. Constant time for tokens of one form. */
export function readDeviceToken(key: Uint8Array, token: string): KnownDevice | null {
  const [, personId = "", deviceId = "", expiresMs] = DEVICE_TOKEN.exec(token) ?? [];
  const device = { personId, deviceId, expiresAt: new Date(Number(expiresMs ?? 0)) };
  return isSame(token, deviceToken(key, device)) ? device : null;
}

/** Constant time. Compares the texts, so that no second spelling of a token is accepted. */
function isSame(given: string, right: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(right)];
  return one.length === other.length && timingSafeEqual(one, other);
}

const LINK_TOKEN = /^([A-Za-z0-9_-]+)-([ar])([1-9]\d{0,8})-[0-9a-f]{64}$/;

/**
 * The token of an approval link: action, run and decision, and 256 bits of HMAC-SHA-256 over them. It is deterministic, so
 * that a mail can be rendered again after a crash; the store keeps only its hash.
 */
export function approvalToken(key: Uint8Array, { actionId, run, decision }: ApprovalLink): string {
  const mac = createHmac("sha256", key).update(`${actionId} ${run} ${decision}`).digest("hex");
  return `${actionId.slice(ID_PREFIX.length)}-${decision.charAt(0)}${run}-${mac}`;
}

/** The link that a token names, to look up its hash; null: no token. It verifies nothing. */
export function readApprovalToken(token: string): ApprovalLink | null {
  const [, id = "", initial, run] = LINK_TOKEN.exec(token) ?? [];
  const actionId = ID_PREFIX + id;
  const decision = DECISIONS.find((name) => name.charAt(0) === initial);
  return decision === undefined || !ACTION_ID.test(actionId) ? null : { actionId, run: Number(run), decision };
}

/** Whether a text is the one with this hash (SHA-256, hex). Constant in time. */
export function isOfHash(text: string, hash: string): boolean {
  const given = createHash("sha256").update(text).digest();
  const kept = Buffer.from(hash, "hex");
  return given.length === kept.length && timingSafeEqual(given, kept);
}

function macOf(key: Uint8Array, actionId: string): Buffer {
  return createHmac("sha256", key).update(actionId).digest().subarray(0, MAC_BYTES);
}

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

const SECRET_CHARS = 30;

const CHECKSUM_CHARS = 6;

/** The largest multiple of 62 in a byte. Larger bytes are skipped, or the first letters would be more likely. */
const FAIR_BYTES = 248;

/** `og_`, 30 base62 characters (178 bits) and a checksum of 6, so that scanners can recognize keys and typos offline. */
export function newApiKey(random: (count: number) => Uint8Array): string {
  let secret = "";
  while (secret.length < SECRET_CHARS) {
    for (const byte of random(SECRET_CHARS - secret.length)) {
      if (byte < FAIR_BYTES) secret += ALPHABET.charAt(byte % ALPHABET.length);
    }
  }
  return `og_${secret}${checksum(secret)}`;
}

/** Whether a text has the form and checksum of a key; it need not exist. */
export function isWellFormedApiKey(text: string): boolean {
  const match = /^og_([0-9A-Za-z]{30})([0-9A-Za-z]{6})$/.exec(text);
  return match !== null && checksum(match[1] ?? "") === match[2];
}

/** CRC-32 of the secret part in base62, most significant first. */
function checksum(secret: string): string {
  let rest = Bun.hash.crc32(secret);
  let text = "";
  for (let place = 0; place < CHECKSUM_CHARS; place += 1) {
    text = ALPHABET.charAt(rest % ALPHABET.length) + text;
    rest = Math.floor(rest / ALPHABET.length);
  }
  return text;
}

const TOKEN_BYTES = 32;

/** Keys and tokens that are stored as hashes and need no master key. */
export type HandedOut = Pick<Secrets, "newApiKey" | "newToken" | "hash">;

export function createHandedOut(random: (count: number) => Uint8Array): HandedOut {
  return {
    newApiKey: () => newApiKey(random),
    newToken: () => Buffer.from(random(TOKEN_BYTES)).toString("hex"),
    hash: (text) => createHash("sha256").update(text).digest("hex"),
  };
}
