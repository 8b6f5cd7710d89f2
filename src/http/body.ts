import { type ParsedJson, type JsonScan, scanJson } from "../json/scan.ts";
import { DomainError } from "../api/domain-error.ts";
import {
  REQUEST_BODY_BYTES_MAX,
  REFUSED_BODY_BYTES_DROPPED_MAX,
  REFUSED_BODY_LINGER_MS,
  REFUSED_BODY_MS_MAX,
  JSON_DEPTH_MAX,
  JSON_MEMBERS_MAX,
} from "../config/limits.ts";
import type { RequestContext } from "./context.ts";
import type { Clock } from "../runtime/clock.ts";
import { type CompactJson, compactJson } from "../json/compact.ts";

/**
 * The JSON body of a request, judged in the order of hostile 1: content type, size, JSON. Throws `missing_body` when
 * there is none.
 */
export async function readJson(context: RequestContext, parse: ParseJson = parseJson): Promise<ParsedJson> {
  const parsed = await readOptionalJson(context, parse);
  if (parsed !== null) return parsed;
  const type = context.request.headers.get("content-type");
  if (type !== null) checkType(context.request.headers);
  throw new DomainError("missing_body", "Send a JSON body.");
}

/** The same where a body may be left out: null when nothing was sent. */
export async function readOptionalJson(
  context: RequestContext,
  parse: ParseJson = parseJson,
): Promise<ParsedJson | null> {
  const { headers } = context.request;
  if (!context.isBodyUnread) return null;
  checkType(headers);
  const bytes = await readBytes(context, REQUEST_BODY_BYTES_MAX);
  return bytes.length === 0 ? null : parse(bytes);
}

/** The bytes of a body as they come; throws `payload_too_large` as soon as there are more. */
export async function readBytes(context: RequestContext, bytesMax: number): Promise<Uint8Array> {
  const length = context.request.headers.get("content-length");
  if (length !== null && Number(length) > bytesMax) throw tooLarge(bytesMax);
  // The engine keeps to a length that is given; without one the bytes are counted as they come.
  const bytes = length === null ? await readCounted(context.request, bytesMax) : await context.request.bytes();
  context.isBodyUnread = false;
  return bytes;
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

async function readCounted({ body }: Request, bytesMax: number): Promise<Uint8Array> {
  const stream: ReadableStream<Uint8Array> | null = body;
  const reader = stream?.getReader();
  if (reader === undefined) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return Buffer.concat(chunks, size);
    size += value.byteLength;
    if (size > bytesMax) {
      reader.releaseLock();
      throw tooLarge(bytesMax);
    }
    chunks.push(value);
  }
}

function wrongType(message: string): DomainError {
  return new DomainError("invalid_content_type", message);
}

function tooLarge(bytesMax: number): DomainError {
  return new DomainError("payload_too_large", `The body may have ${bytesMax} bytes at most.`);
}

/** A `Content-Type` as it was sent, taken apart (RFC 9110, 8.3). */
interface MediaType {
  /** `type/subtype`, in lower case; blanks before the first semicolon belong to it, as in the pattern of the contract. */
  readonly essence: string;
  /** Every value of the parameter `charset`, in lower case and unquoted, in the order in which they came. */
  readonly charsets: readonly string[];
}

/**
 * Reads a media type in one pass over its characters: a pattern with blanks around every part takes cubic time on a
 * header full of them. Never throws; what is malformed comes out as a value that nobody accepts.
 */
export function readMediaType(header: string): MediaType {
  const [essence = "", ...parameters] = splitOutsideQuotes(header);
  const charsets: string[] = [];
  for (const parameter of parameters) {
    const equals = parameter.indexOf("=");
    const name = (equals === -1 ? parameter : parameter.slice(0, equals)).trim().toLowerCase();
    if (name === "charset")
      charsets.push(unquote(equals === -1 ? "" : parameter.slice(equals + 1).trim()).toLowerCase());
  }
  return { essence: essence.toLowerCase(), charsets };
}

/** Splits at semicolons; one inside a quoted string belongs to it. */
function splitOutsideQuotes(header: string): readonly string[] {
  const parts: string[] = [];
  let from = 0;
  let isQuoted = false;
  for (let at = 0; at < header.length; at += 1) {
    const char = header[at];
    if (isQuoted && char === "\\") at += 1;
    else if (char === '"') isQuoted = !isQuoted;
    else if (char === ";" && !isQuoted) {
      parts.push(header.slice(from, at));
      from = at + 1;
    }
  }
  parts.push(header.slice(from));
  return parts;
}

function unquote(value: string): string {
  return value.length >= 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1).trim() : value;
}

/**
 * An answer that was ready before the body was read. It goes out at once, since a client may wait for it before it sends
 * more; the connection closes when the rest was read and dropped: closed earlier, the client would see a reset instead of
 * the answer, and kept open, whatever follows on it would be executed (hostile 1).
 */
