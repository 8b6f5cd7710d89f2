import type { Duplex } from "node:stream";
import { Client, type ClientConfig, type QueryResult } from "pg";
import {
  MIGRATION_KEEP_ALIVE_MS,
  POSTGRES_READERS,
  REMOTE_CALL_MS_MAX,
  TRANSACTION_MS_MAX,
} from "../../src/core/limits.ts";
import { type CommandCall, runCalls, runGroup } from "../commands/command.ts";
import { unavailable } from "../sql/errors.ts";
import type { Done, Row, Sql, Statement } from "../sql/sql.ts";
import { StoreUnavailable } from "../../src/core/store.ts";
import { postgresDialect } from "./dialect.ts";
import { lockQuery, type Query, queryOf, unescapeText } from "./queries.ts";
import { faultIn, isAftermath, isConnectionSound, isOfPooler, isOutdated } from "./faults.ts";
import { openTx } from "./tx.ts";

/** A connection to PostgreSQL: reads on a few connections, one transaction at a time on another. */
export interface PostgresSql extends Sql {
  /** Lends a connection of its own: for migrations. */
  alone(work: (run: Run) => Promise<void>): Promise<void>;
  /** How further connections to the same database are made. */
  readonly config: ClientConfig;
}

/** Runs one query. `isLong`: it may take as long as it needs, while the server's machine answers. */
export type Run = (text: string, options?: { readonly isLong: boolean }) => Promise<readonly Row[]>;

/** Sends a query whose answer nobody waits for. */
export type Send = (text: string, values: readonly string[]) => void;

interface PostgresOptions {
  readonly callMsMax?: number;
  readonly transactionMsMax?: number;
  /** What to send after a commit that added to the timeline, without waiting for an answer. */
  readonly onCommit?: (send: Send) => void;
}

/**
 * Opens connections when they are needed, and again when they were lost. Every call has a deadline; a transaction without
 * an answer may have been committed. All queries of a transaction are sent at once. It works behind a pooler that lends
 * a connection for each transaction: nothing is kept in a session but prepared statements, and those are given up when
 * the pooler does not know them.
 */
export function openPostgres(url: string, options: PostgresOptions = {}): PostgresSql {
  const { callMsMax = REMOTE_CALL_MS_MAX, transactionMsMax = TRANSACTION_MS_MAX, onCommit } = options;
  const config = configOf(url, callMsMax);
  const preparing: Preparing = { isOn: true };
  const connect = () => new Connection(config, callMsMax, preparing);
  const readers = Array.from({ length: POSTGRES_READERS }, connect);
  /** The one that has the fewest queries to answer. */
  const idlest = () => readers.reduce((best, one) => (one.waiting < best.waiting ? one : best));
  const writer = connect();
  // Bounds of the server's own, so that what nobody waits for any more ends, and a process that stands still holds no locks.
  const bounds = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"]
    .map((name) => `set_config('${name}', '${transactionMsMax}', true)`)
    .join(", ");
  const begin = `begin isolation level read committed; select ${bounds}, ${BY_INDEX}`;

  /** Ends when the transaction under way has: another between its statements would commit a part of it. */
  let last: Promise<unknown> = Promise.resolve();
  const transact = (calls: readonly CommandCall[], statements: readonly Statement[] = []) => {
    const queries = statements.map(queryOf);
    const run = () => commit(writer, begin, calls, queries, onCommit);
    const turn = last.then(() => again(preparing, run, () => false));
    last = turn.catch(ignore);
    return turn.catch((error: unknown) => {
      throw faultIn(error);
    });
  };

  return {
    dialect: postgresDialect,
    config,
    async read(statement) {
      const query = queryOf(statement);
      const sent = STEPS.test(statement.sql) ? [BEGIN_STEPS, query, plain("commit")] : [query];
      try {
        const answers = await again(
          preparing,
          () => idlest().pipeline(sent),
          (error) => error instanceof ConnectionLost,
        );
        return doneOf(answers[sent.indexOf(query)]).rows;
      } catch (error) {
        const fault = faultIn(error);
        throw fault instanceof StoreUnavailable || fault.kind === "rejected" ? fault : unavailable(fault);
      }
    },
    transact: async (calls) => (await transact(calls)).results,
    batch: async (statements) => (await transact([], statements)).done,
    alone: (work) => runAlone(config, callMsMax, work),
    async close() {
      await Promise.all([...readers, writer].map((connection) => connection.close()));
    },
  };
}

/**
 * Runs commands one after the other, then the queries, and commits. What need not wait for an answer is sent behind what came
 * before: without commands all of it at once.
 */
