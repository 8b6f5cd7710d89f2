/**
 * The thread that writes. An fsync stops a thread for as long as the disk takes: here that is nobody's event loop.
 * Messages are JSON text, since a structured clone of the same rows costs four times as much.
 */
import { openFile } from "./file.ts";
import type { Sql, SqlValue, Statement } from "./sql.ts";
import type { FromWorker, ToWorker } from "./threaded.ts";

declare const self: Worker;

let sql: Sql | null = null;
/** Statements by number: a text is sent with its first use only. */
const texts = new Map<number, string>();

self.onmessage = ({ data }: MessageEvent<string>) => {
  // Safe: only `threaded.ts` writes to this thread.
  answer(JSON.parse(data) as ToWorker).then(
    (message) => self.postMessage(JSON.stringify(message)),
    (error: unknown) => self.postMessage(JSON.stringify(refusal(JSON.parse(data) as ToWorker, error))),
  );
};

async function answer(message: ToWorker): Promise<FromWorker> {
  const { call } = message;
  if (message.kind === "open") sql = openFile(message.path);
  if (message.kind === "close") sql?.close();
  if (message.kind !== "batch") return { call, done: [] };
  if (sql === null) throw new Error("The database is not open.");
  return { call, done: await sql.batch(message.statements.map(statementOf)) };
}

function statementOf([number, args, text]: readonly [number, readonly SqlValue[], string?]): Statement {
  if (text !== undefined) texts.set(number, text);
  return { sql: texts.get(number) ?? "", args };
}

function refusal({ call }: ToWorker, error: unknown): FromWorker {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return { call, failed: { code, message: error instanceof Error ? error.message : String(error) } };
}
