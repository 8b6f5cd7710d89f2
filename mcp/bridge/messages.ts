import { describeTlsFailure, tlsFailureOf } from "../../src/outbound/tls.ts";

/** One message of JSON-RPC as far as a relay has to know it. */
export interface Message {
  /** Absent in a notification. */
  readonly id: string | number | null;
  /** Null: it answers a request. */
  readonly method: string | null;
  readonly params: Readonly<Record<string, unknown>>;
  /** The revision that the message itself names, as those from 2026-07-28 on do. */
  readonly revision: string | null;
}

const REVISION = "io.modelcontextprotocol/protocolVersion";

/** What a parsed line is; null for a batch, or for what is no message at all. */
export function messageOf(value: unknown): Message | null {
  if (!isObject(value)) return null;
  const { id = null, method, params } = value;
  const given = isObject(params) ? params : {};
  const meta = isObject(given["_meta"]) ? given["_meta"] : {};
  const revision = meta[REVISION];
  return {
    id: typeof id === "string" || typeof id === "number" ? id : null,
    method: typeof method === "string" ? method : null,
    params: given,
    revision: typeof revision === "string" ? revision : null,
  };
}

/** What the head of a request has to repeat of a message of revision 2026-07-28 (Streamable HTTP, "Request headers"). */
export function headersOf({ method, params, revision }: Message): Readonly<Record<string, string>> {
  if (method === null || revision === null) return {};
  const name = params[NAMED_BY.get(method) ?? ""];
  const named: Readonly<Record<string, string>> = typeof name === "string" ? { "mcp-name": fieldOf(name) } : {};
  return { "mcp-protocol-version": revision, "mcp-method": method, ...named };
}

/** Which parameter names the thing that a method is about. */
const NAMED_BY: ReadonlyMap<string, string> = new Map([
  ["tools/call", "name"],
  ["prompts/get", "name"],
  ["resources/read", "uri"],
]);

const PLAIN = /^[\t\x20-\x7e]+$/;

/** What no header may hold travels as base64, in the protocol's own marks. */
function fieldOf(text: string): string {
  const isMarked = text.startsWith("=?base64?") && text.endsWith("?=");
  if (PLAIN.test(text) && text === text.trim() && !isMarked) return text;
  return `=?base64?${Buffer.from(text).toString("base64")}?=`;
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Longer than anything that /mcp takes, so that its own answer is the one that a client gets. */
const LINE_BYTES_MAX = 4 * 1_048_576;

/** A line that is too long; what follows on it is dropped. */
export const TOO_LONG = Symbol("too long");

/** The lines of a stream, without their ends. A line without its end, when the stream is over, counts too. */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
  bytesMax = LINE_BYTES_MAX,
): AsyncGenerator<string | typeof TOO_LONG> {
  let parts: Uint8Array[] = [];
  let bytes = 0;
  const take = () => {
    const line = bytes > bytesMax ? TOO_LONG : Buffer.concat(parts).toString("utf8").replace(/\r$/, "");
    [parts, bytes] = [[], 0];
    return line;
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      bytes += end - start;
      if (bytes <= bytesMax) parts.push(chunk.subarray(start, end));
      start = end + 1;
      yield take();
    }
    bytes += chunk.length - start;
    if (bytes <= bytesMax) parts.push(chunk.slice(start));
    else parts = [];
  }
  if (bytes > 0) yield take();
}

const NEWLINE = 0x0a;

/** The data of each event of a stream (HTML, "Server-sent events"), as one line. */
export async function* eventsOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let data: string[] = [];
  for await (const line of linesOf(chunks, Number.POSITIVE_INFINITY)) {
    if (line === TOO_LONG) continue;
    if (line.startsWith("data:")) data.push(line.slice(5).trimStart());
    if (line !== "" || data.length === 0) continue;
    yield data.join(" ");
    data = [];
  }
}

/** An error as the line that answers a request. */
export function errorLine(id: string | number | null, code: number, message: string): string {
  return JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } });
}

/** What the service refused a request with, in its own words where it has said some. */
export function faultOf(status: number, body: unknown): string {
  const error = isObject(body) ? body["error"] : null;
  const message = isObject(error) ? error["message"] : null;
  if (typeof message !== "string") return `Outgate answered with status ${status}.`;
  return status === 401 ? `Outgate did not take the key in OUTGATE_API_KEY. ${message}` : message;
}

/** Why nothing came back. The words of a library are nothing for a person. */
export function sentenceOf(error: unknown): string {
  const code = codeOf(error) ?? codeOf(error instanceof Error ? error.cause : null);
  if (code === "ECONNREFUSED" || code === "ConnectionRefused") {
    return "Outgate does not answer at OUTGATE_URL: start it there, or correct the address.";
  }
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "The host name in OUTGATE_URL can't be resolved.";
  const failure = tlsFailureOf(error);
  if (failure !== null) return describeTlsFailure(failure, "OUTGATE_URL");
  return "The connection to Outgate broke. Repeat the call with the same idempotency_key.";
}

function codeOf(error: unknown): string | null {
  return typeof error === "object" && error !== null && "code" in error && typeof error.code === "string"
    ? error.code
    : null;
}
