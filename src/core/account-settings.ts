import { isDeepStrictEqual } from "node:util";
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

/** What a cache reads. Without a version, `reload` always reads the rows. */
type CacheSource<Row> = Pick<CachedSettingsStore<Row>, "list"> & Partial<Pick<CachedSettingsStore<Row>, "version">>;

/**
 * The rows of all accounts in memory, for code that can't wait for a read. `reload` sees changes of other nodes; while nothing
 * has changed, it reads only the version.
 */
export class AccountCache<Row extends { readonly accountId: string }, View> {
  readonly #store: CacheSource<Row>;
  readonly #toView: (rows: readonly Row[]) => View;
  #views = new Map<string, View>();
  #version: string | null = null;
  #lastRead: Promise<unknown> = Promise.resolve();
  #onChange: (accountId: string) => void = () => {};

  /** `toView` turns the rows of one account into what is kept of them. */
  constructor(store: CacheSource<Row>, toView: (rows: readonly Row[]) => View) {
    this.#store = store;
    this.#toView = toView;
  }

  /** Sets the one listener, called with each account whose rows have changed, or may have. */
  onChange(listener: (accountId: string) => void): void {
    this.#onChange = listener;
  }

  /** Loads what has changed: before anything is claimed, and at intervals. Rejects when the store is unavailable. */
  reload(): Promise<void> {
    return this.#inTurn(async () => {
      // Read the version before the rows: the next call reads a change in between again.
      const version = (await this.#store.version?.()) ?? null;
      if (version !== null && version === this.#version) return;
      const rows = Map.groupBy(await this.#store.list(null), ({ accountId }) => accountId);
      const views = new Map([...rows].map(([accountId, own]) => [accountId, this.#toView(own)]));
      const before = this.#views;
      this.#views = views;
      this.#version = version;
      for (const accountId of new Set([...before.keys(), ...views.keys()])) {
        if (!isDeepStrictEqual(before.get(accountId), views.get(accountId))) this.#onChange(accountId);
      }
    });
  }

  /** Reads the rows of an account again, after a change of this process. `before` runs before the listener is called. */
  refresh(accountId: string, before: () => void = () => {}): Promise<void> {
    const read = this.#inTurn(async () => {
      const rows = await this.#store.list(accountId);
      if (rows.length === 0) this.#views.delete(accountId);
      else this.#views.set(accountId, this.#toView(rows));
    });
    return read.finally(() => {
      before();
      this.#onChange(accountId);
    });
  }

  /** Undefined: the account has no rows. */
  protected view(accountId: string): View | undefined {
    return this.#views.get(accountId);
  }

  /** Runs one read after the other, so that none overwrites newer rows. */
  #inTurn(read: () => Promise<void>): Promise<void> {
    const done = this.#lastRead.then(read);
    this.#lastRead = done.catch(() => {});
    return done;
  }
}
