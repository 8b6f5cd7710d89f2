import { isObject, type Message } from "./message.ts";
import { JSON_HEADERS, type Send } from "./send.ts";

const NOT_FOUND = 404;
/** The session's end is told, but nobody waits for long. */
const END_MS_MAX = 1_000;

/**
 * The session of a client of 2025. When the service does not know it any more, since it was started again or has heard
 * nothing for long, another one is begun in the same words, and the client never learns of it.
 */
export class LegacySession {
  readonly #send: Send;
  readonly #closeWithAnswer: AbortSignal;
  #initialize: string | null = null;
  #id: string | null = null;
  #revision: string | null = null;
  #beginning: Promise<boolean> | null = null;

  constructor(send: Send, closeWithAnswer: AbortSignal) {
    this.#send = send;
    this.#closeWithAnswer = closeWithAnswer;
  }

  /** Sends a line of the client in its session. */
  async send(line: string, message: Message | null, signal: AbortSignal): Promise<Response> {
    const isInitialize = message?.method === "initialize";
    const before = this.#id;
    const response = await this.#post(line, signal, isInitialize ? null : before);
    if (isInitialize && response.ok) {
      this.#initialize = line;
      this.#id = response.headers.get("mcp-session-id");
    }
    if (isInitialize || before === null || response.status !== NOT_FOUND) return response;
    await response.body?.cancel();
    return (await this.#beginAgain(before)) ? this.#post(line, signal, this.#id) : gone();
  }

  /** Learns the revision from the answer to `initialize`. */
  hear(value: unknown, message: Message | null): void {
    if (message?.method !== "initialize" || !isObject(value) || !isObject(value["result"])) return;
    const revision = value["result"]["protocolVersion"];
    if (typeof revision === "string") this.#revision = revision;
  }

  /** Tells the service that the client is gone. Never rejects. */
  async end(): Promise<void> {
    if (this.#id === null) return;
    const headers = { "mcp-session-id": this.#id };
    await this.#send({ method: "DELETE", headers, signal: AbortSignal.timeout(END_MS_MAX) }).catch(() => {});
  }

  #post(body: string, signal: AbortSignal, session: string | null): Promise<Response> {
    const named: Readonly<Record<string, string>> = session === null ? {} : { "mcp-session-id": session };
    const versioned: Readonly<Record<string, string>> =
      session === null || this.#revision === null ? {} : { "mcp-protocol-version": this.#revision };
    return this.#send({ method: "POST", headers: { ...JSON_HEADERS, ...named, ...versioned }, body, signal });
  }

  /** Of several that find their session gone, one begins the next. */
  #beginAgain(lost: string): Promise<boolean> {
    if (this.#id !== lost) return Promise.resolve(true);
    this.#beginning ??= this.#begin().finally(() => (this.#beginning = null));
    return this.#beginning;
  }

  async #begin(): Promise<boolean> {
    if (this.#initialize === null) return false;
    const response = await this.#post(this.#initialize, this.#closeWithAnswer, null);
    await response.text();
    const id = response.headers.get("mcp-session-id");
    if (!response.ok || id === null) return false;
    this.#id = id;
    const initialized = JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" });
    await (await this.#post(initialized, this.#closeWithAnswer, id)).text();
    return true;
  }
}

function gone(): Response {
  const error = { message: "The session is gone, and no other could be begun." };
  return Response.json({ error }, { status: NOT_FOUND });
}
