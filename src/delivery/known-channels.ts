import type { Channel, ChannelStore } from "../core/channel.ts";

/**
 * The channels of all accounts, cached: a change of an action is told to them in its own commit, which can't wait for a read.
 * Other nodes' changes are seen by `reload`, which reads only the version while nothing has changed. Whoever sends a message
 * asks the store again.
 */
export class KnownChannels {
  readonly #store: Pick<ChannelStore, "list" | "version">;
  #channels = new Map<string, readonly Channel[]>();
  #version: string | null = null;
  #lastRead: Promise<unknown> = Promise.resolve();

  constructor(store: Pick<ChannelStore, "list" | "version">) {
    this.#store = store;
  }

  /** Loads what has changed: before anything is claimed, and periodically. Rejects when the store is away. */
  reload(): Promise<void> {
    return this.#inTurn(async () => {
      // Before the rows: a change behind it is read again the next time.
      const version = await this.#store.version();
      if (version === this.#version) return;
      this.#channels = Map.groupBy(await this.#store.list(null), ({ accountId }) => accountId);
      this.#version = version;
    });
  }

  /** Reads the channels of an account again, after a change of this process. */
  refresh(accountId: string): Promise<void> {
    return this.#inTurn(async () => {
      const found = await this.#store.list(accountId);
      if (found.length === 0) this.#channels.delete(accountId);
      else this.#channels.set(accountId, found);
    });
  }

  /** The channels of an account, the oldest first. */
  readonly of = (accountId: string): readonly Channel[] => this.#channels.get(accountId) ?? NO_CHANNELS;

  /** The name of a channel; its id if it is unknown. */
  readonly nameOf = (accountId: string, id: string): string =>
    this.of(accountId).find((channel) => channel.id === id)?.name ?? id;

  /** One read after the other, so that none overwrites newer rows. */
  #inTurn(read: () => Promise<void>): Promise<void> {
    const done = this.#lastRead.then(read);
    this.#lastRead = done.catch(() => {});
    return done;
  }
}

/** Shared, since most accounts have none. */
export const NO_CHANNELS: readonly Channel[] = [];
