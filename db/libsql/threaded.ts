import { openFile } from "./file.ts";
import type { Done, Row, Sql, SqlValue, Statement } from "./sql.ts";

/** A statement as it crosses to the thread: its number, its arguments and, the first time, its text. */
export type Sent = readonly [number: number, args: readonly SqlValue[], text?: string];

export type Order =
  | { readonly kind: "open"; readonly path: string }
  | { readonly kind: "batch"; readonly statements: readonly Sent[] }
  | { readonly kind: "close" };

export type ToWorker = { readonly call: number } & Order;

/** What a statement did, as it crosses back: its rows if it returns any, or else how many it changed. */
export type Outcome = number | readonly Row[];

export type FromWorker =
  | { readonly call: number; readonly outcomes: readonly Outcome[] }
  | { readonly call: number; readonly failed: { readonly code: string; readonly message: string } };

/**
 * A database file whose writes are another thread's: while one commit waits for the disk, the event loop goes on and
 * gathers the next. Reads stay here, on a connection that can't write; WAL shows them whatever was committed before they
 * begin. `onDeath` hears when the thread has died: what it was doing is unknown, so the process can't go on.
 */
export async function openThreaded(path: string, onDeath: (cause: unknown) => void): Promise<Sql> {
  const thread = new Thread(onDeath);
  const sent = numbering();
  try {
    await thread.order({ kind: "open", path });
  } catch (error) {
    thread.end();
    throw error;
  }
  const reader = openFile(path, "read");
  return {
    read: (statement) => reader.read(statement),
    batch: (statements) => thread.order({ kind: "batch", statements: statements.map(sent) }),
    async close() {
      await reader.close();
      await thread.close();
    },
  };
}

/** An error of the database, brought over from the thread that met it. */
class DatabaseError extends Error {
  override readonly name = "DatabaseError";
  readonly code: string;

  constructor({ code, message }: { code: string; message: string }) {
    super(message);
    this.code = code;
  }
}

interface Call {
  resolve(done: readonly Done[]): void;
  reject(error: unknown): void;
}

/** The thread that writes, as this side sees it: every order has one end, also when the thread has none. */
class Thread {
  readonly #worker = new Worker(new URL("./worker.ts", import.meta.url).href);
  readonly #calls = new Map<number, Call>();
  #last = 0;
  #isOpen = true;

  constructor(onDeath: (cause: unknown) => void) {
    this.#worker.addEventListener("message", ({ data }: MessageEvent<string>) => this.#answered(data));
    this.#worker.addEventListener("error", ({ message }) => {
      this.end();
      onDeath(message);
    });
    // A process that has nothing else to do may end, but not while it waits for this: a commit would be cut off.
    this.#worker.unref();
  }

  order(order: Order): Promise<readonly Done[]> {
    if (!this.#isOpen) return Promise.reject(notOpen());
    this.#last += 1;
    const message: ToWorker = { call: this.#last, ...order };
    const { promise, resolve, reject } = Promise.withResolvers<readonly Done[]>();
    if (this.#calls.size === 0) this.#worker.ref();
    this.#calls.set(this.#last, { resolve, reject });
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window and has no origin
    this.#worker.postMessage(JSON.stringify(message));
    return promise;
  }

  /**
   * Resolves when the thread has done all that it was asked before, closed its file and ended. Nothing may be asked from the
   * first moment on: ending a thread in the middle of a call into the binding aborts the process.
   */
  async close(): Promise<void> {
    const closed = this.order({ kind: "close" });
    this.#isOpen = false;
    try {
      await closed;
    } finally {
      this.end();
    }
  }

  /** Whoever waits for an answer, or asks from now on, is refused: a call without an end would hold up every stop. */
  end(): void {
    this.#isOpen = false;
    for (const call of this.#calls.values()) call.reject(notOpen());
    this.#calls.clear();
    this.#worker.terminate();
  }

  #answered(data: string): void {
    // Safe: only `worker.ts` answers.
    const message = JSON.parse(data) as FromWorker;
    const call = this.#calls.get(message.call);
    this.#calls.delete(message.call);
    if (this.#calls.size === 0) this.#worker.unref();
    if ("outcomes" in message) call?.resolve(message.outcomes.map(doneOf));
    else call?.reject(new DatabaseError(message.failed));
  }
}

const NO_ROWS: readonly Row[] = [];

function doneOf(outcome: Outcome): Done {
  return typeof outcome === "number" ? { changes: outcome, rows: NO_ROWS } : { changes: outcome.length, rows: outcome };
}

/** In the words of the binding, so that `faultOf` reads both alike. */
function notOpen(): DatabaseError {
  return new DatabaseError({ code: "", message: "The database connection is not open" });
}

/** Texts that have a number; the hot ones are some twenty, and beyond this a text is sent each time. */
const NUMBERED_MAX = 1_000;

/** Sends a statement's text once and its number from then on. */
function numbering(): (statement: Statement) => Sent {
  const numbers = new Map<string, number>();
  return ({ sql, args }) => {
    const number = numbers.get(sql);
    if (number !== undefined) return [number, args];
    if (numbers.size < NUMBERED_MAX) numbers.set(sql, numbers.size);
    return [numbers.get(sql) ?? NUMBERED_MAX, args, sql];
  };
}
