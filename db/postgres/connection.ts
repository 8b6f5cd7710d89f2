/** PostgreSQL: connections, transactions over them, and last what their errors mean. `tx.ts` runs a command, and `queries.ts` has what is sent. */
import type { Duplex } from "node:stream";
import { Client, type ClientConfig, DatabaseError, type QueryResult } from "pg";
import { afterRunning, systemClock } from "../../src/core/clock.ts";
import {
  MIGRATION_KEEP_ALIVE_MS,
  POSTGRES_READERS,
  REMOTE_CALL_MS_MAX,
  STORE_RETRY_MS,
  TRANSACTION_MS_MAX,
} from "../../src/core/limits.ts";
import { StoreUnavailable } from "../../src/core/store.ts";
import { type CommandCall, type DbConnection, runCalls, runGroup } from "../commands/command.ts";
import { postgresDialect, type Row } from "../sql/dialect.ts";
import { DatabaseFault, errorReason, TOO_MANY_CONNECTIONS, unavailable } from "../sql/errors.ts";
import { lockQuery, named, type Query, toQuery, unescapeText, unprepared } from "./queries.ts";
import { openTx } from "./tx.ts";

/** PostgreSQL: reads over a few connections, and one transaction at a time over another. */
export interface PostgresPool extends DbConnection {
  /** Runs work over a separate connection, for migrations. */
  alone(work: (run: Run) => Promise<void>): Promise<void>;
  /** For further connections to the same database. */
  readonly config: ClientConfig;
}

/** Runs one query. `isLong`: without a deadline, as long as the server's machine is reachable. */
type Run = (text: string, options?: { readonly isLong: boolean }) => Promise<readonly Row[]>;

/** Sends a query without waiting for its answer. */
export type Send = (text: string, values: readonly string[]) => void;

interface PostgresOptions {
  readonly callMsMax?: number;
  readonly transactionMsMax?: number;
  /** Runs over each new connection that writes, before anything else. */
  readonly onWriterOpen?: string;
  /** Called after a commit that added to the timeline. */
  readonly onCommit?: (send: Send) => void;
}

/**
 * Connects when a connection is needed, and again if it was lost. Every call has a deadline. A transaction without an answer
 * may have been committed. Works behind a pooler that lends a connection for each transaction: sessions keep only prepared
 * statements, which are given up if the pooler does not know them.
 */
