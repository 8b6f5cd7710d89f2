import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { type ApprovalLink, DECISIONS } from "../actions/status.ts";
import { ACTION_ID } from "../runtime/ids.ts";
import type { KnownDevice, Secrets } from "./types.ts";

const ID_PREFIX = "act_";

const MAC_BYTES = 16;

const MAC_CHARS = 2 * MAC_BYTES;

/**
 * The token of an action's receipt: the id's own part and 128 bits of HMAC-SHA-256 over the id. It names its row, so it
 * needs no index. Hex, because chats cut `-` and `_` off the end of links.
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

/** The whole HMAC-SHA-256, because what it stands for decides something. */
export function questionToken(key: Uint8Array, about: string): string {
  return createHmac("sha256", key).update(about).digest("base64url");
}

/** Constant in time for tokens of the right length. */
export function isQuestionToken(key: Uint8Array, about: string, token: string): boolean {
  return isSame(token, questionToken(key, about));
}

const DEVICE_TOKEN = /^(per_[A-Za-z0-9_]{1,64})\.([0-9a-f]{32})\.(\d{1,15})\.[A-Za-z0-9_-]{43}$/;

/** What it is for in clear, and the whole HMAC-SHA-256 over that. */
export function deviceToken(key: Uint8Array, { personId, deviceId, expiresAt }: KnownDevice): string {
  const device = `${personId}.${deviceId}.${expiresAt.getTime()}`;
  return `${device}.${createHmac("sha256", key).update(device).digest("base64url")}`;
}

/** The device that a token was made for, or null. Constant in time for tokens of one form. */
export function readDeviceToken(key: Uint8Array, token: string): KnownDevice | null {
  const [, personId = "", deviceId = "", expiresMs] = DEVICE_TOKEN.exec(token) ?? [];
  const device = { personId, deviceId, expiresAt: new Date(Number(expiresMs ?? 0)) };
  return isSame(token, deviceToken(key, device)) ? device : null;
}

/** Compared as text, so that no second spelling of a token is taken. */
function isSame(given: string, right: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(right)];
  return one.length === other.length && timingSafeEqual(one, other);
}

const LINK_TOKEN = /^([A-Za-z0-9_-]+)-([ar])([1-9]\d{0,8})-[0-9a-f]{64}$/;

/**
 * The token of an approval link: what it is for, and 256 bits of HMAC-SHA-256 over that. Made again it is the same, so
 * that a mail can be written again after a crash; only its hash is kept.
 */
export function approvalToken(key: Uint8Array, { actionId, run, decision }: ApprovalLink): string {
  const mac = createHmac("sha256", key).update(`${actionId} ${run} ${decision}`).digest("hex");
  return `${actionId.slice(ID_PREFIX.length)}-${decision.charAt(0)}${run}-${mac}`;
}

/** What a token claims to be for, so that its hash can be looked up; null for what is no token. It proves nothing yet. */
export function readApprovalToken(token: string): ApprovalLink | null {
  const [, id = "", email, run] = LINK_TOKEN.exec(token) ?? [];
  const actionId = ID_PREFIX + id;
  const decision = DECISIONS.find((name) => name.charAt(0) === email);
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

/** The largest multiple of 62 in a byte: bytes above it would make the first letters likelier. */
const FAIR_BYTES = 248;

/** `og_`, 30 base62 characters (178 bits) and 6 of checksum, by which scanners and typos are told offline. */
export function newApiKey(random: (count: number) => Uint8Array): string {
  let secret = "";
  while (secret.length < SECRET_CHARS) {
    for (const byte of random(SECRET_CHARS - secret.length)) {
      if (byte < FAIR_BYTES) secret += ALPHABET.charAt(byte % ALPHABET.length);
    }
  }
  return `og_${secret}${checksum(secret)}`;
}

/** Whether a text is a key as `newApiKey` makes them, by form and checksum; it need not be known to anyone. */
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

/** What is handed out once and known by its hash from then on: it hangs on no master key. */
export type HandedOut = Pick<Secrets, "newApiKey" | "newToken" | "hash">;

/** From the system's generator. */
export function createHandedOut(random: (count: number) => Uint8Array): HandedOut {
  return {
    newApiKey: () => newApiKey(random),
    newToken: () => Buffer.from(random(TOKEN_BYTES)).toString("hex"),
    hash: (text) => createHash("sha256").update(text).digest("hex"),
  };
}
