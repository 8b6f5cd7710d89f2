import { setTimeout as pause } from "node:timers/promises";
import { apiKeyFromEnv } from "../../src/client/api-key-file.ts";
import { isJsonObject, jsonIn } from "../../src/core/json.ts";
import {
  connectionMessage,
  errorLine,
  readEvents,
  mcpHeaders,
  readLines,
  LOST,
  type BridgeMessage,
  toMessage,
  NOT_OUTGATE,
  refusalMessage,
  TOO_LONG,
} from "./messages.ts";

export interface BridgeRequest {
  readonly method: "POST" | "DELETE";
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
}

/** Sends a request. Rejects if there was no response. */
export type SendMessage = (sent: BridgeRequest) => Promise<Response>;

/** Returns a function that sends to the service at `url`. Throws if that is no valid address. */
export function sendTo(url: string, key: string): SendMessage {
  if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) {
    throw new Error("OUTGATE_URL must be the address of the service, such as https://outgate.example.com.");
  }
  const { origin, pathname } = new URL(url);
  const path = pathname.replace(/(?<!\/)\/+$/, "");
  const endpoint = `${origin}${path.endsWith("/mcp") ? path : `${path}/mcp`}`;
  const authorization = `Bearer ${key}`;
  return ({ headers, ...init }) =>
    // A redirect could send the key to another host.
    fetch(endpoint, { ...init, headers: { ...headers, authorization }, redirect: "error" });
}

interface BridgeIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly input?: AsyncIterable<Uint8Array>;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}

/** Relays to the service at OUTGATE_URL. Throws a sentence for the person who set it up. */
export async function relayToService(io: BridgeIo): Promise<void> {
  const { OUTGATE_URL: url = "" } = io.env;
  if (url === "") {
    throw new Error(
      "Set OUTGATE_URL and OUTGATE_API_KEY (or OUTGATE_API_KEY_FILE). To run the whole service, call `outgate mcp` with Bun.",
    );
  }
  const key = await apiKeyFromEnv(io.env);
  if (key === null) {
    throw new Error("Set OUTGATE_API_KEY or OUTGATE_API_KEY_FILE: the service at OUTGATE_URL needs an agent's key.");
  }
  await relayStreams(io, sendTo(url, key));
}

/** Relays until the client closes its end. */
export async function relayStreams({ input, out, err }: Omit<BridgeIo, "env">, send: SendMessage): Promise<void> {
  const relay = new Relay({
    send,
    write: (line) => out(`${line}\n`),
    warn: (sentence) => err(`outgate mcp: ${sentence}\n`),
  });
  for await (const line of readLines(input ?? [])) {
    if (line === TOO_LONG) out(`${errorLine(null, -32_600, "This message is too large.")}\n`);
    else relay.take(line);
  }
  await relay.close();
}

interface RelayDeps {
  readonly send: SendMessage;
  readonly write: (line: string) => void;
  /** Shows a sentence to the person who runs the bridge. */
  readonly warn: (sentence: string) => void;
}

/** Shorter than the two seconds after which the SDK's client kills the process that it has closed. */
const ANSWER_MS_MAX = 1_000;

/**
 * Relays messages between a client on standard input and /mcp. It has no tools of its own, since only the server may ask a
 * person for approval. It doesn't use the SDK's transports (tried with 2.4.0), which parse and print each message: on Node 20,
 * that turns 12345678901234567890 into 12345678901234567000 and 1e999 into null. The stdio transport answers no batches and no
 * invalid JSON, closes at a line that is too long, and answers nothing after the client has closed its end; the file for Node
 * would have 390 KB instead of 10. The HTTP transport doesn't begin a lost session again.
 */
export class Relay {
  readonly #deps: RelayDeps;
  readonly #session: LegacySession;
  /** Calls of 2026 clients, which are cancelled by ending their HTTP request. */
  readonly #cancellable = new Map<string | number, AbortController>();
  readonly #pending = new Set<Promise<void>>();
  readonly #closed = new AbortController();

  constructor(deps: RelayDeps) {
    this.#deps = deps;
    this.#session = new LegacySession(deps.send, this.#closed.signal);
  }

