import { type Client, createClient, type InStatement, type ResultSet } from "@libsql/client";
import { STORE_CALL_MS_MAX } from "../../src/config/limits.ts";
import { faultOf, NoAnswer, unavailable, isAnswered } from "./errors.ts";
import type { Done, Row, Sql, Statement } from "./sql.ts";
import { setTimeout as pause } from "node:timers/promises";
import { StoreLost, StoreUnavailable } from "../store.ts";
import { isRefusedByLock, type ServiceLock } from "./service-lock.ts";

/** Reads that are under way at a time; a batch comes alone, since the writer sends one after the other. */
const CALLS_AT_ONCE_MAX = 20;

/**
 * A database behind a URL (`libsql://`, `http://`); `file:` works too, and is how its tests reach it. Each call has a
 * deadline. A batch that was not answered may be committed all the same, also later: see `FencedSql`.
 */
export function openRemote(url: string, authToken: string | null, callMsMax: number = STORE_CALL_MS_MAX): Sql {
  const client: Client = createClient({
    url,
    // On a file a second call would stop the event loop until the first has ended.
    concurrency: url.startsWith("file:") ? 1 : CALLS_AT_ONCE_MAX,
    timeout: 20,
    fetch: (request: Request) => answerWithin(callMsMax, request),
    ...(authToken === null ? {} : { authToken }),
  });
  return {
    async read(statement) {
      try {
        return rowsOf(await client.execute(inStatement(statement)));
      } catch (error) {
        throw faultOf(error) === "rejected" ? error : unavailable(error);
      }
    },
    async batch(statements) {
      return (await client.batch(statements.map(inStatement), "write")).map(doneOf);
    },
    async close() {
      client.close();
    },
  };
}

/** The whole answer: a server may also stop in the middle of one. */
async function answerWithin(ms: number, request: Request): Promise<Response> {
  try {
    const { status, headers, body } = await fetch(request, { signal: AbortSignal.timeout(ms) });
    return new Response(await new Response(body).arrayBuffer(), { status, headers });
  } catch (cause) {
    throw new NoAnswer(cause);
  }
}

function inStatement({ sql, args }: Statement): InStatement {
  return { sql, args: [...args] };
}

function doneOf(result: ResultSet): Done {
  const rows = rowsOf(result);
  return { changes: result.columns.length > 0 ? rows.length : result.rowsAffected, rows };
}

/** Plain objects: the client's rows have the columns as numbers as well. */
function rowsOf({ columns, rows }: ResultSet): readonly Row[] {
  // Safe: the schema has no blobs and no integers past 2^53, so that values are text, number or null.
  return rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]])) as Row);
}

/** How often a database that is away is asked whether it is back. */
const ASK_EVERY_MS = 250;

/**
 * A remote database that one service writes. Where it gives no answer it is away: every call is refused at once, and in the
 * background it is asked until it answers. What became of a batch without an answer is open until then, and it may still
 * be committed late; so the first thing that is written again raises the fence, behind which nothing older is committed.
 * Whoever looks at a row after that sees how its write ended.
 */
export class FencedSql implements Sql {
  readonly #sql: Sql;
  readonly #lock: ServiceLock;
  readonly #onLost: (cause: StoreLost) => void;
  readonly #closeWithAnswer = new AbortController();
  #comingBack: Promise<void> | null = null;
  #isLost = false;
  #renewedMs = performance.now();
  readonly #beating: Promise<void>;

  /** `onLost` hears that another service has the database by now: nothing can be written here any more. */
  constructor(sql: Sql, lock: ServiceLock, onLost: (cause: StoreLost) => void) {
    this.#sql = sql;
    this.#lock = lock;
    this.#onLost = onLost;
    this.#beating = this.#beat();
  }

  async read(statement: Statement): Promise<readonly Row[]> {
    this.#refuseWhileAway();
    try {
      return await this.#sql.read(statement);
    } catch (error) {
      if (!isAnswered(error)) this.#release();
      throw error;
    }
  }

  async batch(statements: readonly Statement[]): Promise<readonly Done[]> {
    this.#refuseWhileAway();
    const { fence } = this.#lock;
    try {
      return await this.#write([this.#lock.renew(), ...statements]);
    } catch (error) {
      if (isRefusedByLock(error)) {
        // The fence was raised while this was on its way: it is not committed, and that is all.
        if (fence === this.#lock.fence) this.#lose();
        throw unavailable(error);
      }
      if (faultOf(error) === "unavailable" && !isAnswered(error)) this.#release();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#closeWithAnswer.abort();
    await Promise.all([this.#beating, this.#comingBack]);
    if (!this.#isLost) await this.#sql.batch([this.#lock.release()]).catch(leaveToItsTime);
    await this.#sql.close();
  }

  /** One `Done` a statement but for the first, which is the lock's. */
  async #write([own, ...statements]: readonly [Statement, ...Statement[]]): Promise<readonly Done[]> {
    const sentMs = performance.now();
    const [renewed, ...done] = await this.#sql.batch([own, ...statements]);
    // Somebody has deleted the row: who holds the database cannot be told any more.
    if (renewed?.changes !== 1) this.#lose();
    this.#renewedMs = sentMs;
    return done;
  }

  #refuseWhileAway(): void {
    const isAway = this.#isLost || this.#comingBack !== null;
    if (isAway || this.#closeWithAnswer.signal.aborted) throw new StoreUnavailable("The database gives no answer.");
  }

  #release(): void {
    this.#comingBack ??= this.#comeBack().finally(() => (this.#comingBack = null));
  }

  async #comeBack(): Promise<void> {
    while (!this.#closeWithAnswer.signal.aborted && !this.#isLost) {
      try {
        await this.#write([this.#lock.raiseFence()]);
        return;
      } catch (error) {
        if (isRefusedByLock(error)) this.#lose();
      }
      await this.#rest(ASK_EVERY_MS);
    }
  }

  /** Renews the lock where nothing else has. */
  async #beat(): Promise<void> {
    const { beatMs } = this.#lock;
    while (!this.#closeWithAnswer.signal.aborted && !this.#isLost) {
      const dueInMs = this.#renewedMs + beatMs - performance.now();
      if (dueInMs > 0) await this.#rest(dueInMs);
      else if (this.#comingBack !== null) await this.#comingBack;
      else await this.batch([]).catch(() => this.#rest(ASK_EVERY_MS));
    }
  }

  async #rest(ms: number): Promise<void> {
    await pause(ms, undefined, { signal: this.#closeWithAnswer.signal, ref: false }).catch(() => {});
  }

  #lose(): void {
    if (this.#isLost) return;
    this.#isLost = true;
    this.#onLost(new StoreLost("Another Outgate has taken the database over."));
  }
}

function leaveToItsTime(): void {
  // The database is away. The lock ends by itself.
}
