import { EVENT_BACKLOG_BYTES_MAX, EVENT_HEARTBEAT_MS, REQUEST_ARRIVAL_MS_MAX } from "../config/limits.ts";
import type { Clock } from "../runtime/clock.ts";
import type { RequestContext } from "./context.ts";
import { drainBody } from "./body.ts";

/** What an answer of server-sent events is made of, whatever the events are. */
export interface SseSource {
  /** Resolves with the next text, whole events of it; null when there will be no more. */
  next(): Promise<SsePart | null>;
  /** What shows that the stream lives; asked for when it is due. */
  beat(): string;
  /** Nobody listens any more. */
  end(): void;
}

export interface SsePart {
  readonly text: string;
  /** It happened while the reader listened: it can't wait for a reader who does not take it. */
  readonly isLive: boolean;
}

/** Why a stream has ended: its reader left or did not keep up, the service stops, or the source came to its end. */
export type SseEnd = "left" | "slow" | "stopped" | "over";

export interface SseDeps {
  readonly clock: Clock;
  readonly draining: AbortSignal;
  /** Aborted when the reader may not listen any more: nothing that is still to be written reaches it. */
  readonly revoked?: AbortSignal | undefined;
  /** Called once. A source that fails ends the stream, too: whoever listened comes back and is told why. */
  readonly ended: (why: SseEnd | Error) => void;
  /** Called where the source fails after the stream has ended: nobody hears of it any more, and it is a fault all the same. */
  readonly failedLate: (error: unknown) => void;
}

/** `X-Accel-Buffering` keeps nginx from gathering events; a connection that has been a stream for hours serves no more. */
export const SSE_HEADERS = {
  "content-type": "text/event-stream",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
  connection: "close",
} as const;

/**
 * An answer that goes on for as long as its reader listens (WHATWG HTML, "Server-sent events"). What lies behind is sent
 * as fast as the reader takes it. Of what happens meanwhile a bounded backlog is kept: a reader that falls behind further
 * is closed, and goes on later from the last event that it has seen.
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

/** The shortest that Bun knows; it looks every four seconds. */
const CLOSING_SECONDS = 1;

/** start -> `end`. */
class SseStream {
  readonly #context: RequestContext;
  readonly #source: SseSource;
  readonly #deps: SseDeps;
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  #cancelTimer: () => void = () => {};
  #goOn: () => void = () => {};
  #writtenBytes = 0;
  /** Bytes that the reader had taken at the last beat. */
  #takenBytes = -1;

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
    this.#beatLater();
    if (request.signal.aborted) this.end("left");
    else if (this.#deps.draining.aborted) this.end("stopped");
    else if (this.#deps.revoked?.aborted === true) this.end("over");
    this.#pump().catch((error: unknown) => {
      if (this.#controller === null) this.#deps.failedLate(error);
      else this.end(error instanceof Error ? error : new Error("unknown"));
    });
  }

  /** The reader has taken so much that the backlog is not full any more. */
  hasRoom(): void {
    this.#goOn();
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
    this.#goOn();
    if (why !== "left") {
      controller.close();
      // A reader that takes nothing would keep what is left, and the connection, for good.
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
      while (this.#room <= 0) await new Promise<void>((resolve) => (this.#goOn = resolve));
      this.#write(part.text);
    }
  }

  /** Whoever has ended holds nobody up. */
  get #room(): number {
    return this.#controller?.desiredSize ?? 1;
  }

  #write(text: string): void {
    const bytes = UTF_8.encode(text);
    this.#writtenBytes += bytes.byteLength;
    this.#controller?.enqueue(bytes);
  }

  #beatLater(): void {
    this.#cancelTimer = this.#deps.clock.after(EVENT_HEARTBEAT_MS, () => {
      const room = this.#room;
      const takenBytes = this.#writtenBytes - (EVENT_BACKLOG_BYTES_MAX - room);
      // Nothing since the last beat: nobody reads any more.
      if (room <= 0 && takenBytes === this.#takenBytes) return this.end("slow");
      this.#takenBytes = takenBytes;
      if (room > 0) this.#write(this.#source.beat());
      this.#beatLater();
    });
  }
}

/**
 * Runs something whose answer may be a stream, for as long as that lasts: the time limit of the request is lifted until
 * the answer has ended, or the client is gone. `over` is aborted then. The body has to be in by now.
 */
export async function whileStreaming(
  context: RequestContext,
  work: (over: AbortSignal) => Promise<Response>,
): Promise<Response> {
  const { request, server } = context;
  const end = new AbortController();
  const release = () => {
    if (end.signal.aborted) return;
    end.abort();
    // Bun does not bring it back by itself: the connection would stay open for good (measured).
    server?.timeout(request, IDLE_SECONDS);
  };
  server?.timeout(request, 0);
  try {
    const response = await work(end.signal);
    if (response.headers.get("content-type")?.startsWith("text/event-stream") === true) {
      if (context.kind === "work") context.kind = "stream";
      return watched(response, release);
    }
    release();
    return response;
  } catch (error) {
    release();
    throw error;
  }
}

/** A line of a stream that means nothing (HTML, "Server-sent events"). */
const COMMENT = new TextEncoder().encode(":\n\n");

/** The same answer, whose end is told. */
function watched(response: Response, onEnd: () => void): Response {
  const stream: ReadableStream<Uint8Array> | null = response.body;
  const reader = stream?.getReader();
  if (reader === undefined) return response;
  const body = new ReadableStream<Uint8Array>({
    // Bun sends no head before the first byte: without one a client would not know for seconds that it is listening.
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

/** Bun counts in seconds, and looks every four. */
export const IDLE_SECONDS = REQUEST_ARRIVAL_MS_MAX / 1_000;

export interface WaitingDeps {
  readonly clock: Clock;
  /** How long a request may take to arrive; `IDLE_SECONDS` unless it is given. */
  readonly arrivalSeconds?: number;
  /** The service stops: whoever waits gets what there is. */
  readonly draining: AbortSignal;
}

/**
 * Runs something that may take longer than a request may be silent. `stop` is aborted when the client goes away or the
 * service stops. The body has to be in by now: without its time limit a dripped one would live as long as it likes.
 */
export async function whileWaiting<T>(
  context: RequestContext,
  { clock, draining, arrivalSeconds = IDLE_SECONDS }: WaitingDeps,
  work: (stop: AbortSignal) => Promise<T>,
): Promise<T> {
  const { request, server } = context;
  context.kind = "wait";
  if (context.isBodyUnread) await drainBody(request, clock);
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
    // Bun does not bring it back by itself: the connection would stay open for good (measured).
    server?.timeout(request, arrivalSeconds);
  }
}