export function openPostgres(url: string, options: PostgresOptions = {}): PostgresPool {
  const { callMsMax = REMOTE_CALL_MS_MAX, transactionMsMax = TRANSACTION_MS_MAX, onWriterOpen, onCommit } = options;
  const config = toConfig(url, callMsMax);
  const preparing: Preparing = { isOn: true };
  const connect = (onOpen?: string) => new Connection(config, callMsMax, preparing, onOpen);
  const readers = Array.from({ length: POSTGRES_READERS }, () => connect());
  /** The reader with the fewest unanswered queries. One that was just refused comes last. */
  const connectionLoad = ({ waiting, isRefused }: Connection) => (isRefused ? Number.POSITIVE_INFINITY : waiting);
  const idlest = () => readers.reduce((best, one) => (connectionLoad(one) < connectionLoad(best) ? one : best));
  // Set on the server, so that a query ends when nobody waits for it any more, and a frozen process holds no locks.
  const bounds = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"]
    .map((name) => `set_config('${name}', '${transactionMsMax}', true)`)
    .join(", ");
  const writer = connect(onWriterOpen === undefined ? undefined : `select ${bounds}; ${onWriterOpen}`);
  // Prepared, since planning so many calls takes longer than all else that begins and ends a transaction.
  const settings = { ...named(`select ${SERVER}, ${bounds}, ${BY_INDEX}, ${AS_WRITTEN}`), values: [] };

  // Sent over a reader: over the writer, it could become part of the next transaction and be lost with it.
  const committed = () => onCommit?.((text, values) => idlest().send(text, values));
  /** The running transaction. The next one waits for it: between its statements, a commit would commit only a part of it. */
  let last: Promise<unknown> = Promise.resolve();
  const transact = (calls: readonly CommandCall[]) => {
    const run = () => commit(writer, settings, calls, committed);
    const turn = last.then(() => again(preparing, run, (error) => error instanceof ServerChanged));
    last = turn.catch(ignore);
    return turn.catch((error: unknown) => {
      // Without its writer a node is of no use, so that the next try gets the place of a reader.
      if (isBeyondConnections(error)) readers.find((reader) => reader.makeRoom());
      throw faultIn(error);
    });
  };
  /** If the server has no more connections, those that are open do. */
  const readOver = async (sent: readonly Query[]) => {
    for (let tries = 1; ; tries += 1) {
      try {
        return await idlest().pipeline(sent);
      } catch (error) {
        const isLast = tries >= readers.length || readers.every(({ isRefused }) => isRefused);
        if (isLast || !isBeyondConnections(error)) throw error;
      }
    }
  };

  return {
    dialect: postgresDialect,
    config,
    async read(statement) {
      const query = toQuery(statement);
      const sent = STEPS.test(statement.sql) ? [BEGIN_STEPS, query, unprepared("commit")] : [query];
      try {
        const answers = await again(
          preparing,
          () => readOver(sent),
          (error) => error instanceof ConnectionLost,
        );
        const answer = answers[sent.indexOf(query)];
        if (answer === undefined) throw new StoreUnavailable("The database gave no answer.");
        return rowsOf(answer);
      } catch (error) {
        const fault = faultIn(error);
        throw fault instanceof StoreUnavailable || fault.kind === "rejected" ? fault : unavailable(fault);
      }
    },
    transact,
    alone: (work) => runAlone(config, callMsMax, work),
    async close() {
      await Promise.all([...readers, writer].map((connection) => connection.close()));
    },
  };
}

/** Runs commands one after the other, and commits. Doesn't wait for answers that nobody needs. */
async function commit(
  connection: Connection,
  settings: Query,
  calls: readonly CommandCall[],
  onCommit: () => void,
): Promise<readonly unknown[]> {
  // Safe: these are the arguments of the command.
  const locking = lockQuery(calls.flatMap(({ command, args }) => command.locks(...(args as never))));
  const sent: Promise<readonly QueryResult[]>[] = [];
  const transaction: TransactionClient = { client: null, hasFailed: false };
  const send = (batch: readonly Query[]) => {
    const answers = connection.pipeline(batch, transaction);
    sent.push(answers);
    return answers;
  };
  let addsToTimeline = false;
  const begun = send([BEGIN, settings, ...(locking === null ? [] : [locking])]);
  const isSameServer = begun.then((answers) =>
    connection.requireServer(String(answers.flatMap((one) => rowsOf(one))[0]?.["server"])),
  );
  isSameServer.catch(ignore);
  try {
    const results = await runCalls(calls, (group) => {
      const tx = openTx((query) => {
        addsToTimeline ||= ADDS_TO_TIMELINE.test(query.text);
        return send([query]);
      });
      return runGroup(tx, group).finally(() => tx.end());
    });
    // Another server may have lower positions, so nothing is committed there before the connection was opened anew.
    if (addsToTimeline) await isSameServer;
    const answers = await send([COMMIT]);
    await Promise.all(sent);
    // The answer to two statements is a list.
    if (answers.flat().at(-1)?.command !== "COMMIT") throw new StoreUnavailable("The database did not commit.");
    if (connection.isUnconfirmed) {
      throw new StoreUnavailable("The standby may not have the commit.", {
        reason: "a wait for its standby was canceled",
      });
    }
    if (addsToTimeline) onCommit();
    return results;
  } catch (error) {
    // The transaction may still be open.
    connection.abandon(transaction);
    const failed = (await Promise.allSettled(sent)).filter((one) => one.status === "rejected");
    // Before other errors: positions that are in use there are a consequence of it.
    if (addsToTimeline) await isSameServer.catch(throwServerChanged);
    throw failed.find(({ reason }) => !isAftermath(reason))?.reason ?? error;
  }
}

