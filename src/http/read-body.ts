import { setImmediate as nextTurn } from "node:timers/promises";
import { readMediaType } from "../api/media-type.ts";
import { DomainError } from "../core/domain-error.ts";
import { compactJson, type JsonScan, type ParsedJson, scanJson, withoutLists } from "../core/json.ts";
import {
  BODY_CHUNKS_MAX,
  JSON_DEPTH_MAX,
  JSON_MEMBERS_MAX,
  REQUEST_BODY_BYTES_MAX,
  SMALL_BODY_BYTES,
  UNPROVED_BODY_BYTES_MAX,
  FORM_BYTES_MAX,
  FORM_FIELDS_MAX,
} from "../core/limits.ts";
import { holderIdOf } from "../core/roles.ts";
import { holdBody, lengthOf } from "./body.ts";
import type { RequestContext } from "./request.ts";

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

/** The same for an optional body. Null: nothing was sent. */
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

/**
 * Reads the bytes of a body. Throws `payload_too_large` beyond `limit` or, until the client is authenticated, beyond
 * `UNPROVED_BODY_BYTES_MAX`. So read a session before its form.
 */
async function readBytes(context: RequestContext, limit: number): Promise<Uint8Array> {
  const bytesMax = context.caller === null ? Math.min(limit, UNPROVED_BODY_BYTES_MAX) : limit;
  const length = lengthOf(context.request) ?? 0;
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
function hold(context: RequestContext, bytes: number): void {
  context.freeBody();
  context.freeBody = NOTHING;
  if (context.caller === null || bytes <= SMALL_BODY_BYTES) return;
  context.freeBody = holdBody(holderIdOf(context.caller), bytes);
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
  return new DomainError("payload_too_large", `The body may have ${bytesMax} bytes at most.`);
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
export async function readForm(context: RequestContext): Promise<Form> {
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
    throw new DomainError("invalid_request", "The form has a field twice. Load the page again, then send its form.");
  return form;
}

/** The query without empty fields, which forms also send. */
export function withoutEmpty(search: string): string {
  return new URLSearchParams([...new URLSearchParams(search)].filter(([, value]) => value !== "")).toString();
}
