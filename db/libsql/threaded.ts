/** A database file that a thread writes, as the service uses it. `worker.ts` is the thread's side. */
import { nameOfCommand } from "../commands/all.ts";
import type { CommandCall, DbConnection } from "../commands/command.ts";
import { openFile } from "./file.ts";
import { hasRoom } from "./inspect.ts";
import { StoreLost } from "../../src/core/store.ts";
import { errorCode } from "../sql/errors.ts";

type Order =
  | { readonly kind: "open"; readonly path: string }
  | {
      readonly kind: "transact";
      readonly calls: readonly { readonly name: string; readonly args: readonly unknown[] }[];
    }
  | { readonly kind: "close" };

export type ToWorker = { readonly call: number } & Order;

export interface Failure {
  readonly code: string;
  readonly message: string;
}

/** `value`: the results of the commands. `lost`: why the file can't be used any more. */
export type FromWorker =
  | { readonly lost: string }
  | ({ readonly call: number } & ({ readonly value: unknown } | { readonly failed: Failure }));

/**
 * Opens a database file that another thread writes: while a commit waits for the disk, the event loop collects the next one.
 * Reads run here, on a read-only connection, and see everything committed before they begin. `onDeath` is called if the thread
 * dies, since what it did last is unknown, and if the file has lost its log: the process must end. On a full disk, the file is only read until there is room.
 */
export async function openThreaded(path: string, onDeath: (cause: unknown) => void): Promise<DbConnection> {
  try {
    return await openWithThread(path, onDeath);
  } catch (error) {
    if (!isForLackOfRoom(error)) throw error;
    return openOnFullDisk(path, () => openWithThread(path, onDeath), error);
  }
}

async function openWithThread(path: string, onDeath: (cause: unknown) => void): Promise<DbConnection> {
  const thread = new Thread(onDeath);
  try {
    await thread.call({ kind: "open", path });
  } catch (error) {
    thread.end();
    throw error;
  }
  const reader = openFile(path, "read");
  const transact = async (calls: readonly CommandCall[]) => {
    const named = calls.map(({ command, args }) => ({ name: nameOfCommand(command), args }));
    // Arguments of plain commands may contain dates, which JSON would lose.
    const isJson = calls.every(({ command }) => command.isList);
    // Safe: as `worker.ts` answers.
    return (await thread.call({ kind: "transact", calls: named }, isJson)) as readonly unknown[];
  };
  return {
    dialect: reader.dialect,
    read: (statement) => reader.read(statement),
    transact,
    async close() {
      await reader.close();
      await thread.close();
    },
  };
}

/** An error of the database in the thread. */
class DatabaseError extends Error {
  override readonly name = "DatabaseError";
  readonly code: string;

  constructor({ code, message }: { code: string; message: string }) {
    super(message);
    this.code = code;
  }
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

/** The writer thread. Every call settles, even if the thread dies. */
class Thread {
  readonly #worker = new Worker(new URL("./worker.ts", import.meta.url).href);
  readonly #calls = new Map<number, Waiting>();
  #last = 0;
  #isOpen = true;

  constructor(onDeath: (cause: unknown) => void) {
    this.#worker.addEventListener("message", ({ data }: MessageEvent<string>) => this.#answered(data, onDeath));
    this.#worker.addEventListener("error", ({ message }) => {
      this.end();
      onDeath(message);
    });
    // The process may end while the thread is idle, but not during a commit.
    this.#worker.unref();
  }

  /** `isJson`: the order can be sent as JSON, which costs less than a structured clone. */
  call(order: Order, isJson = true): Promise<unknown> {
    if (!this.#isOpen) return Promise.reject(notOpen());
    this.#last += 1;
    const message: ToWorker = { call: this.#last, ...order };
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    if (this.#calls.size === 0) this.#worker.ref();
    this.#calls.set(this.#last, { resolve, reject });
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window and has no origin
    this.#worker.postMessage(isJson ? JSON.stringify(message) : message);
    return promise;
  }

  /**
   * Resolves when the thread has finished all earlier calls, closed its file and ended, since terminating a thread during a
   * native call aborts the process. New calls are refused at once.
   */
  async close(): Promise<void> {
    const closed = this.call({ kind: "close" });
    this.#isOpen = false;
    try {
      await closed;
    } finally {
      this.end();
    }
  }

  /** Rejects all pending and future calls, since a call that never settles would block every stop. */
  end(): void {
    this.#isOpen = false;
    for (const call of this.#calls.values()) call.reject(notOpen());
    this.#calls.clear();
    this.#worker.terminate();
  }

  #answered(data: string | FromWorker, onDeath: (cause: unknown) => void): void {
    // Safe: only `worker.ts` answers.
    const message = typeof data === "string" ? (JSON.parse(data) as FromWorker) : data;
    if ("lost" in message) return onDeath(new StoreLost(message.lost, "nothing more may be written to it"));
    const call = this.#calls.get(message.call);
    this.#calls.delete(message.call);
    if (this.#calls.size === 0) this.#worker.unref();
    if ("failed" in message) call?.reject(new DatabaseError(message.failed));
    else call?.resolve(message.value);
  }
}

/** An error whose message `faultKind` recognises. */
function notOpen(): DatabaseError {
  return new DatabaseError({ code: "", message: "The database connection is not open" });
}

/** Whether a file could not be opened because there is no room for its log. */
function isForLackOfRoom(error: unknown): boolean {
  return /^(SQLITE_IOERR_SHMSIZE|SQLITE_FULL|ENOSPC|EDQUOT)$/.test(errorCode(error));
}

/**
 * Opens a file on a full disk, where SQLite has no room for the shared memory of its log. Reads keep that memory in the heap, and each write
 * tries `open`, which opens the file as usual once there is room. If the file can't even be read, throws `cause`, or that it is damaged.
 */
function openOnFullDisk(path: string, open: () => Promise<DbConnection>, cause: unknown): DbConnection {
  let current = openAlone(path, cause);
  let isAlone = true;
  let opening: Promise<void> | null = null;
  const openAgain = async () => {
    // The error of SQLite.
    if (!hasRoom(path)) throw Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
    await current.close();
    try {
      current = await open();
      isAlone = false;
    } catch (error) {
      current = openFile(path, "alone");
      throw error;
    }
  };
  const writable = async (): Promise<DbConnection> => {
    if (isAlone) await (opening ??= openAgain().finally(() => (opening = null)));
    return current;
  };
  /** Reads wait while the file is opened again: a reader that has it alone would lock the opening out. */
  const opened = async (): Promise<DbConnection> => {
    await opening?.catch(() => {});
    return current;
  };
  return {
    dialect: current.dialect,
    read: async (statement) => (await opened()).read(statement),
    transact: async (calls) => (await writable()).transact(calls),
    close: async () => (await opened()).close(),
  };
}

function openAlone(path: string, cause: unknown): DbConnection {
  try {
    return openFile(path, "alone");
  } catch (error) {
    throw /CORRUPT|NOTADB/.test(errorCode(error)) ? error : cause;
  }
}
