import { join } from "node:path";
import { openFile } from "../../db/libsql/file.ts";
import { createChangeReader } from "../../db/postgres/cluster.ts";
import type { Sql } from "../../db/sql/sql.ts";
import type { ActionStore, ChangedPage, ClusterStore, OutboxStore, Store } from "../../src/core/store.ts";

/** All nodes must have one master key. */
export const NODES_ENV = { SECRET_KEY: Buffer.alloc(32, 5).toString("base64") } as const;

/** One store that several engines of this process use as if each were a node of its own. */
export class SharedStore {
  /** Rows from this position on are as those of a transaction that others wait for; null: nothing holds anything back. */
  heldBackFrom: number | null = null;
  readonly #path: string;
  readonly #hasHints: boolean;
  readonly #nodes = new Map<number, { readonly onHint: () => void; readonly onGap: () => void }>();
  #store: Store | null = null;
  #look: Sql | null = null;

  /** Of the folder in which the first engine opens its file. */
  constructor(folder: string, { hasHints = true } = {}) {
    this.#path = join(folder, "outgate.db");
    this.#hasHints = hasHints;
  }

  /** For `wrapStore` of the engine of this node. The first one's store is what all use. */
  readonly of = (node: number) => (own: Store) => {
    const store = (this.#store ??= own);
    this.#look ??= openFile(this.#path, "read");
    const hints = <T extends object>(target: T): T => this.#hinting(target, node);
    return {
      ...store,
      actions: { ...hints(store.actions), ...this.#read(store.actions) },
      outbox: hints<OutboxStore>(store.outbox),
      // The keys and accounts of tests are those that the first node has stored.
      accounts: node === 0 ? store.accounts : { ...store.accounts, addKey: async () => {} },
      cluster: this.#cluster(node),
      isOnlyProcess: false,
      probe: () => store.probe(),
      close: () => own.close(),
    };
  };

  /** As if the connection for hints had been lost and made again. */
  loseHints(node: number): void {
    this.#nodes.get(node)?.onGap();
  }

  /** Every method that may have written gives the other nodes a hint. */
  #hinting<T extends object>(target: T, node: number): T {
    const call = (method: unknown, name: string | symbol) =>
      typeof method === "function" && WRITES.has(String(name))
        ? async (...args: unknown[]) => {
            const done: unknown = await Reflect.apply(method, target, args);
            for (const [other, { onHint }] of this.#nodes) if (other !== node) onHint();
            return done;
          }
        : method;
    return Object.assign(
      {},
      target,
      ...Object.entries(target).map(([name, method]) => ({ [name]: call(method, name) })),
    );
  }

  #read(actions: ActionStore): Pick<ActionStore, "changes" | "position"> {
    return {
      changes: async (accountId, after) => {
        const page = await actions.changes(accountId, after);
        const last = this.#lastReadable;
        if (page.position <= last) return page;
        return {
          changes: page.changes.filter(({ seq }) => seq <= last),
          position: Math.max(after, last),
          isLast: true,
        };
      },
      position: async () => Math.min(await actions.position(), this.#lastReadable),
    };
  }

  get #lastReadable(): number {
    return (this.heldBackFrom ?? Number.MAX_SAFE_INTEGER) - 1;
  }

  #cluster(node: number): ClusterStore {
    const notHere = () => Promise.reject(new Error("This cluster is for reading changes only."));
    return {
      now: async () => new Date(),
      beat: notHere,
      leave: notHere,
      takeJob: notHere,
      releaseJob: notHere,
      changedSince: (position, limit) => this.#changedSince(position, limit),
      revisionsOf: (ids) => this.#reader.revisionsOf(ids),
      listen: async (onHint, onGap) => {
        if (!this.#hasHints) return null;
        this.#nodes.set(node, { onHint, onGap });
        return async () => void this.#nodes.delete(node);
      },
    };
  }

  async #changedSince(position: number, limit: number): Promise<ChangedPage> {
    const page = await this.#reader.changedSince(position, limit);
    const readable = page.changes.findLast(({ seq }) => seq <= this.#lastReadable)?.seq ?? position;
    return { ...page, position: readable, isLast: page.isLast && readable === page.position };
  }

  get #reader() {
    if (this.#look === null) throw new Error("No engine has opened the store yet.");
    return createChangeReader(this.#look);
  }
}

const WRITES: ReadonlySet<string> = new Set(["create", "apply", "claimDue", "settle"]);
