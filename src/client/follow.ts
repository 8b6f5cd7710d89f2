import { setTimeout as pause } from "node:timers/promises";
import type { Action } from "../actions/schemas.ts";
import type { ActionEvent } from "../actions/list-schemas.ts";
import { backoffMs, OutgateError, type Transport } from "./transport.ts";

/** One change of status. */
export interface OutgateEvent {
  /** Go on behind it with `after`. */
  readonly id: string;
  /** `action.` and the status. */
  readonly type: string;
  readonly timestamp: string;
  readonly action: Action;
}

export interface FollowOptions {
  /** The id of the last event that was seen; without it the stream begins now. */
  readonly after?: string | undefined;
  /** Ends the stream, without an error. */
  readonly signal?: AbortSignal | undefined;
  /** Hears that the stream is open: whatever happens from here on is told. */
  readonly onOpen?: () => void;
  /** Hears that the stream has broken off and will be opened again. */
  readonly onBreak?: (error: unknown) => void;
}

const RETRY_MS = 1_000;

/** Whatever the service says: nobody comes back without a pause. */
const RETRY_MS_MIN = 10;

const RETRY_MS_MAX = 30_000;

/** The service speaks every twelve seconds; whoever has heard nothing for longer listens to nobody. */
const SILENCE_MS_MAX = 30_000;

/**
 * Follows the event stream. What the service refuses for good, and a first connection that can't be made, is thrown; after
 * any other break it is opened again behind the last event.
 */
export async function* follow(
  transport: Transport,
  parse: (text: string) => unknown,
  { after, signal, onOpen, onBreak }: FollowOptions,
): AsyncGenerator<OutgateEvent> {
  const place: Place = { last: after, retryMs: RETRY_MS, breaks: 0, wasOpen: false };
  const opened = () => {
    place.breaks = 0;
    if (!place.wasOpen) onOpen?.();
    place.wasOpen = true;
  };
  const isOver = () => signal?.aborted === true;
  while (!isOver()) {
    try {
      yield* listen(transport, parse, { place, opened, signal });
    } catch (error) {
      if (isOver()) return;
      if (!place.wasOpen || isFinal(error)) throw error;
      onBreak?.(error);
    }
    const baseMs = Math.max(RETRY_MS_MIN, place.retryMs);
    const delayMs = backoffMs(place.breaks, { baseMs, capMs: RETRY_MS_MAX });
    place.breaks += 1;
    await pause(delayMs, undefined, signal === undefined ? {} : { signal }).catch(() => {});
  }
}

interface Place {
  last: string | undefined;
  retryMs: number;
  /** Since something was heard last. */
  breaks: number;
  wasOpen: boolean;
}

interface Listening {
  readonly place: Place;
  /** Called with every message: the first one says where the stream begins. */
  readonly opened: () => void;
  readonly signal: AbortSignal | undefined;
}

/** One connection, until it ends or nothing is heard any more. */
async function* listen(
  transport: Transport,
  parse: (text: string) => unknown,
  { place, opened, signal }: Listening,
): AsyncGenerator<OutgateEvent> {
  const release = new AbortController();
  let silence = setTimeout(() => release.abort(), SILENCE_MS_MAX);
  const heard = () => {
    clearTimeout(silence);
    silence = setTimeout(() => release.abort(), SILENCE_MS_MAX);
  };
  try {
    const response = await transport.open({
      method: "GET",
      path: "/v1/events",
      headers: place.last === undefined ? {} : { "last-event-id": place.last },
      isRepeatable: true,
      signal: AbortSignal.any([release.signal, ...(signal === undefined ? [] : [signal])]),
    });
    for await (const { id, data, retryMs } of messagesOf(chunksOf(response, heard))) {
      place.retryMs = retryMs ?? place.retryMs;
      place.last = id ?? place.last;
      opened();
      if (data === null) continue;
      // However long its reader takes for it, that is no silence of the service.
      clearTimeout(silence);
      yield eventOf(place.last ?? "", parse(data));
      heard();
    }
  } finally {
    clearTimeout(silence);
    release.abort();
  }
}

async function* chunksOf({ body }: Response, heard: () => void): AsyncGenerator<Uint8Array> {
  const stream: ReadableStream<Uint8Array> | null = body;
  const reader = stream?.getReader();
  if (reader === undefined) return;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    yield value;
  }
}

function eventOf(id: string, value: unknown): OutgateEvent {
  // Safe: the contract fixes what an event is (`ActionEvent`), and only Outgate answers as an event stream here.
  const { type, timestamp, data } = value as ActionEvent;
  return { id, type, timestamp, action: data };
}

/** Whoever comes back would be told the same. */
function isFinal(error: unknown): boolean {
  if (!(error instanceof OutgateError) || error.status === null) return false;
  return error.status >= 400 && error.status < 500 && error.status !== 429;
}

/** One event as it came over the wire, or what else a block of lines said. */
interface Message {
  /** Where the stream stands after it; null: nothing was said of it. */
  readonly id: string | null;
  readonly data: string | null;
  /** How long to wait before coming back. */
  readonly retryMs: number | null;
}

/** Longer than any event of ours: body, response and error of one action are 3 MB at most. */
const BLOCK_CHARS_MAX = 16 * 1_048_576;

/** Server-sent events out of bytes (WHATWG HTML, "Server-sent events"). What is cut off at the end is dropped. */
export async function* messagesOf(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Message> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of bytes) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > BLOCK_CHARS_MAX) throw new Error("An event is too long.");
    // A line end may be cut in two.
    const whole = text.endsWith("\r") ? text.slice(0, -1) : text;
    const blocks = whole.split(/\r\n\r\n|\n\n|\r\r/);
    const rest = blocks.pop() ?? "";
    text = rest + text.slice(whole.length);
    for (const block of blocks) yield messageOf(block);
  }
}

function messageOf(block: string): Message {
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