/** Statements that add to the timeline. */
const ADDS_TO_TIMELINE = /insert into "?timeline"? /;

/** Without a timeout: after one, a server that waits for its standby reports as committed what the standby doesn't have. */
const COMMIT = unprepared("set local statement_timeout = 0; commit");

const BEGIN = unprepared("begin isolation level read committed");

/** Errors of the work itself, as of tables of a newer version, are no outage. */
async function runAlone(config: ClientConfig, callMsMax: number, work: (run: Run) => Promise<void>): Promise<void> {
  const client = new Client({ ...config, pipeline: false, keepAliveInitialDelayMillis: MIGRATION_KEEP_ALIVE_MS });
  client.on("error", ignore);
  try {
    await orFault(client.connect());
    await work(async (text, { isLong } = { isLong: false }) => {
      // Rejects the query that is under way.
      const timer = isLong ? undefined : setTimeout(() => client.connection.stream.destroy(), callMsMax);
      try {
        return rowsOf(await orFault(client.query(text)));
      } finally {
        clearTimeout(timer);
      }
    });
  } finally {
    await client.end();
  }
}

async function orFault<Result>(answer: Promise<Result>): Promise<Result> {
  try {
    return await answer;
  } catch (error) {
    throw faultIn(error);
  }
}

/**
 * Rules out plans that sort or read a whole table. Until it has statistics, the planner takes a table for empty and every index to
 * be equally good: an update of a list would read all actions, and a claim would sort the whole backlog. Prepared plans stay.
 */
const BY_INDEX = ["enable_sort", "enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit"]
  .map((name) => `set_config('${name}', 'off', true)`)
  .join(", ");

/** Tells servers apart: behind a pooler, a connection may lead to another one from now on. */
const SERVER = "extract(epoch from pg_postmaster_start_time())::text as server";

/**
 * What a role or server may have set otherwise: lists have nulls, and a commit that is acknowledged is on the server's disk. `local`
 * doesn't wait for a standby, which `off` doesn't either.
 */
const AS_WRITTEN = `set_config('array_nulls', 'on', true),
  case current_setting('synchronous_commit') when 'off' then set_config('synchronous_commit', 'local', true) end`;

/**
 * Finds reads that look into a table for each step of a recursion or each item of a list (`itemsOf`), and counts up to a bound,
 * for which reading the whole table would take seconds. Not joins with such a list, for which a hash join is right.
 */
const STEPS = /^(with recursive|select j\.value|select count\(\*\) as count) /;

/** Begins a read by these plans. It costs two more messages, which other reads are not worth. */
const BEGIN_STEPS = unprepared(`begin; select ${BY_INDEX}`);

/** Whether statements are prepared. Turned off when a pooler does not know one. */
interface Preparing {
  isOn: boolean;
}

/** Each reader may have the outdated statement. */
const OUTDATED_TRIES = POSTGRES_READERS + 1;

/**
 * Repeats a call that failed before it did anything, because of a pooler or changed tables. `isRepeatable`: other such errors.
 * A connection with an outdated statement is dropped. If those that are opened anew have it too, a pooler keeps it.
 */
export async function again<Result>(
  preparing: Preparing,
  run: () => Promise<Result>,
  isRepeatable: (error: unknown) => boolean,
): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await run();
    } catch (error) {
      const isOld = isOutdated(error);
      const mayRepeat = isOld ? tries <= OUTDATED_TRIES : tries === 1 && (isOfPooler(error) || isRepeatable(error));
      if (!mayRepeat) throw error;
      if (isOfPooler(error) || (isOld && tries === OUTDATED_TRIES)) preparing.isOn = false;
    }
  }
}

