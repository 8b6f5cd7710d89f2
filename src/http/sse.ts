import { EVENT_BACKLOG_BYTES_MAX, EVENT_HEARTBEAT_MS, REQUEST_ARRIVAL_MS_MAX } from "../core/limits.ts";
import type { Clock } from "../core/clock.ts";
import type { RequestContext } from "./request.ts";
import { dropBodyFirst } from "./body.ts";

/** Where the events of a stream come from. */
export interface SseSource {
  /** Resolves with the next text, of whole events; null at the end. */
  next(): Promise<SsePart | null>;
  /** The text of a heartbeat. */
  beat(): string;
  /** Called when the stream has ended. */
  end(): void;
}

export interface SsePart {
  readonly text: string;
  /** Whether the event happens now, rather than being replayed: a full backlog then closes the stream. */
  readonly isLive: boolean;
}

/** Why a stream has ended: the client left, the client read too slowly, the service stops, or the source ended. */
export type SseEnd = "left" | "slow" | "stopped" | "over";

export interface SseDeps {
  readonly clock: Clock;
  readonly draining: AbortSignal;
  /** Aborted when the client may not listen any more: it gets nothing further. */
  readonly revoked?: AbortSignal | undefined;
  /** Called once. A failing source also ends the stream: the client reconnects and then gets the error. */
  readonly ended: (why: SseEnd | Error) => void;
  /** Called if the source fails after the stream has ended. */
  readonly failedLate: (error: unknown) => void;
}

/** `X-Accel-Buffering: no` keeps nginx from buffering events. */
export const SSE_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
  connection: "close",
} as const;

/**
 * A stream of server-sent events (WHATWG HTML, "Server-sent events"). Past events are sent as fast as the client reads
 * them. Live events are buffered up to `EVENT_BACKLOG_BYTES_MAX`; a client that falls further behind is disconnected, and
 * can continue later after the last event that it has seen.
 */
export function answerEvents(context: RequestContext, source: SseSource, deps: SseDeps): Response {
  context.kind = "stream";
  const stream = new SseStream(context, source, deps);
  const body = new ReadableStream<Uint8Array>(
    {
      start: (controller) => stream.start(controller),
      pull: () => stream.hasRoom(),
      cancel: () => stream.end("left"),
    },
    new ByteLengthQueuingStrategy({ highWaterMark: EVENT_BACKLOG_BYTES_MAX }),
  );
  return new Response(body, { headers: SSE_HEADERS });
}

const UTF_8 = new TextEncoder();

/** Bun's shortest timeout; it checks every four seconds. */
const CLOSING_SECONDS = 1;

class SseStream {
  readonly #context: RequestContext;
  readonly #source: SseSource;
  readonly #deps: SseDeps;
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  #cancelTimer: () => void = () => {};
  #resume: () => void = () => {};
  #writtenBytes = 0;
  /** How many bytes the client had read at the last heartbeat. */
  #readBytes = -1;

  constructor(context: RequestContext, source: SseSource, deps: SseDeps) {
    this.#context = context;
    this.#source = source;
    this.#deps = deps;
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    const { request, server } = this.#context;
    this.#controller = controller;
    server?.timeout(request, 0);
    request.signal.addEventListener("abort", this.#onLeft);
    this.#deps.draining.addEventListener("abort", this.#onStop);
    this.#deps.revoked?.addEventListener("abort", this.#onRevoked);
    this.#scheduleHeartbeat();
    if (request.signal.aborted) this.end("left");
    else if (this.#deps.draining.aborted) this.end("stopped");
    else if (this.#deps.revoked?.aborted === true) this.end("over");
    this.#pump().catch((error: unknown) => {
      if (this.#controller === null) this.#deps.failedLate(error);
      else this.end(error instanceof Error ? error : new Error("unknown"));
    });
  }

  /** Called when the backlog is no longer full. */
  hasRoom(): void {
    this.#resume();
  }

  end(why: SseEnd | Error): void {
    const controller = this.#controller;
    if (controller === null) return;
    this.#controller = null;
    const { request, server } = this.#context;
    this.#cancelTimer();
    request.signal.removeEventListener("abort", this.#onLeft);
    this.#deps.draining.removeEventListener("abort", this.#onStop);
    this.#deps.revoked?.removeEventListener("abort", this.#onRevoked);
    this.#source.end();
    this.#resume();
    if (why !== "left") {
      controller.close();
      // A client that doesn't read would hold the connection and its backlog for ever.
      server?.timeout(request, CLOSING_SECONDS);
    }
    this.#deps.ended(why);
  }

  readonly #onLeft = () => this.end("left");
  readonly #onStop = () => this.end("stopped");
  readonly #onRevoked = () => this.end("over");

  async #pump(): Promise<void> {
    while (this.#controller !== null) {
      const part = await this.#source.next();
      if (part === null) return this.end("over");
      if (part.text === "") continue;
      if (this.#room <= 0 && part.isLive) return this.end("slow");
      while (this.#room <= 0) await new Promise<void>((resolve) => (this.#resume = resolve));
      this.#write(part.text);
    }
  }

  /** Free bytes of the backlog; positive after the end, so that the pump doesn't wait. */
  get #room(): number {
    return this.#controller?.desiredSize ?? 1;
  }

  #write(text: string): void {
    const bytes = UTF_8.encode(text);
    this.#writtenBytes += bytes.byteLength;
    this.#controller?.enqueue(bytes);
  }

  #scheduleHeartbeat(): void {
    this.#cancelTimer = this.#deps.clock.after(EVENT_HEARTBEAT_MS, () => {
      const room = this.#room;
      const readBytes = this.#writtenBytes - (EVENT_BACKLOG_BYTES_MAX - room);
      // The client has read nothing since the last heartbeat.
      if (room <= 0 && readBytes === this.#readBytes) return this.end("slow");
      this.#readBytes = readBytes;
      if (room > 0) this.#write(this.#source.beat());
      this.#scheduleHeartbeat();
    });
  }
}

