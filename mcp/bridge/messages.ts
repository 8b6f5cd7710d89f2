import { readMessages } from "../../src/client/follow.ts";
import { isJsonObject } from "../../src/core/json.ts";
import { describeTlsFailure, tlsFailure } from "../../src/core/tls.ts";

/** A JSON-RPC message, as far as the relay needs it. */
export interface BridgeMessage {
  /** Null in a notification. */
  readonly id: string | number | null;
  /** Null in a response. */
  readonly method: string | null;
  readonly params: Readonly<Record<string, unknown>>;
  /** The protocol revision in the message itself, which clients since 2026-07-28 send; else null. */
  readonly revision: string | null;
}

const REVISION = "io.modelcontextprotocol/protocolVersion";

/** The message in a parsed line; null for a batch or anything else. */
export function toMessage(value: unknown): BridgeMessage | null {
  if (!isJsonObject(value)) return null;
  const { id = null, method, params } = value;
  const given = isJsonObject(params) ? params : {};
  const meta = isJsonObject(given["_meta"]) ? given["_meta"] : {};
  const revision = meta[REVISION];
  return {
    id: typeof id === "string" || typeof id === "number" ? id : null,
    method: typeof method === "string" ? method : null,
    params: given,
    revision: typeof revision === "string" ? revision : null,
  };
}

/** Headers that repeat parts of a 2026-07-28 message (Streamable HTTP, "Request headers"); null for other messages. */
export function mcpHeaders({ method, params, revision }: BridgeMessage): Readonly<Record<string, string>> | null {
  if (method === null || revision === null) return null;
  const headers = { "mcp-protocol-version": revision, "mcp-method": method };
  const name = params[NAMED_BY.get(method) ?? ""];
  return typeof name === "string" ? { ...headers, "mcp-name": headerValue(name) } : headers;
}

/** The parameter that goes into `Mcp-Name`, by method. */
const NAMED_BY: ReadonlyMap<string, string> = new Map([
  ["tools/call", "name"],
  ["prompts/get", "name"],
  ["resources/read", "uri"],
]);

const PLAIN = /^[\t\x20-\x7e]+$/;

/** A header value. Text that a header can't hold is base64 in the protocol's notation. */
function headerValue(text: string): string {
  const isMarked = text.startsWith("=?base64?") && text.endsWith("?=");
  if (PLAIN.test(text) && text === text.trim() && !isMarked) return text;
  return `=?base64?${Buffer.from(text).toString("base64")}?=`;
}

/** More than /mcp accepts, so that the client gets the service's own error. */
const LINE_BYTES_MAX = 4 * 1_048_576;

export const TOO_LONG = Symbol("too long");

/** The lines of a stream, without line ends. The last line needs no end. Lines over `bytesMax` become `TOO_LONG`. */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  bytesMax = LINE_BYTES_MAX,
): AsyncGenerator<string | typeof TOO_LONG> {
  let parts: Uint8Array[] = [];
  let bytes = 0;
  const add = (part: Uint8Array) => {
    bytes += part.length;
    if (bytes <= bytesMax) parts.push(part);
    else parts = [];
  };
  const take = () => {
    const line = bytes > bytesMax ? TOO_LONG : Buffer.concat(parts).toString("utf8").replace(/\r$/, "");
    [parts, bytes] = [[], 0];
    return line;
  };
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      add(chunk.subarray(start, end));
      start = end + 1;
      yield take();
    }
    add(chunk.slice(start));
  }
  if (bytes > 0) yield take();
}

const NEWLINE = 0x0a;

/** The data of each server-sent event, as one line. */
export async function* readEvents(stream: NonNullable<Response["body"]>): AsyncGenerator<string> {
  for await (const { data } of readMessages(stream)) if (data !== null) yield data.replaceAll("\n", " ");
}

export function errorLine(id: string | number | null, code: number, message: string): string {
  return JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } });
}

/** What a model may repeat where a call may have been carried out although no answer came. */
export const REPEATABLE =
  "a create only with the same idempotency_key; if it had none, call list first: the action may exist. Before another retry call get: it may have begun; or name its run.";

export const LOST = `The connection to Outgate was lost. Repeat ${REPEATABLE}`;

/** A sentence about an HTTP error: the service's own message, if there is one. */
export function refusalMessage(status: number, body: unknown): string {
  const error = isJsonObject(body) ? body["error"] : null;
  const given = isJsonObject(error) ? error["message"] : null;
  const message = typeof given === "string" ? given : `Outgate answered with status ${status}.`;
  // Also of a proxy, which may have passed the call on.
  if (status >= 500) return `${message} Repeat ${REPEATABLE}`;
  return status === 401 ? `Outgate did not take the key in OUTGATE_API_KEY. ${message}` : message;
}

export const NOT_OUTGATE = "What answers at OUTGATE_URL is no MCP server: correct the address.";

/** A sentence about a failed connection, in place of a library's message. */
export function connectionMessage(error: unknown): string {
  const code = errorCode(error) ?? errorCode(error instanceof Error ? error.cause : null);
  if (code === "ECONNREFUSED" || code === "ConnectionRefused") {
    return "Outgate does not answer at OUTGATE_URL: start it there, or correct the address.";
  }
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return "The host name in OUTGATE_URL can't be resolved.";
  const failure = tlsFailure(error);
  if (failure !== null) return describeTlsFailure(failure, "OUTGATE_URL");
  return LOST;
}

function errorCode(error: unknown): string | null {
  return typeof error === "object" && error !== null && "code" in error && typeof error.code === "string"
    ? error.code
    : null;
}
