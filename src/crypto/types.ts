import type { ApprovalLink } from "../actions/status.ts";
import type { SigningUse } from "./signature.ts";

/** The place of an encrypted text. It can be decrypted only for the same place. */
export interface SealedPlace {
  readonly table: string;
  readonly row: string;
  readonly column: string;
}

/** A browser in which a person has logged in before. */
export interface KnownDevice {
  readonly personId: string;
  /** New at each log-in. */
  readonly deviceId: string;
  readonly expiresAt: Date;
}

/** A signing secret can't be decrypted: its row was altered or encrypted under another key. */
export class UnreadableSecret extends Error {
  override readonly name = "UnreadableSecret";
}

/** All cryptography of the service. */
export interface Secrets {
  /** A new API key `og_…` with its checksum. */
  newApiKey(): string;
  /** A new token of a session or link: 256 random bits as hex. */
  newToken(): string;
  /** SHA-256, hex: keys and tokens are stored and looked up by it. */
  hash(text: string): string;
  /** A new root secret of an account. */
  newRootSecret(): Uint8Array;
  /** Encrypts with AES-256-GCM under the master key, bound to its place. */
  seal(plain: Uint8Array | string, place: SealedPlace): string;
  /** Decrypts. Throws if the text was altered, moved to another place or encrypted under another key. */
  open(sealed: string, place: SealedPlace): Buffer;
  /** The `whsec_…` of one account and origin, of calls or of callbacks. */
  signingSecret(rootSecret: Uint8Array, origin: string, use: SigningUse): string;
  /** The `webhook-signature` of the exact bytes that are sent: a `v1,…` for each secret (Standard Webhooks 1.0.0). */
  sign(signing: readonly string[], message: { id: string; timestampSeconds: number; body: string }): string;
  /** The value of the device cookie: the device and its MAC. It does not log anybody in. */
  deviceToken(device: KnownDevice): string;
  /** The device of a token, expired or not; null: not a token of ours. */
  readDeviceToken(token: string): KnownDevice | null;
  /** A MAC over the content of an MCP question. Returned with the answer, it proves that we asked exactly this. */
  questionToken(about: string): string;
  /** Whether the token was made for exactly this text. */
  isQuestionToken(about: string, token: string): boolean;
  /** The token of an action's receipt page: the id and its MAC. */
  receiptToken(actionId: string): string;
  /** The id of the action of a receipt token; null: not a token of ours. */
  readReceiptToken(token: string): string | null;
  /** The token of an approval link, 256 bits; always the same for the same link. */
  approvalToken(link: ApprovalLink): string;
  /** The link that a token names; null: no token. Verify it with `isOfHash` and the stored hash. */
  readApprovalToken(token: string): ApprovalLink | null;
  /** Whether a text has this hash; constant time. */
  isOfHash(text: string, hash: string): boolean;
}

/** The queue in which a password waits to be hashed. */
export interface Turn {
  /** Calls of one lane run in order; lanes take turns. */
  readonly lane: string;
  /** The device, session or link is known, which gets more turns. */
  readonly isKnown: boolean;
}

/** Hashes passwords. Both methods throw `unavailable` if too many calls wait. */
export interface Passwords {
  /** Argon2id, in the PHC string format. */
  hash(password: string, turn: Turn): Promise<string>;
  /** Whether the password has this hash. Null (unknown person): false, after the same time. */
  verify(password: string, hash: string | null, turn: Turn): Promise<boolean>;
}
