import type { Actor } from "./roles.ts";
import type { AuditEntry } from "./audit.ts";

/** `mail` goes to addresses, the others to a URL. */
export const CHANNEL_KINDS = ["mail", "slack", "webhook"] as const;

export type ChannelKind = (typeof CHANNEL_KINDS)[number];

/** Where messages of a channel go. The store keeps it sealed: whoever has the URL of an incoming webhook can post to it. */
export interface ChannelTarget {
  /** Addresses, for mail; else empty. */
  readonly to: readonly string[];
  /** Null for mail. */
  readonly url: string | null;
}

/** Where an account asks for approval. `to` is empty and `url` null where the row can't be opened: nothing is sent then. */
export interface Channel extends ChannelTarget {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  readonly kind: ChannelKind;
  /** Minutes after which the question is repeated once; null: never. */
  readonly remindAfterMinutes: number | null;
  readonly enabled: boolean;
  readonly createdAt: Date;
  readonly createdBy: Actor;
}

/** What a change sets; what is absent stays. */
export interface ChannelPatch {
  readonly name?: string;
  readonly target?: ChannelTarget;
  readonly remindAfterMinutes?: number | null;
  readonly enabled?: boolean;
}

/** Stores the channels of accounts. */
export interface ChannelStore {
  /** A text that changes with every write, of whichever account. */
  version(): Promise<string>;
  /** Of one account or of all (null), by account, the oldest first. */
  list(accountId: string | null): Promise<readonly Channel[]>;
  find(accountId: string, id: string): Promise<Channel | null>;
  /** `full`: the account has `CHANNELS_MAX` channels. */
  add(channel: Channel, audit: AuditEntry): Promise<"added" | "full">;
  /** False: there is no such channel. */
  change(accountId: string, id: string, patch: ChannelPatch, audit: AuditEntry): Promise<boolean>;
  /** False: there is no such channel. */
  remove(accountId: string, id: string, audit: AuditEntry): Promise<boolean>;
}
