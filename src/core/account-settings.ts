import type { AuditEntry } from "./audit.ts";

/** Stores one kind of account settings. Each write is one commit with its audit entry. */
export interface SettingsStore<Row> {
  list(accountId: string): Promise<readonly Row[]>;
  /** Adds a row, or replaces the one for the same host. `full`: the account has as many others as it may. */
  put(row: Row, audit: AuditEntry): Promise<"written" | "full">;
  /** False: there was none. */
  remove(accountId: string, id: string, audit: AuditEntry): Promise<boolean>;
}

/** A store of settings that are also kept in memory. */
export interface CachedSettingsStore<Row> extends SettingsStore<Row> {
  /** The rows of an account; null: of all. */
  list(accountId: string | null): Promise<readonly Row[]>;
  /** A text that changes with every write of any account. */
  version(): Promise<string>;
}

/**
 * The rows of all accounts in memory, for code that can't wait for a read. `reload` sees changes of other nodes; while nothing
 * has changed, it reads only the version.
 */
export class AccountCache<Row extends { readonly accountId: string }, View> {
  readonly #store: Pick<CachedSettingsStore<Row>, "list" | "version">;
  readonly #viewOf: (rows: readonly Row[]) => View;
  #views = new Map<string, View>();
  #version: string | null = null;
  #lastRead: Promise<unknown> = Promise.resolve();
  #onChange: (accountId: string) => void = () => {};

  /** `viewOf` turns the rows of one account into what is kept of them. */
  constructor(store: Pick<CachedSettingsStore<Row>, "list" | "version">, viewOf: (rows: readonly Row[]) => View) {
    this.#store = store;
    this.#viewOf = viewOf;
  }

  /** Sets the one listener, called with each account whose rows may have changed. */
  onChange(listener: (accountId: string) => void): void {
    this.#onChange = listener;
  }

  /** Loads what has changed: before anything is claimed, and at intervals. Rejects when the store is unavailable. */
  reload(): Promise<void> {
    return this.#inTurn(async () => {
      // Read the version before the rows: the next call reads a change in between again.
      const version = await this.#store.version();
      if (version === this.#version) return;
      const rows = Map.groupBy(await this.#store.list(null), ({ accountId }) => accountId);
      const views = new Map([...rows].map(([accountId, own]) => [accountId, this.#viewOf(own)]));
      const accounts = new Set([...this.#views.keys(), ...views.keys()]);
      this.#views = views;
      this.#version = version;
      for (const accountId of accounts) this.#onChange(accountId);
    });
  }

  /** Reads the rows of an account again, after a change of this process. */
  refresh(accountId: string): Promise<void> {
    return this.#inTurn(async () => {
      const rows = await this.#store.list(accountId);
      if (rows.length === 0) this.#views.delete(accountId);
      else this.#views.set(accountId, this.#viewOf(rows));
      this.#onChange(accountId);
    });
  }

  /** The store's version from before the known rows were read, or an older one; null: nothing was read. */
  protected get version(): string | null {
    return this.#version;
  }

  /** Undefined: the account has no rows. */
  protected viewOf(accountId: string): View | undefined {
    return this.#views.get(accountId);
  }

  /** Runs one read after the other, so that none overwrites newer rows. */
  #inTurn(read: () => Promise<void>): Promise<void> {
    const done = this.#lastRead.then(read);
    this.#lastRead = done.catch(() => {});
    return done;
  }
}
