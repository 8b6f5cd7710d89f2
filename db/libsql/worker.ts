/**
 * The writer thread: an fsync blocks its thread, and here it blocks nothing else. Messages are JSON text, since a structured
 * clone of the same rows costs about twice as much.
 */
import { findCommand } from "../commands/all.ts";
import { openFile, type LogWatch, watchLog } from "./file.ts";
import { DatabaseUnreadable, inspectFile, UNREADABLE } from "./inspect.ts";
import { errorCode } from "../sql/errors.ts";
import type { Failure, FromWorker, ToWorker } from "./threaded.ts";
import type { DbConnection } from "../commands/command.ts";

declare const self: Worker;

let open: { readonly connection: DbConnection; readonly log: LogWatch } | null = null;

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window and has no origin
const send = (answer: FromWorker, isJson = true) => self.postMessage(isJson ? JSON.stringify(answer) : answer);

self.addEventListener("message", ({ data }: MessageEvent<string | ToWorker>) => {
  // Safe: only `threaded.ts` writes to this thread.
  const isJson = typeof data === "string";
  const message = isJson ? (JSON.parse(data) as ToWorker) : data;
  const { call } = message;
  handle(message).then(
    (value) => send({ call, value }, isJson),
    (error: unknown) => send({ call, failed: toFailure(error) }, isJson),
  );
});

async function handle(message: ToWorker): Promise<unknown> {
  if (message.kind === "open") {
    // Inspect before opening for writing, so that a damaged file stays as it is.
    inspectFile(message.path);
    const connection = openFile(message.path);
    open = { connection, log: watchLog(message.path, connection, (lost) => send({ lost })) };
    return null;
  }
  if (open === null) throw new Error("The database is not open.");
  const { connection, log } = open;
  if (message.kind === "close") return (await log.end()) ? connection.close() : null;
  log.check();
  const calls = message.calls.map(({ name, args }) => ({ command: findCommand(name), args }));
  return connection.transact(calls);
}

function toFailure(error: unknown): Failure {
  const code = error instanceof DatabaseUnreadable ? UNREADABLE : errorCode(error);
  return { code, message: error instanceof Error ? error.message : String(error) };
}
