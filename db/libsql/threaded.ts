import { openFile } from "./file.ts";
import type { Done, Sql, SqlValue, Statement } from "./sql.ts";

/** A statement as it crosses to the thread: its number, its arguments and, the first time, its text. */
type Sent = readonly [number: number, args: readonly SqlValue[], text?: string];

export type ToWorker =
  | { readonly call: number; readonly kind: "open"; readonly path: string }
  | { readonly call: number; readonly kind: "batch"; readonly statements: readonly Sent[] }
  | { readonly call: number; readonly kind: "close" };

export type FromWorker =
  | { readonly call: number; readonly done: readonly Done[] }
  | { readonly call: number; readonly failed: { readonly code: string; readonly message: string } };

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

/** Texts that have a number; the hot ones are some twenty, and beyond this a text is sent each time. */
const NUMBERED_MAX = 1_000;

/**
 * A database file whose writes are another thread's: while one commit waits for the disk, the event loop goes on and
 * gathers the next. Reads stay here, on a connection that can't write; WAL shows them whatever was committed before they
 * begin. `onDeath` hears when the thread has died: what it was doing is unknown, so the process can't go on.
 */
export async function openThreaded(path: string, onDeath: (cause: unknown) => void): Promise<Sql> {
  const worker = new Worker(new URL("./worker.ts", import.meta.url).href);
  const calls = new Map<number, Call>();
  const numbers = new Map<string, number>();
  let last = 0;

  worker.onmessage = ({ data }: MessageEvent<string>) => {
    // Safe: only `worker.ts` answers.
    const message = JSON.parse(data) as FromWorker;
    const call = calls.get(message.call);
    calls.delete(message.call);
    if ("done" in message) call?.resolve(message.done);
    else call?.reject(new DatabaseError(message.failed));
  };
  worker.onerror = (event) => onDeath(event.message);
  // A process that has nothing else to do may end.
  worker.unref();

  const post = (message: (call: number) => ToWorker): Promise<readonly Done[]> => {
    last += 1;
    const { promise, resolve, reject } = Promise.withResolvers<readonly Done[]>();
    calls.set(last, { resolve, reject });
    worker.postMessage(JSON.stringify(message(last)));
    return promise;
  };
  const sent = ({ sql, args }: Statement): Sent => {
    const number = numbers.get(sql);
    if (number !== undefined) return [number, args];
    if (numbers.size < NUMBERED_MAX) numbers.set(sql, numbers.size);
    return [numbers.get(sql) ?? NUMBERED_MAX, args, sql];
  };

  try {
    await post((call) => ({ call, kind: "open", path }));
  } catch (error) {
    worker.terminate();
    throw error;
  }
  const reader = openFile(path, "read");
  return {
    read: (statement) => reader.read(statement),
    batch: (statements) => post((call) => ({ call, kind: "batch", statements: statements.map(sent) })),
    async close() {
      await reader.close();
      await post((call) => ({ call, kind: "close" }));
      worker.terminate();
    },
  };
}
