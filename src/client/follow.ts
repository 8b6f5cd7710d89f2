import { pause, retryDelayMs, OutgateError, type Transport } from "./transport.ts";
import type { FollowOptions, OutgateEvent } from "./types.ts";

const RETRY_MS = 1_000;

/** The shortest pause before reconnecting, whatever the service says. */
const RETRY_MS_MIN = 10;

const RETRY_MS_MAX = 30_000;

/** The service sends a heartbeat every twelve seconds; after a longer silence the connection is lost. */
const SILENCE_MS_MAX = 30_000;

/** Follows events. Throws if the first connection fails or is refused for good. Later reconnects after the last event. */
export async function* follow(
  transport: Transport,
  parse: (text: string) => unknown,
  { after, signal, onOpen, onBreak }: FollowOptions,
): AsyncGenerator<OutgateEvent> {
  const position: Position = { last: after, retryMs: RETRY_MS, breaks: 0, wasOpen: false };
  const opened = () => {
    position.breaks = 0;
    if (!position.wasOpen) onOpen?.();
    position.wasOpen = true;
  };
  const isOver = () => signal?.aborted === true;
  while (!isOver()) {
    try {
      yield* connect(transport, parse, { position, opened, signal });
    } catch (error) {
      if (isOver()) return;
      if (!position.wasOpen || isFinal(error)) throw error;
      onBreak?.(error);
    }
    const baseMs = Math.max(RETRY_MS_MIN, position.retryMs);
    const delayMs = retryDelayMs(position.breaks, { baseMs, capMs: RETRY_MS_MAX });
    position.breaks += 1;
    await pause(delayMs, signal);
  }
}

interface Position {
  last: string | undefined;
  retryMs: number;
  /** Connections lost since the last message. */
  breaks: number;
  wasOpen: boolean;
}

interface Connection {
  readonly position: Position;
  /** Called with every message. The first contains the stream's position. */
  readonly opened: () => void;
  readonly signal: AbortSignal | undefined;
}

/** Reads one connection, until it ends or is silent for too long. */
async function* connect(
  transport: Transport,
  parse: (text: string) => unknown,
  { position, opened, signal }: Connection,
): AsyncGenerator<OutgateEvent> {
  const release = new AbortController();
  const lose = () => release.abort(new OutgateError("timed_out", "The event stream is silent."));
  let silence = setTimeout(lose, SILENCE_MS_MAX);
  const onData = () => {
    clearTimeout(silence);
    silence = setTimeout(lose, SILENCE_MS_MAX);
  };
  try {
    const chunks = transport.stream({
      route: "GET /v1/events",
      type: /^text\/event-stream/,
      headers: position.last === undefined ? {} : { "last-event-id": position.last },
      isRepeatable: true,
      signal: AbortSignal.any([release.signal, ...(signal === undefined ? [] : [signal])]),
    });
    for await (const { id, data, retryMs } of readMessages(heard(chunks, onData))) {
      position.retryMs = retryMs ?? position.retryMs;
      position.last = id ?? position.last;
      opened();
      // Drops the rest of the chunk.
      if (signal?.aborted === true) return;
      if (data === null) continue;
      // No silence: nothing is read while the reader handles the event.
      clearTimeout(silence);
      yield toEvent(position.last ?? "", parse(data));
      onData();
    }
  } finally {
    clearTimeout(silence);
    release.abort();
  }
}

async function* heard(chunks: AsyncIterable<Uint8Array>, onData: () => void): AsyncGenerator<Uint8Array> {
  for await (const chunk of chunks) {
    onData();
    yield chunk;
  }
}

function toEvent(id: string, value: unknown): OutgateEvent {
  // Safe: the API says so of the data of its events.
  const { type, timestamp, data } = value as Omit<OutgateEvent, "id">;
  return { id, type, timestamp, data };
}

/** Whether reconnecting would fail in the same way. A proxy may answer for a service that is away, such as with 404. */
function isFinal(error: unknown): boolean {
  if (!(error instanceof OutgateError) || error.status === null || error.code === "not_outgate") return false;
  return error.status >= 400 && error.status < 500 && error.status !== 429;
}

/** A block of lines of the stream. It is an event if it has data. */
interface Message {
  readonly id: string | null;
  readonly data: string | null;
  /** How long to wait before reconnecting. */
  readonly retryMs: number | null;
}

/** More than any event: body, response and error of one action are 3 MB at most. */
const BLOCK_CHARS_MAX = 16 * 1_048_576;

/**
 * Parses server-sent events (WHATWG HTML, "Server-sent events"). Drops an incomplete last one. The library eventsource-parser
 * drops ids of messages without data, with which the service says where a stream begins and moves us past events that we may
 * not see.
 */
export async function* readMessages(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Message> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of bytes) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > BLOCK_CHARS_MAX) throw new Error("An event is too long.");
    // The chunk may end between CR and LF.
    const whole = text.endsWith("\r") ? text.slice(0, -1) : text;
    const blocks = whole.split(/\r\n\r\n|\n\n|\r\r/);
    const rest = blocks.pop() ?? "";
    text = rest + text.slice(whole.length);
    for (const block of blocks) yield parseMessage(block);
  }
}

function parseMessage(block: string): Message {
  let id: string | null = null;
  let retryMs: number | null = null;
  const data: string[] = [];
  for (const line of block.split(/\r\n|\r|\n/)) {
    const [, field = "", value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (field === "id" && !value.includes("\0")) id = value;
    if (field === "data") data.push(value);
    if (field === "retry" && /^\d{1,9}$/.test(value)) retryMs = Number(value);
  }
  return { id, data: data.length === 0 ? null : data.join("\n"), retryMs };
}