  /** Takes one line of the client. Responses are written when they arrive. */
  take(line: string): void {
    if (line.trim() === "") return;
    const value = jsonIn(line);
    if (value === undefined) {
      this.#deps.write(errorLine(null, -32_700, "This line is not JSON."));
      return;
    }
    const message = toMessage(value);
    if (message !== null && this.#cancel(message)) return;
    const work = this.#handle(line, message).finally(() => this.#pending.delete(work));
    this.#pending.add(work);
  }

  /** Waits up to `graceMs` for open requests, then aborts the rest and ends the session. Never rejects. */
  async close(graceMs = ANSWER_MS_MAX): Promise<void> {
    const timer = new AbortController();
    const grace = pause(graceMs, undefined, { signal: timer.signal }).catch(() => {});
    await Promise.race([Promise.allSettled(this.#pending), grace]);
    timer.abort();
    await this.#session.end();
    this.#closed.abort();
    await Promise.allSettled(this.#pending);
  }

  /** Aborts the HTTP request of a cancelled 2026 call. False for a 2025 call, whose notification goes to the server. */
  #cancel({ method, params }: BridgeMessage): boolean {
    if (method !== "notifications/cancelled") return false;
    const id = params["requestId"];
    const call = typeof id === "string" || typeof id === "number" ? this.#cancellable.get(id) : undefined;
    call?.abort();
    return call !== undefined;
  }

  async #handle(line: string, message: BridgeMessage | null): Promise<void> {
    const cancelled = new AbortController();
    const signal = AbortSignal.any([cancelled.signal, this.#closed.signal]);
    const id = message === null || message.revision === null ? null : message.id;
    if (id !== null) this.#cancellable.set(id, cancelled);
    try {
      await this.#exchange(line, message, signal);
    } catch (error) {
      if (!signal.aborted) this.#refuse(message, connectionMessage(error));
    } finally {
      if (id !== null) this.#cancellable.delete(id);
    }
  }

  async #exchange(line: string, message: BridgeMessage | null, signal: AbortSignal): Promise<void> {
    const modern = message === null ? null : mcpHeaders(message);
    const response =
      modern === null
        ? await this.#session.send(line, message, signal)
        : await this.#deps.send({ method: "POST", headers: { ...JSON_HEADERS, ...modern }, body: line, signal });
    const isAnswered = await this.#answer(response, message);
    const isAsked = message === null || (message.method !== null && message.id !== null);
    if (!isAnswered && isAsked) this.#refuse(message, LOST);
  }

  /** Passes a response to the client. Returns whether it answered the request. */
  async #answer(response: Response, message: BridgeMessage | null): Promise<boolean> {
    const type = response.headers.get("content-type") ?? "";
    if (response.body !== null && type.startsWith("text/event-stream")) {
      let isAnswered = false;
      for await (const data of readEvents(response.body)) isAnswered = this.#pass(data, message) || isAnswered;
      return isAnswered;
    }
    const text = await response.text();
    const value = jsonIn(text);
    const isMessage = isJsonObject(value) && value["jsonrpc"] === "2.0";
    if (response.ok && (isMessage || Array.isArray(value))) return this.#pass(text, message);
    if (response.ok && text === "") return message === null;
    if (isMessage && value["id"] === (message?.id ?? null)) return this.#pass(text, message);
    this.#refuse(message, response.ok ? NOT_OUTGATE : refusalMessage(response.status, value));
    return true;
  }

  /** Passes on one message or a batch. Returns whether it answers the request. */
  #pass(text: string, message: BridgeMessage | null): boolean {
    const value = jsonIn(text);
    if (value === undefined) return false;
    this.#session.onMessage(value, message);
    this.#deps.write(text.replaceAll(/[\r\n]+/g, " "));
    return message === null || (isJsonObject(value) && value["id"] === message.id && !("method" in value));
  }

  /** A request gets an error; for anything else the person gets a warning. */
  #refuse(message: BridgeMessage | null, sentence: string): void {
    if (message !== null && message.id !== null && message.method !== null) {
      this.#deps.write(errorLine(message.id, -32_000, sentence));
    } else this.#deps.warn(sentence);
  }
}

const JSON_HEADERS = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
} as const;

const NOT_FOUND = 404;

/** How long to wait for the end of the session. */
const END_MS_MAX = 1_000;

/** The session of a 2025 client. If the service has lost it, the client's own `initialize` begins a new one. */
class LegacySession {
  readonly #send: SendMessage;
  readonly #closed: AbortSignal;
  #initialize: string | null = null;
  #id: string | null = null;
  #revision: string | null = null;
  #beginning: Promise<boolean> | null = null;

  constructor(send: SendMessage, closed: AbortSignal) {
    this.#send = send;
    this.#closed = closed;
  }

  /** Sends a line of the client in its session; if that is gone, once more in a new one. */
  async send(line: string, message: BridgeMessage | null, signal: AbortSignal): Promise<Response> {
    const isInitialize = message?.method === "initialize";
    const before = this.#id;
    const response = await this.#post(line, signal, isInitialize ? null : before);
    if (isInitialize && response.ok) {
      this.#initialize = line;
      this.#id = response.headers.get("mcp-session-id");
    }
    if (isInitialize || before === null || response.status !== NOT_FOUND) return response;
    await response.body?.cancel();
    if (await this.#beginAgain(before)) return this.#post(line, signal, this.#id);
    const error = { message: "The MCP session has ended, and a new one could not be started." };
    return Response.json({ error }, { status: NOT_FOUND });
  }

  /** Remembers the revision in the response to `initialize`. */
  onMessage(value: unknown, message: BridgeMessage | null): void {
    if (message?.method !== "initialize" || !isJsonObject(value) || !isJsonObject(value["result"])) return;
    const revision = value["result"]["protocolVersion"];
    if (typeof revision === "string") this.#revision = revision;
  }

  /** Ends the session at the service. Never rejects. */
  async end(): Promise<void> {
    if (this.#id === null) return;
    const headers = { "mcp-session-id": this.#id };
    await this.#send({ method: "DELETE", headers, signal: AbortSignal.timeout(END_MS_MAX) }).catch(() => {});
  }

  #post(body: string, signal: AbortSignal, session: string | null): Promise<Response> {
    const headers: Record<string, string> = { ...JSON_HEADERS };
    if (session !== null) headers["mcp-session-id"] = session;
    if (session !== null && this.#revision !== null) headers["mcp-protocol-version"] = this.#revision;
    return this.#send({ method: "POST", headers, body, signal });
  }

  /** Begins a new session, only once if several requests find that the last one has ended. */
  #beginAgain(lost: string): Promise<boolean> {
    if (this.#id !== lost) return Promise.resolve(true);
    this.#beginning ??= this.#begin().finally(() => (this.#beginning = null));
    return this.#beginning;
  }

  async #begin(): Promise<boolean> {
    if (this.#initialize === null) return false;
    const response = await this.#post(this.#initialize, this.#closed, null);
    await response.text();
    const id = response.headers.get("mcp-session-id");
    if (!response.ok || id === null) return false;
    this.#id = id;
    const initialized = JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" });
    await (await this.#post(initialized, this.#closed, id)).text();
    return true;
  }
}
