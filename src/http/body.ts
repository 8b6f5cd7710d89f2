import { compactJson, type ParsedJson, type JsonScan, scanJson, withoutLists } from "../json/json.ts";
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

/**
 * Reads the JSON body of a request. Checks its content type, then its size, then the JSON. Throws `missing_body`,
 * `invalid_content_type`, `payload_too_large` or `invalid_request`.
 */
export async function readJson(context: RequestContext, parse: ParseJson = parseJson): Promise<ParsedJson> {
  const parsed = await readOptionalJson(context, parse);
  if (parsed !== null) return parsed;
  const type = context.request.headers.get("content-type");
  if (type !== null) checkType(context.request.headers);
  throw new DomainError("missing_body", "Send a JSON body.");
}

/** The same where the body is optional: null when nothing was sent. */
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

/** Reads the bytes of a body; throws `payload_too_large` as soon as there are more than `bytesMax`. */
export async function readBytes(context: RequestContext, bytesMax: number): Promise<Uint8Array> {
  const length = context.request.headers.get("content-length");
  if (length !== null && Number(length) > bytesMax) throw tooLarge(bytesMax);
  // Bun never reads beyond Content-Length; without one the bytes are counted as they arrive.
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

/** A parsed `Content-Type` (RFC 9110, 8.3). */
interface MediaType {
  /** `type/subtype` in lower case, with any blanks before the first semicolon. */
  readonly essence: string;
  /** Every value of the parameter `charset`, in lower case and unquoted, in order. */
  readonly charsets: readonly string[];
}

/**
 * Parses a media type in one pass: a regular expression with optional blanks takes cubic time on a header full of blanks.
 * Never throws; a malformed header becomes a value that no caller accepts.
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

/** Splits at semicolons outside quoted strings. */
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
 * Sends a response that was ready before the body was read, and closes the connection. It is sent at once, since a client
 * may wait for it before it sends more. The connection is closed once the rest of the body was read and dropped: closed
 * earlier, the client would see a reset instead of the response; kept open, the rest would be taken for another request.
 */
export async function closeWithAnswer(context: RequestContext, response: Response, clock: Clock): Promise<Response> {
  const drained = drainBody(context.request, clock).then(() => true);
  const hasNoBody = context.request.method === "HEAD" || response.body === null;
  // A body that arrived together with its headers is drained within one turn of the event loop.
  const isDrained = await Promise.race([drained, hasNoBody ? drained : nextTurn().then(() => false)]);
  const headers = new Headers(response.headers);
  headers.set("connection", "close");
  const init = { status: response.status, headers };
  if (isDrained) return new Response(response.body, init);
  const bytes = await response.bytes();
  const body = new ReadableStream({
    async start(controller) {
      controller.enqueue(bytes);
      await drained;
      controller.close();
    },
  });
  return new Response(body, init);
}

/**
 * Reads and drops what is left of a body, up to `REFUSED_BODY_BYTES_DROPPED_MAX` or `REFUSED_BODY_MS_MAX`. Where there is
 * more it waits for a moment, so that the reset of the connection doesn't overtake the response. Never throws.
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
    // The client has left.
  } finally {
    cancelTimer();
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Throws on bytes that are not UTF-8 instead of replacing them. Drops a byte-order mark. */
const UTF_8 = new TextDecoder("utf-8", { fatal: true });

/** Larger bodies are parsed in several turns of the event loop: in one they would block it for up to 50 ms a megabyte. */
const LARGE_BYTES = 131_072;

/** Parses the bytes of a body. Throws `invalid_request`. */
type ParseJson = (bytes: Uint8Array) => Promise<ParsedJson>;

/** Parses JSON after checking depth and number of members. Throws `invalid_request`. */
async function parseJson(bytes: Uint8Array): Promise<ParsedJson> {
  const scan = checkBounds(bytes);
  const text = decode(bytes);
  if (bytes.length > LARGE_BYTES) await nextTurn();
  const value = orInvalid((): unknown => JSON.parse(text));
  if (bytes.length > LARGE_BYTES) await nextTurn();
  return { value, text, scan };
}

/**
 * The same for a body whose own fields hold no lists: in the parsed value of a large body every list is empty, and only
 * the text has its elements. This saves memory: 340,000 lists take 25 MB as a value, and 4 MB this way.
 */
export async function parseFields(bytes: Uint8Array): Promise<ParsedJson> {
  if (bytes.length <= LARGE_BYTES) return parseJson(bytes);
  checkBounds(bytes);
  await nextTurn();
  const decoded = decode(bytes);
  const text = orInvalid(() => compactJson(decoded));
  await nextTurn();
  const value: unknown = JSON.parse(withoutLists(text));
  await nextTurn();
  return { value, text, scan: "compact" };
}

function checkBounds(bytes: Uint8Array): Extract<JsonScan, "plain" | "exact"> {
  const scan = scanJson(bytes);
  if (scan === "too_deep") throw invalid(`The JSON is nested deeper than ${JSON_DEPTH_MAX} levels.`);
  if (scan === "too_many_members") throw invalid(`The JSON has more than ${JSON_MEMBERS_MAX} members.`);
  return scan;
}

function decode(bytes: Uint8Array): string {
  try {
    return UTF_8.decode(bytes);
  } catch {
    throw invalid("The body is not UTF-8.");
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
