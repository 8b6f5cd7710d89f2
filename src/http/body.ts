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
  JSON_DEPTH_MAX,
  JSON_MEMBERS_MAX,
  REQUEST_BODY_BYTES_MAX,
  SMALL_BODY_BYTES,
  FORM_BYTES_MAX,
  FORM_FIELDS_MAX,
} from "../core/limits.ts";
import { DomainError } from "../core/domain-error.ts";
import { type Clock, sleep } from "../core/clock.ts";
import { readMediaType } from "../api/media-type.ts";
import { compactJson, type JsonScan, type ParsedJson, scanJson, withoutLists } from "../core/json.ts";
import { type Caller, holderId } from "../core/roles.ts";

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
class ChunkedBody {
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

export function chunkedBody({ body }: Request): ChunkedBody | null {
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
function holdBody(holder: string, bytes: number): () => void {
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
export function contentLength({ headers }: Pick<Request, "headers">): number | null {
  const length = headers.get("content-length");
  return length === null ? null : Number.parseInt(length, 10);
}

export function hasBody(request: Request): boolean {
  return (contentLength(request) ?? 0) > 0 || request.headers.has("transfer-encoding");
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
    const length = contentLength(request) ?? Number.POSITIVE_INFINITY;
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
  throw new DomainError("unavailable", "Too many requests have bodies that no one needs. Send this one without.");
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

/** What reading the body of a request takes. */
export interface BodyContext {
  readonly request: Request;
  /** Null until it is authenticated, and then only short bodies are read. */
  caller: Caller | null;
  /** Whether body bytes may still arrive. */
  isBodyUnread: boolean;
  /** Called once, when the response has ended: its body counts until then. */
  freeBody: () => void;
  /** The body if it has no length; null: it has one, or there is no body. */
  readonly chunked: ChunkedBody | null;
}

/**
 * Reads the JSON body of a request. Checks its content type, then its size, then the JSON. Throws `missing_body`,
 * `invalid_content_type`, `payload_too_large` or `invalid_request`.
 */
export async function readJson(context: BodyContext, parse: ParseJson = parseJson): Promise<ParsedJson> {
  const parsed = await readOptionalJson(context, parse);
  if (parsed !== null) return parsed;
  const type = context.request.headers.get("content-type");
  if (type !== null) checkType(context.request.headers);
  throw new DomainError("missing_body", "Send a JSON body.");
}

/** The same for an optional body. Null: nothing was sent. */
export async function readOptionalJson(context: BodyContext, parse: ParseJson = parseJson): Promise<ParsedJson | null> {
  const { headers } = context.request;
  if (!context.isBodyUnread) return null;
  checkType(headers);
  const bytes = await readBytes(context, REQUEST_BODY_BYTES_MAX);
  return bytes.length === 0 ? null : parse(bytes);
}

/**
 * Reads the bytes of a body. Throws `payload_too_large` beyond `limit` or, until the client is authenticated, beyond
 * `UNPROVED_BODY_BYTES_MAX`. So read a session before its form.
 */
async function readBytes(context: BodyContext, limit: number): Promise<Uint8Array> {
  const bytesMax = context.caller === null ? Math.min(limit, UNPROVED_BODY_BYTES_MAX) : limit;
  const length = contentLength(context.request) ?? 0;
  if (length > bytesMax) throw tooLarge(bytesMax);
  hold(context, length);
  // Bun never reads beyond Content-Length.
  const read =
    context.chunked === null
      ? await context.request.bytes()
      : await context.chunked.read(bytesMax, () => hold(context, bytesMax));
  if (read === "more") throw tooLarge(bytesMax);
  if (read === "busy")
    throw new DomainError("unavailable", "Too many bodies in tiny chunks arrive at once; try again.");
  if (read === "too_many_chunks") throw new DomainError("payload_too_large", TOO_MANY_CHUNKS);
  context.isBodyUnread = false;
  hold(context, read.length);
  return read;
}

const NOTHING = () => {};

/** Counts the body until the request has ended, in place of what was counted before. Throws `rate_limited`. */
function hold(context: BodyContext, bytes: number): void {
  context.freeBody();
  context.freeBody = NOTHING;
  if (context.caller === null || bytes <= SMALL_BODY_BYTES) return;
  context.freeBody = holdBody(holderId(context.caller), bytes);
}

function checkType(headers: Headers): void {
  const type = headers.get("content-type");
  if (type === "application/json" && !headers.has("content-encoding")) return;
  const { essence, charsets } = readMediaType(type ?? "");
  if (essence !== "application/json") throw wrongType("Send the body as `Content-Type: application/json`.");
  if (charsets.some((charset) => charset !== "utf-8")) throw wrongType("JSON is UTF-8: leave the charset out.");
  const encoding = headers.get("content-encoding") ?? "identity";
  if (encoding.toLowerCase() !== "identity") throw wrongType("Send the body without Content-Encoding.");
}

function wrongType(message: string): DomainError {
  return new DomainError("invalid_content_type", message);
}

const TOO_MANY_CHUNKS = `The body came in too many chunks: ${BODY_CHUNKS_MAX} at most. Send larger ones, or a Content-Length.`;

function tooLarge(bytesMax: number): DomainError {
  return new DomainError("payload_too_large", `The body can have at most ${bytesMax} bytes.`);
}

/** Throws on bytes that are not UTF-8 instead of replacing them. Drops a byte-order mark. */
const UTF_8 = new TextDecoder("utf-8", { fatal: true });

/** Larger bodies are parsed in several turns of the event loop: in one, they would block it for up to 50 ms a megabyte. */
const LARGE_BYTES = 131_072;

/** Parses the bytes of a body. Throws `invalid_request`. */
type ParseJson = (bytes: Uint8Array) => Promise<ParsedJson>;

/** Parses JSON after checking depth and number of members. Throws `invalid_request`. */
async function parseJson(bytes: Uint8Array): Promise<ParsedJson> {
  const scan = checkBounds(bytes);
  const text = decodeUtf8(bytes, "The body");
  if (bytes.length > LARGE_BYTES) await nextTurn();
  const value = orInvalid((): unknown => JSON.parse(text));
  if (bytes.length > LARGE_BYTES) await nextTurn();
  return { value, text, scan };
}

/** Members of requests with JSON of a caller's own. They are sent as written, so their lists are read from the text. */
const OPAQUE_MEMBERS = ["body", "json"] as const;

/**
 * Parses the fields of a request. In the value of a large body, lists in `OPAQUE_MEMBERS` are empty, and lists in lists, which no field
 * of ours has; only the text has their elements. This saves memory: 340,000 lists take 25 MB as a value, but 4 MB this way.
 */
export async function parseFields(bytes: Uint8Array): Promise<ParsedJson> {
  if (bytes.length <= LARGE_BYTES) return parseJson(bytes);
  checkBounds(bytes);
  await nextTurn();
  const decoded = decodeUtf8(bytes, "The body");
  const text = orInvalid(() => compactJson(decoded));
  await nextTurn();
  const value: unknown = JSON.parse(withoutLists(text, OPAQUE_MEMBERS));
  await nextTurn();
  return { value, text, scan: "compact" };
}

function checkBounds(bytes: Uint8Array): Extract<JsonScan, "plain" | "exact"> {
  const scan = scanJson(bytes);
  if (scan === "too_deep") throw invalid(`The JSON is nested deeper than ${JSON_DEPTH_MAX} levels.`);
  if (scan === "too_many_members") throw invalid(`The JSON has more than ${JSON_MEMBERS_MAX} members.`);
  return scan;
}

function decodeUtf8(bytes: Uint8Array, what: string): string {
  try {
    return UTF_8.decode(bytes);
  } catch {
    throw invalid(`${what} is not UTF-8.`);
  }
}

function orInvalid<Value>(parse: () => Value): Value {
  try {
    return parse();
  } catch {
    throw invalid("The body is not valid JSON.");
  }
}

function invalid(message: string): DomainError {
  return new DomainError("invalid_request", message);
}

/** The fields of a form, by name. */
export type Form = ReadonlyMap<string, string>;

/** Whether the body is an HTML form rather than JSON. */
export function isForm({ headers }: Request): boolean {
  const { essence, charsets } = readMediaType(headers.get("content-type") ?? "");
  return essence === "application/x-www-form-urlencoded" && charsets.every((charset) => charset === "utf-8");
}

/**
 * Reads a form. Throws `invalid_content_type`, `payload_too_large` or `invalid_request`. Check its origin before
 * (`own-origin.ts`).
 */
export async function readForm(context: BodyContext): Promise<Form> {
  const { headers } = context.request;
  const encoding = headers.get("content-encoding") ?? "identity";
  if (!isForm(context.request) || encoding.toLowerCase() !== "identity") {
    throw new DomainError(
      "invalid_content_type",
      "Send the form as `Content-Type: application/x-www-form-urlencoded`.",
    );
  }
  const fields = new URLSearchParams(decodeUtf8(await readBytes(context, FORM_BYTES_MAX), "The form"));
  const form = new Map(fields);
  if (form.size > FORM_FIELDS_MAX)
    throw new DomainError("invalid_request", `The form has more than ${FORM_FIELDS_MAX} fields.`);
  // If a form has two decisions, it is unknown which one was meant.
  if (form.size < fields.size)
    throw new DomainError(
      "invalid_request",
      "The form has the same field twice. Reload the page and send the form again.",
    );
  return form;
}

/** The query without empty fields, which forms also send. */
export function withoutEmpty(search: string): string {
  return new URLSearchParams([...new URLSearchParams(search)].filter(([, value]) => value !== "")).toString();
}
