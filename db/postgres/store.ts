/** Opens the store on PostgreSQL, with what it has for several nodes. */
import type { Store } from "../../src/core/store.ts";
import { type DbConnection, orClose } from "../commands/command.ts";
import { tellingAway } from "../sql/errors.ts";
import { createStore, type StoreSettings } from "../sql/store.ts";
import { createChangeReader, createHintSender, createListen, createNodeStore } from "./cluster.ts";
import { openPostgres, type PostgresPool, refusalIn } from "./connection.ts";
import { checkPostgresMigrated, migratePostgres } from "./migrate.ts";
import { RAISE_BASE } from "./queries.ts";

interface PostgresSettings extends Pick<StoreSettings, "url" | "seal" | "now" | "onAway" | "onUnreadable"> {
  readonly nodeId: string;
}

/**
 * Opens a database that many processes may use at the same time. After an outage of the server, it recovers. A server that
 * refuses its user or has no such database counts as unavailable, since it may be set up after this starts.
 */
export async function openPostgresStore({ url, now, ...settings }: PostgresSettings): Promise<Store> {
  const pool = openPostgres(url, { onWriterOpen: RAISE_BASE, onCommit: createHintSender(settings.nodeId) });
  await orClose(pool, () => migratePostgres(pool, now));
  return createPostgresStore(pool, settings);
}

/** Creates the store over connections to tables of this version. */
export function createPostgresStore(pool: PostgresPool, settings: Omit<PostgresSettings, "url" | "now">): Store {
  const { nodeId, onAway = () => {} } = settings;
  const connection = { ...pool, ...tellingAway(pool, onAway) };
  return createStore({
    ...settings,
    connection,
    cluster: {
      ...createNodeStore(connection),
      ...createChangeReader(connection),
      listen: createListen(connection.config, nodeId),
    },
    isOnlyProcess: false,
    // The server makes commits durable, and this process never learns of one that it could not.
    onFatal: (cause) => {
      throw new Error("A commit of PostgreSQL could not be made durable.", { cause });
    },
  });
}

/** Opens a connection for a few statements. Throws an error for the operator unless the tables are of this version. */
export async function openPostgresMigrated(url: string): Promise<DbConnection> {
  const pool = openPostgres(url);
  await orClose(pool, () => checkPostgresMigrated(pool)).catch((error: unknown) => {
    throw refusalIn(error) ?? error;
  });
  return pool;
}
