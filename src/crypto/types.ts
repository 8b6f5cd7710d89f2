import type { ApprovalLink } from "../actions/status.ts";
import type { SigningUse } from "./signature.ts";

/** Where a sealed text belongs: it opens nowhere else. */
export interface SealedPlace {
  readonly table: string;
  readonly row: string;
  readonly column: string;
}

/** A browser in which a person has logged in before. */
export interface KnownDevice {
  readonly personId: string;
  /** Another one at each log-in. */
  readonly deviceId: string;
  readonly expiresAt: Date;
}

/** What signs can't be opened: its row was altered by hand, or was sealed under another key. Nothing is signed by it. */
export class UnreadableSecret extends Error {
  override readonly name = "UnreadableSecret";
}

/** Everything that is made or checked with a key. */
export interface Secrets {
  /** A new API key `og_…` with its checksum. */
  newApiKey(): string;
  /** A new token of a session or a link: 256 random bits as hex, because chats cut `-` and `_` off the end of links. */
  newToken(): string;
  /** SHA-256, hex: how keys and tokens are kept and looked up. */
  hash(text: string): string;
  /** A new root secret of an account. */
  newRootSecret(): Uint8Array;
  /** AES-256-GCM under the master key, bound to its place. */
  seal(plain: Uint8Array | string, place: SealedPlace): string;
  /** Throws when the text was altered, moved to another place or sealed under another key. */
  open(sealed: string, place: SealedPlace): Buffer;
  /** The `whsec_…` of one account and origin, of calls or of callbacks. */
  signingSecret(rootSecret: Uint8Array, origin: string, use: SigningUse): string;
  /** A Standard Webhooks signature list of the exact bytes that are sent, a `v1,…` for each secret (Standard Webhooks 1.0.0). */
  sign(signing: readonly string[], message: { id: string; timestampSeconds: number; body: string }): string;
  /** What the cookie of a known device holds: the device and its MAC. It lets nobody in. */
  deviceToken(device: KnownDevice): string;
  /** The device that a token was made for, whether its time is over or not; null for any other text. */
  readDeviceToken(token: string): KnownDevice | null;
  /** A MAC over what a question is about. Brought back with the answer it proves that we asked exactly this. */
  questionToken(about: string): string;
  /** Whether the token was made for this very text. */
  isQuestionToken(about: string, token: string): boolean;
  /** The token of an action's receipt page; found by its id, proven by its MAC. */
  receiptToken(actionId: string): string;
  /** The id of the action whose receipt the token opens; null for any other text. */
  readReceiptToken(token: string): string | null;
  /** The token of an approval link, 256 bits; always the same one for a link. */
  approvalToken(link: ApprovalLink): string;
  /** What a token claims to be for; null for what is no token. Only `isOfHash` of the kept hash proves it. */
  readApprovalToken(token: string): ApprovalLink | null;
  /** Whether a text is the one with this hash; constant in time. */
  isOfHash(text: string, hash: string): boolean;
}

/** Who waits for a password to be hashed, so that nobody is kept waiting by what others ask for. */
export interface Turn {
  /** Those of one lane wait for each other. */
  readonly lane: string;
  /** The device, session or link is known: they wait less. */
  readonly isKnown: boolean;
}

/** Passwords are hashed here, and nowhere kept. Both throw `unavailable` when too many wait for their turn. */
export interface Passwords {
  /** Argon2id, in the PHC string format. */
  hash(password: string, turn: Turn): Promise<string>;
  /** Whether the hash is this password's. Null is nobody's: false, after the same time. */
  verify(password: string, hash: string | null, turn: Turn): Promise<boolean>;
}
