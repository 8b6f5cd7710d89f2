import { hkdfSync } from "node:crypto";

const PREFIX = "whsec_";

const SECRET_BYTES = 32;

const INFO = {
  calls: "outgate/signing/1/",
  callbacks: "outgate/signing-callbacks/1/",
} as const satisfies Record<SigningUse, string>;

interface SignedMessage {
  /** `webhook-id`: stable over all attempts, without dots. */
  readonly id: string;
  /** `webhook-timestamp`: whole seconds, of this attempt. */
  readonly timestampSeconds: number;
  /** The exact text that is sent; empty for a GET. */
  readonly body: string;
}

/**
 * The `whsec_…` with which calls or callbacks to one origin are signed (HKDF-SHA-256 of the account's root secret).
 * A target knows its own secret only, so it can't forge calls to another; and no callback passes for a call, since they
 * have another secret. `origin` as `URL.origin` spells it.
 */
export function signingSecret(rootSecret: Uint8Array, origin: string, use: SigningUse): string {
  const bytes = hkdfSync("sha256", rootSecret, "", INFO[use] + origin, SECRET_BYTES);
  return PREFIX + Buffer.from(bytes).toString("base64");
}

/** `v1,` and base64 of HMAC-SHA256 of `id.timestamp.body` (Standard Webhooks 1.0.0). Throws on a text that is no secret. */
export function sign(secret: string, { id, timestampSeconds, body }: SignedMessage): string {
  if (!secret.startsWith(PREFIX)) throw new Error(`A signing secret begins with ${PREFIX}.`);
  const key = Buffer.from(secret.slice(PREFIX.length), "base64");
  // In two pieces: put together with the rest, a body of a megabyte would be copied.
  return `v1,${new Bun.CryptoHasher("sha256", key).update(`${id}.${timestampSeconds}.`).update(body).digest("base64")}`;
}

/** What a signing secret signs. Each has secrets of its own, so that no callback can be taken for a call. */
export const SIGNING_USES = ["calls", "callbacks"] as const;

export type SigningUse = (typeof SIGNING_USES)[number];