/** The connection was lost with unanswered queries. Not used for timeouts. */
class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}

/** A transaction began on another server than those before over this connection. Nothing of it is committed. */
class ServerChanged extends StoreUnavailable {
  override readonly name = "ServerChanged";
}

function throwServerChanged(error: unknown): void {
  if (error instanceof ServerChanged) throw error;
}

/** The client on which a transaction began. */
interface TransactionClient {
  client: Client | null;
  /** A pipeline of the transaction has failed, so no other may follow. */
  hasFailed: boolean;
}

/** A connection. If it is lost, the next call connects again. */
class Connection {
  readonly #config: ClientConfig;
  readonly #callMsMax: number;
  readonly #preparing: Preparing;
  readonly #onOpen: string | undefined;
  #client: Client | null = null;
  #opening: Promise<Client> | null = null;
  #waiting = 0;
  #isClosed = false;
  #refusedAtMs = Number.NEGATIVE_INFINITY;
  #server: string | null = null;
  /** Somebody has ended a wait for a standby (`pg_cancel_backend`): the server reports as committed what the standby may not have. */
  isUnconfirmed = false;

  constructor(config: ClientConfig, callMsMax: number, preparing: Preparing, onOpen?: string) {
    this.#onOpen = onOpen;
    this.#config = config;
    this.#callMsMax = callMsMax;
    this.#preparing = preparing;
  }

  /** The number of queries that were sent but not answered. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Whether the server has just had no more connections for it. */
  get isRefused(): boolean {
    return performance.now() - this.#refusedAtMs < STORE_RETRY_MS;
  }

