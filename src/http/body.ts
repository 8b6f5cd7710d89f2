import { setImmediate as nextTurn } from "node:timers/promises";
import { Counts } from "../core/maps.ts";
import {
  BODY_CHUNKS_MAX,
  BODY_CHUNKS_PER_TURN_MAX,
  CHUNKED_BODIES_DROPPED_AT_ONCE_MAX,
  CHUNKS_DROPPED_PER_TURN_MAX,
  FULL_TURN_CHUNKS_MAX,
  HELD_BODY_BYTES_MAX,
  LONG_BODIES_DROPPED_AT_ONCE_MAX,
  REFUSED_BODY_BYTES_DROPPED_MAX,
  REFUSED_BODY_LINGER_MS,
  REFUSED_BODY_MS_MAX,
  SMALL_CHUNK_BYTES,
  UNPROVED_BODY_BYTES_MAX,
} from "../core/limits.ts";
import { DomainError } from "../core/domain-error.ts";
import { type Clock, sleep } from "../core/clock.ts";

type Body = ReadableStream<Uint8Array>;

interface Reader {
  /** Resolves without a value at the end. */
  read(): Promise<{ readonly value?: Uint8Array | undefined }>;
  cancel(): Promise<void>;
}

/** How far a body was read: to its end, to the given limit, or until there were too many chunks. */
type Progress = "whole" | "more" | "too_many_chunks" | "busy";

const FIRST_BUFFER_BYTES = 4_096;

/**
 * A body without a length. While it is read, Bun hands over each chunk separately (0.6 µs a chunk, and a megabyte may be a
 * million of them); otherwise, it joins them (0.05 µs). So chunks are counted from the first one on, before it is known whose
 * request it is, and nothing beyond the limit is read.
 */
export class ChunkedBody {
  readonly #reader: Reader;
  readonly #begun: Promise<Progress>;
  #kept = new Uint8Array(FIRST_BUFFER_BYTES);
  #bytes = 0;
  #chunks = 0;
  /** The chunk that exceeded the limit. */
  #next: Uint8Array | null = null;
  #isDropped = false;

  constructor(body: Body) {
    this.#reader = body.getReader();
    this.#begun = this.#readOn(UNPROVED_BODY_BYTES_MAX);
    // If the sender leaves, `read` throws the error; if nobody reads the body, nobody needs it.
    this.#begun.catch(() => {});
  }

  /** Reads the whole body, or returns why it can't. Calls `onLarge` before it reads more than `UNPROVED_BODY_BYTES_MAX`. Call it once. */
  async read(bytesMax: number, onLarge: () => void): Promise<Uint8Array | Exclude<Progress, "whole">> {
    const begun = await this.#begun;
    if (begun === "more") onLarge();
    const progress = begun === "more" ? await this.#readOn(bytesMax) : begun;
    if (progress !== "whole") return progress;
    return this.#bytes > bytesMax ? "more" : this.#kept.subarray(0, this.#bytes);
  }

