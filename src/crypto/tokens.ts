import { createPrivateKey, timingSafeEqual } from "node:crypto";
import { type ApprovalLink, DECISIONS } from "../core/action.ts";
import { ACTION_ID, encodeId } from "../core/ids.ts";
import { subkey } from "./master-key.ts";

/** A browser in which a person has logged in before. */
export interface KnownDevice {
  readonly personId: string;
  /** New at each login. */
  readonly deviceId: string;
  readonly expiresAt: Date;
}

/**
 * Creates tokens that contain what they are about and an HMAC-SHA-256 over it, so that they need no index. Each kind has its
 * own key. Comparing takes the same time for all texts of one form.
 */
export function createTokens(masterKey: Uint8Array, linkKey: Uint8Array) {
  const questionKey = subkey(masterKey, "question");
  const sessionKey = subkey(masterKey, "mcp-session");
  const formKey = subkey(masterKey, "form");
  const receiptKey = subkey(linkKey, "receipt");
  const approvalKey = subkey(linkKey, "approval");
  const deviceKey = subkey(linkKey, "device");
  const invitationKey = subkey(linkKey, "invitation");
  const requestKey = subkey(linkKey, "request");
  /** Hex, because chat programs cut `-` and `_` off the end of links. */
  const receiptMac = (actionId: string) => hmac(receiptKey, actionId).toString("hex", 0, RECEIPT_MAC_BYTES);
  const questionToken = (about: string) => hmac(questionKey, about).toString("base64url");
  const sessionToken = (about: string) => hmac(sessionKey, about).toString("base64url");
  const deviceToken = ({ personId, deviceId, expiresAt }: KnownDevice) => {
    const device = `${personId}.${deviceId}.${expiresAt.getTime()}`;
    return `${device}.${hmac(deviceKey, device).toString("base64url")}`;
  };
  return {
    /** The keys with which the authorization server signs its cookies, and tokens that others could check. */
    oauthKeys: () => ({
      cookie: subkey(masterKey, "oauth-cookie").toString("base64url"),
      signing: ed25519Key(subkey(masterKey, "oauth-signing")),
    }),
    /** A MAC over the content of an MCP question. Returned with the answer, it proves that we asked exactly this. */
    questionToken,
    /** Whether the token was made for exactly this text. */
    isQuestionToken: (about: string, token: string) => isSame(token, questionToken(about)),
    /** A MAC over what the id of an MCP session says, so that every node with the master key knows the session. */
    sessionToken,
    /** Whether the token was made for exactly this text. */
    isSessionToken: (about: string, token: string) => isSame(token, sessionToken(about)),
    /** The API key that a form of a session makes, and its id: the same whichever node the form is sent to, and however often. */
    keyOfForm(form: string): { readonly id: string; readonly key: string } {
      let block = 0;
      const bytes = (count: number) => hmac(formKey, `key ${(block += 1)} ${form}`).subarray(0, count);
      return { id: `key_${encodeId(hmac(formKey, `id ${form}`).subarray(0, ID_BYTES))}`, key: newApiKey(bytes) };
    },
    /** The token of an action's receipt page: the id without its prefix, and 128 bits of MAC. */
    receiptToken: (actionId: string) => actionId.slice(ID_PREFIX.length) + receiptMac(actionId),
    /** The id of the action of a receipt token; null: not a token of ours. */
    readReceiptToken(token: string): string | null {
      const actionId = ID_PREFIX + token.slice(0, -2 * RECEIPT_MAC_BYTES);
      if (!ACTION_ID.test(actionId)) return null;
      return isSame(token.slice(-2 * RECEIPT_MAC_BYTES), receiptMac(actionId)) ? actionId : null;
    },
    /** The value of the device cookie. It does not log anybody in. */
    deviceToken,
    /** The device of a token; null: there is none, it has expired, or it is not ours. */
    readDeviceToken(token: string | null, now: Date): KnownDevice | null {
      const [text = "", personId = "", deviceId = "", expiresMs] = DEVICE_TOKEN.exec(token ?? "") ?? [];
      const device = { personId, deviceId, expiresAt: new Date(Number(expiresMs ?? 0)) };
      return isSame(text, deviceToken(device)) && now < device.expiresAt ? device : null;
    },
    /**
     * The token of an approval link: action, run and decision, and 256 bits of MAC. It is deterministic, so that a mail can be
     * rendered again after a crash; the store keeps only its hash.
     */
    approvalToken({ actionId, run, decision }: ApprovalLink): string {
      const mac = hmac(approvalKey, `${actionId} ${run} ${decision}`).toString("hex");
      return `${actionId.slice(ID_PREFIX.length)}-${decision.charAt(0)}${run}-${mac}`;
    },
    /** The link that a token names; null: it is no token. It verifies nothing: use `isOfHash` with the stored hash. */
    readApprovalToken(token: string): ApprovalLink | null {
      const [, id = "", initial, run] = LINK_TOKEN.exec(token) ?? [];
      const actionId = ID_PREFIX + id;
      const decision = DECISIONS.find((name) => name.charAt(0) === initial);
      return decision === undefined || !ACTION_ID.test(actionId) ? null : { actionId, run: Number(run), decision };
    },
    /** The token of an invitation's link: 256 bits of MAC, so that its mail can be rendered again. Only its hash is stored. */
    invitationToken: (invitationId: string) => hmac(invitationKey, invitationId).toString("hex"),
    /** Identifies the request of an action for whoever decides, who could guess masked values by its digest itself. */
    requestToken: (actionId: string, digest: string) => hmac(requestKey, `${actionId} ${digest}`).toString("hex"),
    /** Whether a text has this hash (SHA-256, hex). */
    isOfHash(text: string, hash: string): boolean {
      const given = Bun.CryptoHasher.hash("sha256", text);
      const kept = Buffer.from(hash, "hex");
      return given.length === kept.length && timingSafeEqual(given, kept);
    },
  };
}