  /** Throws if the connection led to another server before, over which nothing has run first. Drop it then. */
  requireServer(server: string): void {
    this.#server ??= server;
    if (this.#server === server) return;
    throw new ServerChanged("The connection leads to another server.", { reason: "it was lost in a transaction" });
  }

  /** Gives the connection back unless it is in use. False: there is none to give. */
  makeRoom(): boolean {
    if (this.#client === null || this.#waiting > 0) return false;
    this.#refusedAtMs = performance.now();
    this.#drop(this.#client);
    return true;
  }

  /**
   * Sends queries at once. Rejects with the first error that is not the consequence of another. A transaction's queries go over
   * one client: over another, they would lack its `begin`, and each would be its own transaction.
   */
  async pipeline(
    queries: readonly Query[],
    transaction: TransactionClient = { client: null, hasFailed: false },
  ): Promise<readonly QueryResult[]> {
    this.#waiting += 1;
    let expired = false;
    let client: Client | null = null;
    const { promise: deadline, reject } = Promise.withResolvers<never>();
    const cancel = afterRunning(systemClock, this.#callMsMax, () => {
      expired = true;
      reject(new StoreUnavailable("The database has not answered in time.", { reason: "no answer came in time" }));
      if (client !== null) this.#drop(client);
    });
    try {
      const opened = await Promise.race([this.#open(), deadline]);
      transaction.client ??= opened;
      if (transaction.client !== opened || transaction.hasFailed) {
        const reason = "it was lost in a transaction";
        throw new StoreUnavailable("The connection to the database was lost.", { reason });
      }
      client = opened;
      const sent = Promise.allSettled(queries.map((query) => opened.query(this.#toConfig(query))));
      return this.#resultsOf(opened, await Promise.race([sent, deadline]));
    } catch (error) {
      transaction.hasFailed = true;
      if (expired || error instanceof StoreUnavailable || isConnectionSound(error)) throw error;
      if (client !== null) this.#drop(client);
      throw client === null ? error : new ConnectionLost("The connection to the database was lost.", { cause: error });
    } finally {
      cancel();
      this.#waiting -= 1;
    }
  }

  /** Sends a query without waiting for its answer. */
  send(text: string, values: readonly string[]): void {
    this.#open()
      .then((client) => client.query(text, [...values]))
      .catch(ignore);
  }

  /** Drops the client of a transaction, so that the server rolls it back. The next call connects again. */
  abandon({ client }: TransactionClient): void {
    if (client !== null) this.#drop(client);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const client = await this.#opening?.catch(() => null);
    if (client === undefined || client === null) return;
    this.#forget(client);
    const { promise: deadline, resolve: giveUp } = Promise.withResolvers<void>();
    // Clear it, since a timer keeps the process from ending.
    const timer = setTimeout(giveUp, this.#callMsMax);
    await Promise.race([client.end(), deadline]);
    clearTimeout(timer);
  }

  #resultsOf(client: Client, settled: readonly PromiseSettledResult<QueryResult>[]): readonly QueryResult[] {
    const failed = settled.filter((one) => one.status === "rejected");
    const [first] = failed;
    if (first === undefined) return settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const lost = failed.find(({ reason }) => !isConnectionSound(reason));
    if (lost !== undefined) throw lost.reason;
    // A statement that was prepared in a failed transaction may be missing.
    this.#drop(client);
    throw (failed.find(({ reason }) => !isAftermath(reason)) ?? first).reason;
  }

  #toConfig({ name, text, values, rowMode }: Query) {
    if (values.length === 0 && name === "") return { text, rowMode };
    const isPrepared = this.#preparing.isOn && name !== "";
    return { ...(isPrepared ? { name } : {}), text, values: [...values], rowMode };
  }

  #open(): Promise<Client> {
    if (this.#isClosed) return Promise.reject(new StoreUnavailable("The database is closed."));
    return (this.#opening ??= this.#connect());
  }

  async #connect(): Promise<Client> {
    const client = new Client(this.#config);
    [this.#client, this.#server, this.isUnconfirmed] = [client, null, false];
    // By the function of the server, since the message is in its language.
    client.on("notice", ({ routine }) => {
      if (routine === "SyncRepWaitForLSN" && this.#client === client) this.isUnconfirmed = true;
    });
    client.on("error", () => this.#forget(client));
    client.on("end", () => this.#forget(client));
    try {
      await client.connect();
      joinWrites(client.connection.stream);
      if (this.#onOpen !== undefined) await this.#begin(client, this.#onOpen);
      return client;
    } catch (error) {
      if (isBeyondConnections(error)) this.#refusedAtMs = performance.now();
      this.#forget(client);
      client.end().catch(ignore);
      throw error;
    }
  }

  /** Within a deadline, since the calls that wait for the client don't have it yet and can't drop it. */
  async #begin(client: Client, text: string): Promise<void> {
    const timer = setTimeout(() => this.#drop(client), this.#callMsMax);
    try {
      await client.query(text);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Forgets a client, unless another has taken its place: the end of a client may be reported late. */
  #forget(client: Client): void {
    if (this.#client !== client) return;
    [this.#client, this.#opening] = [null, null];
  }

  /** Ends the connection at once. Everything sent over it is rejected. */
  #drop(client: Client): void {
    this.#forget(client);
    client.connection.stream.destroy();
  }
}

/** Beyond this many bytes, it writes before the end of the turn. */
const JOINED_BYTES_MAX = 65_536;

/**
 * Writes everything from one turn of the event loop with one system call. A query is up to five messages, and the socket writes
 * each separately, even if it is corked.
 */
function joinWrites(stream: Duplex): void {
  const write = stream.write.bind(stream);
  const waiting: Uint8Array[] = [];
  let bytes = 0;
  const flush = () => {
    const joined = Buffer.concat(waiting.splice(0));
    bytes = 0;
    if (joined.length > 0 && stream.writable) write(joined);
  };
  const join = (chunk: Uint8Array, onWritten?: () => void): boolean => {
    if (waiting.length === 0) process.nextTick(flush);
    waiting.push(chunk);
    bytes += chunk.length;
    if (bytes >= JOINED_BYTES_MAX || onWritten !== undefined) flush();
    // Only the last message of a connection has a callback.
    if (onWritten !== undefined) write(new Uint8Array(), onWritten);
    return true;
  };
  Object.assign(stream, { write: join });
}

function toConfig(url: string, connectionTimeoutMillis: number): ClientConfig {
  return {
    connectionString: url,
    application_name: "outgate",
    keepAlive: true,
    connectionTimeoutMillis,
    pipeline: true,
    types: { getTypeParser: (oid: number) => PARSERS.get(oid) ?? unescapeText },
  };
}

/** Parsers by PostgreSQL's type ids: bool, int8, int2, int4, float4, float8, numeric. Other types are texts. */
const PARSERS: ReadonlyMap<number, (text: string) => unknown> = new Map<number, (text: string) => unknown>([
  [16, (text) => text === "t"],
  ...[20, 21, 23, 700, 701, 1700].map((oid) => [oid, Number] as const),
]);

function rowsOf({ rows }: QueryResult): readonly Row[] {
  // Safe: the parsers give texts, numbers and null; statements that select a boolean decode it.
  return rows as readonly Row[];
}

function ignore(): void {
  // The caller that waits for the answer gets the error.
}

/** Serialization failure and deadlock: the same transaction may succeed if it is repeated. */
const REPEATABLE = /^(40001|40P01)$/;

/**
 * Classes of errors that mean that the statement or its values are wrong: data, constraints, syntax, program limits. Not a
 * missing privilege (42501) or table (42P01), since the same statement succeeds once the operator has granted it or restored a backup.
 */
const REJECTED = /^(21|22|23|42(?!501|P01)|54|0A|P0)/;

/** What an error of the driver or the server means. If it has no SQLSTATE, the connection is lost. */
export function faultIn(error: unknown): DatabaseFault | StoreUnavailable {
  if (error instanceof DatabaseFault || error instanceof StoreUnavailable) return error;
  const code = findSqlState(error);
  const refused = REJECTED.test(code) ? "rejected" : "unavailable";
  return new DatabaseFault(REPEATABLE.test(code) ? "busy" : refused, code.startsWith("23"), error);
}

/** Whether the prepared statement is missing or another has its name, since a pooler lends connections of others. */
function isOfPooler(error: unknown): boolean {
  return /^(26000|42P05)$/.test(findSqlState(error));
}

/** Whether a prepared statement's result type has changed with the tables. A new connection prepares it anew. */
function isOutdated(error: unknown): boolean {
  // Not by the message, which is in the server's language.
  return findSqlState(error) === "0A000" && error instanceof DatabaseError && error.routine === "RevalidateCachedQuery";
}

/** Whether the server, the database, the role or the pooler has no more connections. */
export function isBeyondConnections(error: unknown): boolean {
  return errorReason(error) === TOO_MANY_CONNECTIONS;
}

/** Whether it failed only because an earlier statement of its transaction did. */
function isAftermath(error: unknown): boolean {
  return findSqlState(error) === "25P02";
}

/** Whether the server answered, and the connection still works. */
export function isConnectionSound(error: unknown): boolean {
  const code = findSqlState(error);
  // Not after a shutdown or crash, or if the server became a standby: another server may have its address by now.
  return code !== "" && !/^(08|57P|58|25006|XX)/.test(code);
}

/** An error for the operator, if the server answered that this role or database can't be used. */
export function refusalIn(error: unknown): Error | null {
  const cause = error instanceof DatabaseFault ? error.cause : error;
  const isRefused = /^(28|3D|42501|3F)/.test(findSqlState(cause));
  if (!isRefused || !(cause instanceof Error)) return null;
  return new Error(`The database of DATABASE_URL refuses: ${cause.message}. Check its user, password and name.`, {
    cause,
  });
}

/** The SQLSTATE, or "" unless the server sent the error: codes of the network, such as EPIPE, may look like one. */
function findSqlState(error: unknown): string {
  return error instanceof DatabaseError ? (error.code ?? "") : "";
}
