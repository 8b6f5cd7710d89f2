import { KEYS } from "../http/stub-server.ts";

export const MODERN = "2026-07-28";

export interface RawOptions {
  readonly key?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** The client's capabilities. */
  readonly capabilities?: object;
  readonly id?: number;
}

export interface McpResponse {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
  /** The answer, whether it came as JSON or as the last message of a stream. */
  readonly json: {
    readonly result?: Readonly<Record<string, unknown>>;
    readonly error?: { readonly code: number | string; readonly message: string; readonly data?: unknown };
  };
}

/** Posts any text to /mcp; what comes may be a stream. */
export function open(
  url: string,
  body: string | ReadableStream,
  { key = KEYS.agent, headers = {}, signal }: RawOptions & { readonly signal?: AbortSignal } = {},
): Promise<Response> {
  return fetch(url, {
    method: "POST",
    body,
    ...(signal === undefined ? {} : { signal }),
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...headers,
    },
  });
}

/** Posts any text to /mcp, and reads the response. */
export async function post(url: string, body: string, options: RawOptions = {}): Promise<McpResponse> {
  const response = await open(url, body, options);
  const text = await response.text();
  const last =
    response.headers.get("content-type") === "text/event-stream" ? (text.trim().split("\ndata: ").at(-1) ?? "") : text;
  return { status: response.status, text, headers: response.headers, json: JSON.parse(last === "" ? "null" : last) };
}

/** One request of revision 2026-07-28. `params` is JSON text, so that its spelling reaches the server. */
export function modern(url: string, method: string, params: string, options: RawOptions = {}): Promise<McpResponse> {
  const { capabilities = {}, id = 1 } = options;
  const meta = JSON.stringify({
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": capabilities,
  });
  const whole = params.replace(/^\{/, `{"_meta":${meta}${params === "{}" ? "" : ","}`);
  const { name, uri } = JSON.parse(params) as { name?: string; uri?: string };
  const named: Readonly<Record<string, string>> =
    name === undefined && uri === undefined ? {} : { "mcp-name": name ?? uri ?? "" };
  return post(url, `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${whole}}`, {
    ...options,
    headers: { "mcp-protocol-version": MODERN, "mcp-method": method, ...named, ...options.headers },
  });
}

/** A call of a tool in revision 2026-07-28, its arguments as JSON text; `more` are further members of its params. */
export function callModern(
  url: string,
  name: string,
  args: string,
  options: RawOptions & { readonly more?: object } = {},
) {
  const more = Object.entries(options.more ?? {}).map(([member, value]) => `,"${member}":${JSON.stringify(value)}`);
  return modern(url, "tools/call", `{"name":"${name}","arguments":${args}${more.join("")}}`, options);
}

const INITIALIZE = (capabilities: object) =>
  JSON.stringify({
    jsonrpc: "2.0",
    id: 0,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities, clientInfo: { name: "test", version: "1" } },
  });

/** Begins a session as a 2025 client does. */
export async function begin(url: string, options: RawOptions = {}): Promise<{ id: string; said: McpResponse }> {
  const said = await post(url, INITIALIZE(options.capabilities ?? {}), options);
  return { id: said.headers.get("mcp-session-id") ?? "", said };
}
