import { eventsOf } from "./lines.ts";
import { headersOf, isObject, type Message, messageOf } from "./message.ts";
import { errorLine, faultOf, sentenceOf } from "./refusal.ts";
import { JSON_HEADERS, type Send } from "./send.ts";
import { LegacySession } from "./session.ts";

export interface RelayDeps {
  readonly send: Send;
  /** One line to the client. */
  readonly write: (line: string) => void;
  /** One sentence to the person who runs it. */
  readonly warn: (sentence: string) => void;
}

/** Whoever pipes a request in closes its end at once; a client that leaves waits two seconds before it kills (its SDK). */
const ANSWER_MS_MAX = 1_000;

/**
 * Carries messages between a client on standard input and /mcp, as the text that they are: what is no concern of a relay
 * stays as it was written, numbers above all. It has no tools of its own, because an agent may approve only what the
 * server itself has put to a person.
 */
export class Relay {
  readonly #deps: RelayDeps;
  readonly #session: LegacySession;
  readonly #underWay = new Map<string | number, AbortController>();
  readonly #pending = new Set<Promise<void>>();
  readonly #closeWithAnswer = new AbortController();

  constructor(deps: RelayDeps) {
    this.#deps = deps;
    this.#session = new LegacySession(deps.send, this.#closeWithAnswer.signal);
  }

  /** Takes one line of the client; answers come in their own time. */
  take(line: string): void {
    if (line.trim() === "") return;
    const value = parse(line);
    if (value === undefined) {
      this.#deps.write(errorLine(null, -32_700, "This line is not JSON."));
      return;
    }
    const message = messageOf(value);
    if (message !== null && this.#isCancelled(message)) return;
    const work = this.#carry(line, message).finally(() => this.#pending.delete(work));
    this.#pending.add(work);
  }

  /** What was asked is answered yet, for a moment; then ends what is under way, and the session. Never rejects. */
  async close(graceMs = ANSWER_MS_MAX): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    // Node 20 has no `Promise.withResolvers`.
    const isOver = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, graceMs);
    });
    // A line may bring others along: the session that it begins anew.
    while (this.#pending.size > 0 && (await this.#oneEnds(isOver)));
    clearTimeout(timer);
    await this.#session.end();
    this.#closeWithAnswer.abort();
    await Promise.allSettled(this.#pending);
  }

  /** False: there is no more time. */
  #oneEnds(isOver: Promise<void>): Promise<boolean> {
    return Promise.race([isOver.then(() => false), ...[...this.#pending].map((work) => work.then(() => true))]);
  }

  /** Over HTTP a call of 2026 is given up by leaving it; in 2025 the server is told. */
  #isCancelled({ method, params }: Message): boolean {
    if (method !== "notifications/cancelled") return false;
    const id = params["requestId"];
    const call = typeof id === "string" || typeof id === "number" ? this.#underWay.get(id) : undefined;
    call?.abort();
    return call !== undefined;
  }

  async #carry(line: string, message: Message | null): Promise<void> {
    const release = new AbortController();
    const signal = AbortSignal.any([release.signal, this.#closeWithAnswer.signal]);
    const isModernCall = message !== null && message.id !== null && message.revision !== null;
    if (isModernCall && message.id !== null) this.#underWay.set(message.id, release);
    try {
      await this.#exchange(line, message, signal);
    } catch (error) {
      if (!signal.aborted) this.#refuse(message, sentenceOf(error));
    } finally {
      if (isModernCall && message.id !== null) this.#underWay.delete(message.id);
    }
  }

  async #exchange(line: string, message: Message | null, signal: AbortSignal): Promise<void> {
    const modern = message === null ? {} : headersOf(message);
    const isModern = "mcp-method" in modern;
    const response = isModern
      ? await this.#deps.send({ method: "POST", headers: { ...JSON_HEADERS, ...modern }, body: line, signal })
      : await this.#session.send(line, message, signal);
    const isAnswered = await this.#answer(response, message);
    const isAsked = message === null || (message.method !== null && message.id !== null);
    if (!isAnswered && isAsked) this.#refuse(message, "The connection to Outgate broke before the answer came.");
  }

  /** Writes down what came back; whether the request had its answer among it. */
  async #answer(response: Response, message: Message | null): Promise<boolean> {
    const id = message?.id ?? null;
    const type = response.headers.get("content-type") ?? "";
    if (response.body !== null && type.startsWith("text/event-stream")) {
      let isAnswered = false;
      for await (const data of eventsOf(response.body)) {
        isAnswered = this.#pass(data, message) || isAnswered;
      }
      return isAnswered;
    }
    const text = await response.text();
    const value = parse(text);
    const isMessage = isObject(value) && value["jsonrpc"] === "2.0" && (response.ok || value["id"] === id);
    if (isMessage || (response.ok && Array.isArray(value))) return this.#pass(text, message);
    if (!response.ok) this.#refuse(message, faultOf(response.status, value));
    return !response.ok || text === "";
  }

  #pass(text: string, message: Message | null): boolean {
    const value = parse(text);
    if (value === undefined) return false;
    this.#session.hear(value, message);
    this.#deps.write(text.replaceAll(/[\r\n]+/g, " "));
    return message === null || (isObject(value) && value["id"] === message.id && !("method" in value));
  }

  /** A request gets an error; of anything else only the person hears. */
  #refuse(message: Message | null, sentence: string): void {
    if (message !== null && message.id !== null && message.method !== null) {
      this.#deps.write(errorLine(message.id, -32_000, sentence));
    } else this.#deps.warn(sentence);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
