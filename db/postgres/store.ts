import { tellingAway } from "../sql/errors.ts";
import { orClose } from "../sql/sql.ts";
import { createStore, type StoreSettings } from "../sql/store.ts";
import type { Store } from "../../src/core/store.ts";
import { createChangeReader, createHintSender, createListen, createNodeStore } from "./cluster.ts";
import { openPostgres, type PostgresSql } from "./connection.ts";
import { refusalIn } from "./faults.ts";
import { checkPostgresMigrated, migratePostgres } from "./migrate.ts";
import { RAISE_BASE } from "./queries.ts";
import type { Sql } from "../commands/command.ts";

interface PostgresSettings extends Pick<StoreSettings, "url" | "seal" | "now" | "onAway" | "onUnreadable"> {
  readonly nodeId: string;
}

/**
 * Opens a database that many processes may use at the same time. After an outage of the server, it recovers. A server that
 * refuses its user or has no such database counts as unavailable, since it may be set up after this starts.
 */
export async function openPostgresStore({ url, now, ...settings }: PostgresSettings): Promise<Store> {
  const sql = openPostgres(url, { onWriterOpen: RAISE_BASE, onCommit: createHintSender(settings.nodeId) });
  await orClose(sql, () => migratePostgres(sql, now));
  return createPostgresStore(sql, settings);
}

/** Creates the store over connections to tables of this version. */
export function createPostgresStore(connection: PostgresSql, settings: Omit<PostgresSettings, "url" | "now">): Store {
  const { nodeId, onAway = () => {} } = settings;
  const sql = { ...connection, ...tellingAway(connection, onAway) };
  return createStore({
    ...settings,
    sql,
    cluster: { ...createNodeStore(sql), ...createChangeReader(sql), listen: createListen(sql.config, nodeId) },
    isOnlyProcess: false,
    // The server makes commits durable, and this process never learns of one that it could not.
    onFatal: (cause) => {
      throw new Error("A commit of PostgreSQL could not be made durable.", { cause });
    },
  });
}

/** Opens a connection for a few statements. Throws an error for the operator unless the tables are of this version. */
export async function openPostgresMigrated(url: string): Promise<Sql> {
  const sql = openPostgres(url);
  await orClose(sql, () => checkPostgresMigrated(sql)).catch((error: unknown) => {
    throw refusalIn(error) ?? error;
  });
  return sql;
}
