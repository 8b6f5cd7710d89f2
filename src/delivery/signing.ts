import { originOf } from "../outbound/target.ts";
import type { SigningUse, Secrets } from "../crypto/secrets.ts";

export interface SigningDeps {
  readonly secrets: Pick<Secrets, "sign">;
  readonly signingSecrets: {
    /** The secrets that sign now, the newest first. */
    inUse(accountId: string, origin: string, now: Date, use: SigningUse): Promise<readonly string[]>;
  };
}

/** What is signed. */
interface Signable {
  readonly accountId: string;
  readonly url: string;
  /** `webhook-id`: the same over all attempts. */
  readonly id: string;
  /** The exact text that is sent; empty when there is none. */
  readonly body: string;
}

export type Header = readonly [name: string, value: string];

export type SignedHeaders = (message: Signable, now: Date) => Promise<readonly Header[]>;

/**
 * The three headers of Standard Webhooks 1.0.0, signed with the secret of the account and the target's origin; with two
 * secrets during a rotation. Calls and callbacks have separate secrets.
 */
export function createSignedHeaders({ secrets, signingSecrets }: SigningDeps, use: SigningUse): SignedHeaders {
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