/**
 * Runs `work`, whose response may be a stream, without the request's timeout. `ended` aborts when the response has ended or the
 * client has left. Read the body before.
 */
export async function whileStreaming(
  context: RequestContext,
  work: (ended: AbortSignal) => Promise<Response>,
): Promise<Response> {
  const { request, server } = context;
  const end = new AbortController();
  const release = () => {
    if (end.signal.aborted) return;
    end.abort();
    // Bun doesn't restore the timeout, so the connection would stay open for ever (measured).
    server?.timeout(request, IDLE_SECONDS);
  };
  server?.timeout(request, 0);
  try {
    const response = await work(end.signal);
    if (response.headers.get("content-type")?.startsWith("text/event-stream") === true) {
      if (context.kind === "work") context.kind = "stream";
      end.signal.addEventListener("abort", context.freeBody);
      context.freeBody = () => {};
      return onBodyEnd(response, release);
    }
    release();
    return response;
  } catch (error) {
    release();
    throw error;
  }
}

/** A comment, which clients ignore (HTML, "Server-sent events"). */
const COMMENT = new TextEncoder().encode(":\n\n");

/** The same response; calls `onEnd` when its body has ended. */
function onBodyEnd(response: Response, onEnd: () => void): Response {
  const stream: ReadableStream<Uint8Array> | null = response.body;
  const reader = stream?.getReader();
  if (reader === undefined) return response;
  const body = new ReadableStream<Uint8Array>({
    // Bun sends the headers together with the first byte: without one the client would wait for them.
    start: (controller) => controller.enqueue(COMMENT),
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        onEnd();
        controller.close();
      } catch (error) {
        onEnd();
        controller.error(error);
      }
    },
    async cancel(reason) {
      onEnd();
      await reader.cancel(reason);
    },
  });
  return new Response(body, { status: response.status, headers: response.headers });
}

/** Bun's idle timeout, in seconds. Bun checks it every four seconds. */
export const IDLE_SECONDS = REQUEST_ARRIVAL_MS_MAX / 1_000;

export interface WaitingDeps {
  readonly clock: Clock;
  /** Aborted when the service stops: waiting requests are answered with the current state. */
  readonly draining: AbortSignal;
}

/**
 * Runs `work` without the request's timeout. `stop` is aborted when the client leaves or the service stops. Drains the body
 * first: without the timeout a client could send it byte by byte for ever.
 */
export async function whileWaiting<T>(
  context: RequestContext,
  { clock, draining }: WaitingDeps,
  work: (stop: AbortSignal) => Promise<T>,
): Promise<T> {
  const { request, server } = context;
  context.kind = "wait";
  if (context.isBodyUnread) await dropBodyFirst(context, clock);
  const end = new AbortController();
  const stop = () => end.abort();
  if (request.signal.aborted || draining.aborted) stop();
  request.signal.addEventListener("abort", stop);
  draining.addEventListener("abort", stop);
  server?.timeout(request, 0);
  try {
    return await work(end.signal);
  } finally {
    request.signal.removeEventListener("abort", stop);
    draining.removeEventListener("abort", stop);
    // Bun doesn't restore the timeout, so the connection would stay open for ever (measured).
    server?.timeout(request, IDLE_SECONDS);
  }
}
