import { AccountCache, type CachedSettingsStore } from "./account-settings.ts";
import type { Actor } from "./roles.ts";
import type { AuditEntry } from "./audit.ts";

/** `mail` goes to addresses, the others to a URL. */
export const CHANNEL_KINDS = ["mail", "slack", "webhook"] as const;

export type ChannelKind = (typeof CHANNEL_KINDS)[number];

/** The kinds whose messages are posted to a URL. */
export type PostedKind = Exclude<ChannelKind, "mail">;

export const POSTED_KINDS = CHANNEL_KINDS.filter((kind): kind is PostedKind => kind !== "mail");

/** Where a channel's messages go. The store keeps it sealed, since anyone with an incoming webhook's URL can post to it. */
export interface ChannelTarget {
  /** Addresses, for mail; else empty. */
  readonly to: readonly string[];
  /** Null for mail. */
  readonly url: string | null;
}

/** Where an account asks for approval. If the row can't be decrypted, `to` is empty and `url` null, and nothing is sent. */
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

/** The members that a change sets. Absent members stay. */
interface ChannelPatch {
  readonly name?: string;
  readonly target?: ChannelTarget;
  readonly remindAfterMinutes?: number | null;
  readonly enabled?: boolean;
}

/** Rows by account, the oldest first; an account has at most `CHANNELS_MAX`. */
export interface ChannelStore extends CachedSettingsStore<Channel> {
  find(accountId: string, id: string): Promise<Channel | null>;
  /** False: there is no such channel. */
  change(accountId: string, id: string, patch: ChannelPatch, audit: AuditEntry): Promise<boolean>;
}

/**
 * The channels of all accounts, in memory: a change of an action notifies them in its own commit, which can't wait for a read.
 * The sender of a message asks the store again.
 */
export class KnownChannels extends AccountCache<Channel, readonly Channel[]> {
  constructor(store: Pick<ChannelStore, "list" | "version">) {
    super(store, (channels) => channels);
  }

  /** The channels of an account, the oldest first. */
  readonly of = (accountId: string): readonly Channel[] => this.view(accountId) ?? NO_CHANNELS;

  /** The name of a channel; its id if it is unknown. */
  readonly channelName = (accountId: string, id: string): string =>
    this.of(accountId).find((channel) => channel.id === id)?.name ?? id;
}

/** One shared list, since most accounts have none. */
const NO_CHANNELS: readonly Channel[] = [];
