import { join } from "node:path";
import { openFile } from "../../db/libsql/file.ts";
import { createChangeReader } from "../../db/postgres/cluster.ts";
import type { ClusterStore, Store } from "../../src/core/store.ts";
import type { DbConnection } from "../../db/commands/command.ts";

/** All nodes must have one master key. */
export const NODES_ENV = { SECRET_KEY: Buffer.alloc(32, 5).toString("base64") } as const;

const WRITES: ReadonlySet<string> = new Set(["create", "apply", "claimDue", "settle"]);

/** One store that several engines of this process use as if each were a node of its own. */
export class SharedStore {
  readonly #path: string;
  /** What each node does at a hint of another one. */
  readonly #hints = new Map<number, () => void>();
  #store: Store | null = null;
  #look: DbConnection | null = null;

  /** Of the folder in which the first engine opens its file. */
  constructor(folder: string) {
    this.#path = join(folder, "outgate.db");
  }

  /** For `wrapStore` of the engine of this node. The first one's store is what all use. */
  readonly of = (node: number) => (own: Store) => {
    const store = (this.#store ??= own);
    this.#look ??= openFile(this.#path, "read");
    return {
      ...store,
      actions: this.#hinting(store.actions, node),
      outbox: this.#hinting(store.outbox, node),
      // The keys and accounts of tests are those that the first node has stored.
      accounts: node === 0 ? store.accounts : { ...store.accounts, addKey: async () => true },
      cluster: this.#cluster(node, this.#look),
      isOnlyProcess: false,
      probe: () => store.probe(),
      close: () => own.close(),
    };
  };

  /** Every method that may have written gives the other nodes a hint. */
  #hinting<T extends object>(target: T, node: number): T {
    const call = (method: unknown, name: string | symbol) =>
      typeof method === "function" && WRITES.has(String(name))
        ? async (...args: unknown[]) => {
            const done: unknown = await Reflect.apply(method, target, args);
            for (const [other, onHint] of this.#hints) if (other !== node) onHint();
            return done;
          }
        : method;
    return Object.assign(
      {},
      target,
      ...Object.entries(target).map(([name, method]) => ({ [name]: call(method, name) })),
    );
  }

  #cluster(node: number, look: DbConnection): ClusterStore {
    const notHere = () => Promise.reject(new Error("This cluster is for reading changes only."));
    const { changedSince, findRevisions } = createChangeReader(look);
    return {
      now: async () => new Date(),
      beat: notHere,
      leave: notHere,
      takeJob: notHere,
      releaseJob: notHere,
      changedSince,
      findRevisions,
      listen: async (onHint) => {
        this.#hints.set(node, onHint);
        return async () => void this.#hints.delete(node);
      },
    };
  }
}
