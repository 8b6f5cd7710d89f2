import type { SigningUse } from "../core/account-store.ts";
import { originOf } from "../core/target.ts";
import type { Secrets } from "../crypto/secrets.ts";

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
    const signing = await signingSecrets.inUse(accountId, originOf(url), now, use);
    return [
      ["webhook-id", id],
      ["webhook-timestamp", String(timestampSeconds)],
      ["webhook-signature", secrets.sign(signing, { id, timestampSeconds, body })],
    ];
  };
}