async function commit(
  connection: Connection,
  begin: string,
  calls: readonly CommandCall[],
  queries: readonly Query[],
  onCommit: PostgresOptions["onCommit"],
) {
  // Safe: they are the arguments of this command.
  const locking = lockQuery(calls.flatMap(({ command, args }) => command.locks(...(args as never))));
  const first = [plain(begin), ...(locking === null ? [] : [locking])];
  const last = [...queries, ...COMMIT];
  const sent: Promise<readonly QueryResult[]>[] = [];
  const transaction: TransactionClient = { client: null, hasFailed: false };
  const send = (batch: readonly Query[]) => {
    const answers = connection.pipeline(batch, transaction);
    sent.push(answers);
    return answers;
  };
  let addsToTimeline = queries.some(({ text }) => ADDS_TO_TIMELINE.test(text));
  try {
    if (calls.length > 0) send(first).catch(ignore);
    const results = await runCalls(calls, (group) => {
      const tx = openTx((query) => {
        addsToTimeline ||= ADDS_TO_TIMELINE.test(query.text);
        return send([query]);
      });
      return runGroup(tx, group).finally(() => tx.end());
    });
    const answers = (await send(calls.length > 0 ? last : [...first, ...last])).slice(-last.length);
    await Promise.all(sent);
    if (answers.at(-1)?.command !== "COMMIT") throw new StoreUnavailable("The database did not commit.");
    if (addsToTimeline) onCommit?.((text, values) => connection.send(text, values));
    return { done: queries.map((_, at) => doneOf(answers[at])), results };
  } catch (error) {
    // The transaction may still be open.
    if (calls.length > 0) connection.abandon(transaction);
    const failed = (await Promise.allSettled(sent)).filter((one) => one.status === "rejected");
    throw failed.find(({ reason }) => !isAftermath(reason))?.reason ?? error;
  }
}

/** What adds to the timeline. */
const ADDS_TO_TIMELINE = /insert into "?timeline"? /;

/** A server that waits for its standby would answer that it is committed when it is not there: no timeout then. */
const COMMIT = [plain("set local statement_timeout = 0"), plain("commit")];

async function runAlone(config: ClientConfig, callMsMax: number, work: (run: Run) => Promise<void>): Promise<void> {
  const client = new Client({ ...config, pipeline: false, keepAliveInitialDelayMillis: MIGRATION_KEEP_ALIVE_MS });
  client.on("error", ignore);
  try {
    await client.connect();
    await work(async (text, { isLong } = { isLong: false }) => {
      // What is under way is rejected then.
      const timer = isLong ? undefined : setTimeout(() => client.connection.stream.destroy(), callMsMax);
      try {
        return rowsOf(await client.query(text));
      } finally {
        clearTimeout(timer);
      }
    });
  } catch (error) {
    throw faultIn(error);
  } finally {
    await client.end();
  }
}

/**
 * No plan that reads a whole table, or sorts, where an index does: before its statistics know how many rows there are, the planner
 * takes a table for empty and any index for as good as another. Each update of a list would read all actions, and each claim would
 * sort the whole backlog; and a prepared plan stays.
 */
const BY_INDEX = ["enable_sort", "enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit"]
  .map((name) => `set_config('${name}', 'off', true)`)
  .join(", ");

/**
 * Reads that look into a table once for each step or each item of a list (`itemsOf`), where a plan that reads all of it would take
 * seconds; and those that count up to a bound. Not those that join such a list: for them a hash join is right.
 */
const STEPS = /^(with recursive|select j\.value|select count\(\*\) as count) /;

/** Others are not worth the two messages more: they look once. */
const BEGIN_STEPS = plain(`begin; select ${BY_INDEX}`);

/** Whether statements are prepared: until a pooler shows that it does not know them. */
interface Preparing {
  isOn: boolean;
}

/** Repeats what failed by a pooler or by tables that changed, before anything was done; a read also when its connection was lost. */
async function again<Result>(
  preparing: Preparing,
  run: () => Promise<Result>,
  isRepeatable: (error: unknown) => boolean,
): Promise<Result> {
  try {
    return await run();
  } catch (error) {
    if (isOfPooler(error)) preparing.isOn = false;
    else if (!isOutdated(error) && !isRepeatable(error)) throw error;
    return run();
  }
}

/** A connection that was lost while it had queries; not one that was too slow. */
class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}

/** The client of a transaction, from its first queries on. */
interface TransactionClient {
  client: Client | null;
  /** A pipeline of it has failed: no other follows. */
  hasFailed: boolean;
}

/** One connection at a time; the next call after a lost one connects again. */
class Connection {
  readonly #config: ClientConfig;
  readonly #callMsMax: number;
  readonly #preparing: Preparing;
  #client: Client | null = null;
  #opening: Promise<Client> | null = null;
  #waiting = 0;
  #isClosed = false;

  constructor(config: ClientConfig, callMsMax: number, preparing: Preparing) {
    this.#config = config;
    this.#callMsMax = callMsMax;
    this.#preparing = preparing;
  }