  /** The reader of the rest, and what to await before using it. Nothing is kept from now on. */
  drop() {
    this.#isDropped = true;
    this.#kept = new Uint8Array();
    this.#next = null;
    return { reader: this.#reader, ready: this.#begun };
  }

  async #readOn(bytesMax: number): Promise<Progress> {
    for (;;) {
      if (this.#next === null) {
        const { value } = await this.#reader.read();
        if (value === undefined) return "whole";
        if (this.#isDropped) return "more";
        this.#next = value;
        // A large one may come in pieces; the size bounds their number.
        if (value.byteLength < SMALL_CHUNK_BYTES && isOneTooMany(++this.#chunks)) {
          return this.#chunks > BODY_CHUNKS_MAX ? "too_many_chunks" : "busy";
        }
      }
      if (this.#bytes + this.#next.byteLength > bytesMax) return "more";
      this.#keep(this.#next, bytesMax);
      this.#next = null;
    }
  }

  #keep(chunk: Uint8Array, bytesMax: number): void {
    const bytes = this.#bytes + chunk.byteLength;
    if (bytes > this.#kept.byteLength) {
      const larger = new Uint8Array(Math.min(bytesMax, Math.max(bytes, 2 * this.#kept.byteLength)));
      larger.set(this.#kept.subarray(0, this.#bytes));
      this.#kept = larger;
    }
    this.#kept.set(chunk, this.#bytes);
    this.#bytes = bytes;
  }
}

export function chunkedBodyOf({ body }: Request): ChunkedBody | null {
  return body === null ? null : new ChunkedBody(body);
}

/** The chunks of all bodies that were counted in this turn of the event loop. */
let countedInTurn = 0;

/**
 * Counts the n-th chunk of a body. Many bodies at once would block the event loop even if none of them has too many chunks, so
 * in a full turn, bodies that continue are refused.
 */
function isOneTooMany(chunks: number): boolean {
  if (countedInTurn === 0) setImmediate(() => (countedInTurn = 0));
  countedInTurn += 1;
  return chunks > (countedInTurn > BODY_CHUNKS_PER_TURN_MAX ? FULL_TURN_CHUNKS_MAX : BODY_CHUNKS_MAX);
}

/** Bytes of the bodies that the open requests of each key hold. */
const held = new Counts();

/**
 * Counts a body of a key until its request has ended: one that arrives slowly, and a call that waits for two minutes, keep
 * what they were sent. Returns what ends it, to be called once. Throws `rate_limited` where the key holds too much.
 */
export function holdBody(holder: string, bytes: number): () => void {
  if (held.of(holder) + bytes > HELD_BODY_BYTES_MAX) {
    throw new DomainError(
      "rate_limited",
      `The open requests of this key have bodies of ${HELD_BODY_BYTES_MAX} bytes. Wait until some of them have ended.`,
    );
  }
  held.add(holder, bytes);
  return () => held.remove(holder, bytes);
}

/** The length of a body as its header says it; null: it says none. Of a header that repeats one number, Bun makes "7, 7". */
export function lengthOf({ headers }: Pick<Request, "headers">): number | null {
  const length = headers.get("content-length");
  return length === null ? null : Number.parseInt(length, 10);
}

export function hasBody(request: Request): boolean {
  return (lengthOf(request) ?? 0) > 0 || request.headers.has("transfer-encoding");
}

/** A request whose body nobody needs. */
interface Unneeded {
  readonly request: Pick<Request, "body" | "headers">;
  readonly chunked: ChunkedBody | null;
}

/** Bodies that are being dropped: those in chunks, and long ones. */
const dropping = { chunked: 0, long: 0 };

/**
 * Reads and drops the rest of a body, up to `REFUSED_BODY_BYTES_DROPPED_MAX` or `REFUSED_BODY_MS_MAX`. If there is more, it
 * waits a moment, so that the reset of the connection doesn't overtake the response. Never throws. False, at once: too many
 * bodies are being dropped, so the connection must close with the rest unread.
 */
export async function dropBody({ request, chunked }: Unneeded, clock: Clock): Promise<boolean> {
  if (chunked === null) {
    const body: Body | null = request.body;
    if (body === null || body.locked) return true;
    const length = lengthOf(request) ?? Number.POSITIVE_INFINITY;
    const isLong = length > UNPROVED_BODY_BYTES_MAX;
    if (isLong && dropping.long >= LONG_BODIES_DROPPED_AT_ONCE_MAX) return false;
    dropping.long += Number(isLong);
    await dropRest(body.getReader(), Promise.resolve(), clock);
    dropping.long -= Number(isLong);
    return true;
  }
  if (dropping.chunked >= CHUNKED_BODIES_DROPPED_AT_ONCE_MAX) return false;
  dropping.chunked += 1;
  const { reader, ready } = chunked.drop();
  await dropRest(reader, ready, clock);
  dropping.chunked -= 1;
  return true;
}

/** Drops the body of a request that may wait: a sender could drip it for ever. Throws `unavailable`. */
export async function dropBodyFirst(unneeded: Unneeded, clock: Clock): Promise<void> {
  if (await dropBody(unneeded, clock)) return;
  throw new DomainError("unavailable", "Too many requests have bodies that nobody needs. Send this one without.");
}

async function dropRest(reader: Reader, ready: Promise<unknown>, clock: Clock) {
  const stop = () => reader.cancel().catch(() => {});
  const cancelTimer = clock.after(REFUSED_BODY_MS_MAX, () => void stop());
  try {
    await ready;
    for (let dropped = 0, chunks = 1; dropped < REFUSED_BODY_BYTES_DROPPED_MAX; chunks += 1) {
      const { value } = await reader.read();
      if (value === undefined) return;
      dropped += value.byteLength;
      // Pause, so that Bun joins the chunks that arrive meanwhile.
      if (chunks % CHUNKS_DROPPED_PER_TURN_MAX === 0) await nextTurn();
    }
    await sleep(clock, REFUSED_BODY_LINGER_MS);
    await stop();
  } catch {
    // The client has left.
  } finally {
    cancelTimer();
  }
}