const ID_BYTES = 16;

const ID_PREFIX = "act_";

const RECEIPT_MAC_BYTES = 16;

const DEVICE_TOKEN = /^(per_[A-Za-z0-9_]{1,64})\.([0-9a-f]{32})\.(\d{1,15})\.[A-Za-z0-9_-]{43}$/;

const LINK_TOKEN = /^([A-Za-z0-9_-]+)-([ar])([1-9]\d{0,8})-[0-9a-f]{64}$/;

function hmac(key: Uint8Array, text: string): Buffer {
  return new Bun.CryptoHasher("sha256", key).update(text).digest();
}

/** Compares texts in constant time, undecoded, so that no second spelling of a token is accepted. */
export function isSame(given: string, right: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(right)];
  return one.length === other.length && timingSafeEqual(one, other);
}

/** Keys and tokens that are stored as hashes and need no master key. */
export function createCredentials(random: (count: number) => Uint8Array) {
  return {
    /** A new API key `og_…` with its checksum. */
    newApiKey: () => newApiKey(random),
    /** A new token of a session or link: 256 random bits as hex. */
    newToken: () => Buffer.from(random(TOKEN_BYTES)).toString("hex"),
    /** SHA-256, hex: keys and tokens are stored and looked up by it. */
    hash: (text: string) => Bun.CryptoHasher.hash("sha256", text, "hex"),
  };
}

export type CredentialFactory = ReturnType<typeof createCredentials>;

const TOKEN_BYTES = 32;

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

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

const SECRET_CHARS = 30;

/** The largest multiple of 62 in a byte. Larger bytes are skipped; otherwise, the first letters would be more likely. */
const FAIR_BYTES = 248;

const CHECKSUM_CHARS = 6;

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

/** The DER prefix of a private key, before its 32 bytes (RFC 8410, 7). */
const ED25519_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");

/** These 32 bytes as a private key, in JWK form. */
function ed25519Key(seed: Buffer) {
  const key = Buffer.concat([ED25519_PREFIX, seed]);
  return createPrivateKey({ key, format: "der", type: "pkcs8" }).export({ format: "jwk" });
}