export async function closeWithAnswer(context: RequestContext, response: Response, clock: Clock): Promise<Response> {
  const rest = drainBody(context.request, clock);
  const hasNoBody = context.request.method === "HEAD" || response.body === null;
  const isOver = await Promise.race([rest.then(() => true), hasNoBody ? rest.then(() => true) : nextTurn()]);
  const headers = new Headers(response.headers);
  headers.set("connection", "close");
  const init = { status: response.status, headers };
  if (isOver) return new Response(response.body, init);
  const bytes = await response.bytes();
  const body = new ReadableStream({
    async start(controller) {
      controller.enqueue(bytes);
      await rest;
      controller.close();
    },
  });
  return new Response(body, init);
}

/**
 * Reads what is left of a body and drops it: up to 4 MiB or 2 s of it, and rests for a moment where there was more, so
 * that the reset of a close does not overtake the answer. Never throws.
 */
export async function drainBody({ body }: Request, clock: Clock): Promise<void> {
  const stream: ReadableStream<Uint8Array> | null = body;
  if (stream === null || stream.locked) return;
  const reader = stream.getReader();
  const isLate = Promise.withResolvers<{ done: true; value?: undefined }>();
  const cancelTimer = clock.after(REFUSED_BODY_MS_MAX, () => isLate.resolve({ done: true }));
  try {
    for (let dropped = 0; dropped < REFUSED_BODY_BYTES_DROPPED_MAX;) {
      const { done, value } = await Promise.race([reader.read(), isLate.promise]);
      if (done) return;
      dropped += value.byteLength;
    }
    await new Promise<void>((resolve) => void clock.after(REFUSED_BODY_LINGER_MS, resolve));
    await reader.cancel();
  } catch {
    // The client is gone, and with it whoever the answer was for.
  } finally {
    cancelTimer();
  }
}

/** False, a turn of the event loop later: by then a body that came with its head is dropped. */
function nextTurn(): Promise<false> {
  return new Promise((resolve) => setImmediate(() => resolve(false)));
}

/** Fatal: a byte that is not UTF-8 is an error and not a replacement character. A byte-order mark is dropped. */
const UTF_8 = new TextDecoder("utf-8", { fatal: true });

/** From here on the steps are turns of their own: together they would hold the event loop for up to 50 ms a megabyte. */
const LARGE_BYTES = 131_072;

/** How a body becomes JSON. */
type ParseJson = (bytes: Uint8Array) => Promise<ParsedJson>;

/** One JSON text from its bytes, bounded before it is parsed (hostile 1). Throws `invalid_request`. */
async function parseJson(bytes: Uint8Array): Promise<ParsedJson> {
  const scan = bounded(bytes);
  const text = decode(bytes);
  if (bytes.length > LARGE_BYTES) await nextTurnOfLoop();
  const value = parseText(text);
  if (bytes.length > LARGE_BYTES) await nextTurnOfLoop();
  return { value, text, scan };
}

/**
 * The same for a body of which only fields of ours are looked at, none of them a list: in the value of a large one every
 * list is empty. Its text has them as they were written. A value of 340,000 lists takes 25 MB, this 4.
 */
export async function parseFields(bytes: Uint8Array): Promise<ParsedJson> {
  if (bytes.length <= LARGE_BYTES) return parseJson(bytes);
  bounded(bytes);
  await nextTurnOfLoop();
  const compact = compactJson(bytes);
  if (compact === null) throw invalid(NO_JSON);
  await nextTurnOfLoop();
  const value = parseText(decode(withoutLists(compact)));
  const text = decode(compact.bytes);
  await nextTurnOfLoop();
  // The value can't be printed again: whoever wants a member's text copies it.
  return { value, text, scan: "exact" };
}

function bounded(bytes: Uint8Array): Extract<JsonScan, "plain" | "exact"> {
  const scan = scanJson(bytes);
  if (scan === "too_deep") throw invalid(`The JSON is nested deeper than ${JSON_DEPTH_MAX} levels.`);
  if (scan === "too_many_members") throw invalid(`The JSON has more than ${JSON_MEMBERS_MAX} members.`);
  return scan;
}

function withoutLists({ bytes, lists }: CompactJson): Uint8Array {
  const parts: Uint8Array[] = [];
  let kept = 0;
  for (let at = 0; at + 1 < lists.length; at += 2) {
    const [start = 0, end = 0] = lists.slice(at, at + 2);
    parts.push(bytes.subarray(kept, start + 1));
    kept = end - 1;
  }
  return Buffer.concat([...parts, bytes.subarray(kept)]);
}

function decode(bytes: Uint8Array): string {
  try {
    return UTF_8.decode(bytes);
  } catch {
    throw invalid("The body is not UTF-8.");
  }
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid(NO_JSON);
  }
}

const NO_JSON = "The body is not valid JSON.";

function invalid(message: string): DomainError {
  return new DomainError("invalid_request", message);
}

function nextTurnOfLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
