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
 * The `whsec_…` secret for calls or callbacks to one origin (HKDF-SHA-256 of the account's root secret). Each origin has its
 * own, so that no target can forge calls to another. `origin` in the form of `URL.origin`.
 */
export function signingSecret(rootSecret: Uint8Array, origin: string, use: SigningUse): string {
  const bytes = hkdfSync("sha256", rootSecret, "", INFO[use] + origin, SECRET_BYTES);
  return PREFIX + Buffer.from(bytes).toString("base64");
}

/** `v1,` and base64 of HMAC-SHA256 of `id.timestamp.body` (Standard Webhooks 1.0.0). Throws if `secret` is no `whsec_…`. */
export function sign(secret: string, { id, timestampSeconds, body }: SignedMessage): string {
  if (!secret.startsWith(PREFIX)) throw new Error(`A signing secret begins with ${PREFIX}.`);
  const key = Buffer.from(secret.slice(PREFIX.length), "base64");
  // In two updates, since concatenation would copy a body of up to a megabyte.
  return `v1,${new Bun.CryptoHasher("sha256", key).update(`${id}.${timestampSeconds}.`).update(body).digest("base64")}`;
}

/** Calls and callbacks have separate secrets, so that no callback passes for a call. */
export const SIGNING_USES = ["calls", "callbacks"] as const;

export type SigningUse = (typeof SIGNING_USES)[number];