  /** Queries that were sent and not answered. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Sends all at once; rejects with the first error that is not the consequence of another. What belongs to one transaction goes
   * over one client: without its `begin`, each statement would be a transaction of its own.
   */
  async pipeline(
    queries: readonly Query[],
    transaction: TransactionClient = { client: null, hasFailed: false },
  ): Promise<readonly QueryResult[]> {
    this.#waiting += 1;
    let expired = false;
    let client: Client | null = null;
    const { promise: deadline, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      expired = true;
      reject(new StoreUnavailable("The database has not answered in time.", { reason: "no answer came in time" }));
      if (client !== null) this.#drop(client);
    }, this.#callMsMax);
    try {
      const opened = await Promise.race([this.#open(), deadline]);
      transaction.client ??= opened;
      if (transaction.client !== opened || transaction.hasFailed) {
        const reason = "it was lost in a transaction";
        throw new StoreUnavailable("The connection to the database was lost.", { reason });
      }
      client = opened;
      const sent = Promise.allSettled(queries.map((query) => opened.query(this.#configOf(query))));
      return this.#resultsOf(opened, await Promise.race([sent, deadline]));
    } catch (error) {
      transaction.hasFailed = true;
      if (expired || error instanceof StoreUnavailable || isConnectionSound(error)) throw error;
      if (client !== null) this.#drop(client);
      throw client === null ? error : new ConnectionLost("The connection to the database was lost.", { cause: error });
    } finally {
      clearTimeout(timer);
      this.#waiting -= 1;
    }
  }

  /** Sends a query whose answer nobody waits for. */
  send(text: string, values: readonly string[]): void {
    this.#opening?.then((client) => client.query(text, [...values])).catch(ignore);
  }

  /** Gives up the client of a transaction: the server undoes what was not committed, and the next call connects again. */
  abandon({ client }: TransactionClient): void {
    if (client !== null) this.#drop(client);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const client = await this.#opening?.catch(() => null);
    if (client === undefined || client === null) return;
    this.#forget(client);
    const { promise: deadline, resolve: giveUp } = Promise.withResolvers<void>();
    // A timer that is left behind would keep the process from ending.
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
    // A statement that was prepared in a transaction that failed may not be there.
    this.#drop(client);
    throw (failed.find(({ reason }) => !isAftermath(reason)) ?? first).reason;
  }

  #configOf({ name, text, values, rowMode }: Query) {
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
    this.#client = client;
    client.on("error", () => this.#forget(client));
    client.on("end", () => this.#forget(client));
    try {
      await client.connect();
      joinWrites(client.connection.stream);
      return client;
    } catch (error) {
      this.#forget(client);
      client.end().catch(ignore);
      throw error;
    }
  }

  /** Not the client that has come in its place: the end of a client is told late. */
  #forget(client: Client): void {
    if (this.#client !== client) return;
    [this.#client, this.#opening] = [null, null];
  }

  /** Ends the connection at once: everything sent over it is rejected. */
  #drop(client: Client): void {
    this.#forget(client);
    client.connection.stream.destroy();
  }
}

/** So many bytes are written at once; further ones do not wait for the end of the turn. */
const JOINED_BYTES_MAX = 65_536;

/**
 * Makes one call of the kernel for what is written in one turn of the event loop. A query is up to five messages, and the socket
 * writes each by itself, even where it was corked.
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
    // The last message of a connection.
    if (onWritten !== undefined) write(new Uint8Array(), onWritten);
    return true;
  };
  Object.assign(stream, { write: join });
}

function configOf(url: string, connectionTimeoutMillis: number): ClientConfig {
  return {
    connectionString: url,
    application_name: "outgate",
    keepAlive: true,
    connectionTimeoutMillis,
    pipeline: true,
    types: { getTypeParser: (oid: number) => PARSERS.get(oid) ?? unescapeText },
  };
}

/** By the ids of PostgreSQL's types: bool, int8, int2, int4, float4, float8, numeric. Others are texts. */
const PARSERS: ReadonlyMap<number, (text: string) => unknown> = new Map<number, (text: string) => unknown>([
  [16, (text) => text === "t"],
  ...[20, 21, 23, 700, 701, 1700].map((oid) => [oid, Number] as const),
]);

function plain(text: string): Query {
  return { name: "", text, values: [] };
}

function rowsOf({ rows }: QueryResult): readonly Row[] {
  // Safe: the parsers give texts, numbers and null; statements that select a boolean decode it.
  return rows as readonly Row[];
}

function doneOf(result: QueryResult | undefined): Done {
  if (result === undefined) throw new StoreUnavailable("The database gave no answer.");
  return { changes: result.rowCount ?? 0, rows: rowsOf(result) };
}

function ignore(): void {
  // Who waits for an answer gets the error.
}
