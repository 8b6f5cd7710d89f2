import { AccountCache } from "../core/account-cache.ts";
import type { Channel, ChannelStore } from "../core/channel.ts";

/**
 * The channels of all accounts: a change of an action is told to them in its own commit, which can't wait for a read. Whoever
 * sends a message asks the store again.
 */
export class KnownChannels extends AccountCache<Channel, readonly Channel[]> {
  constructor(store: Pick<ChannelStore, "list" | "version">) {
    super(store, (channels) => channels);
  }

  /** The channels of an account, the oldest first. */
  readonly of = (accountId: string): readonly Channel[] => this.viewOf(accountId) ?? NO_CHANNELS;

  /** The name of a channel; its id if it is unknown. */
  readonly nameOf = (accountId: string, id: string): string =>
    this.of(accountId).find((channel) => channel.id === id)?.name ?? id;
}

/** Shared, since most accounts have none. */
const NO_CHANNELS: readonly Channel[] = [];
