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
