import { isIP, isIPv4 } from "node:net";
import {
  FORWARDED_ADDRESSES_MAX,
  FORWARDED_CHARS_MAX,
  BODY_CHUNKS_MAX,
  FORM_BYTES_MAX,
  FORM_FIELDS_MAX,
  JSON_DEPTH_MAX,
  JSON_MEMBERS_MAX,
  REQUEST_BODY_BYTES_MAX,
  UNPROVED_BODY_BYTES_MAX,
} from "../core/limits.ts";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Server } from "bun";
import { type Caller, unauthorized } from "../core/roles.ts";
import { DomainError, type ErrorCode, type Issue } from "../core/domain-error.ts";
import type { QueryCheck } from "../api/schema-helpers.ts";
import { compactJson, type JsonScan, type ParsedJson, scanJson, withoutLists } from "../core/json.ts";
import type { RequestKind } from "../observability/metrics.ts";
import { maskText } from "../receipts/masking.ts";
import type { Ids } from "../core/ids.ts";
import type { ChunkedBody } from "./body.ts";
import type { PageKind } from "./response.ts";

/** One request while it is handled. Handlers add what they find out, for the log line. */
export interface RequestContext {
  readonly request: Request;
  /** Null where no socket is behind the request. */
  readonly server: Server<unknown> | null;
  /** From the request line, not percent-decoded; empty where it has none. */
  readonly path: string;
  /** The query without its question mark; empty when there is none. */
  readonly search: string;
  /** The client's IP address; empty where no socket is behind the request. */
  readonly client: string;
  readonly name: RequestName;
  readonly startedMs: number;
  caller: Caller | null;
  /** Counts further requests against the rate limit, for a batch; throws `rate_limited`. */
  count: (requests: number) => void;
  /** The pattern of the route that answers; null before it is found. */
  route: string | null;
  actionId: string | null;
  errorCode: ErrorCode | null;
  /** The kind of page that a route for people answers with, also on errors; null: JSON. */
  page: PageKind | null;
  /** What the duration is spent on; metrics keep waiting and streaming apart from work. */
  kind: RequestKind;
  /** Whether body bytes may still arrive. */
  isBodyUnread: boolean;
  /** The body where it has no length; null: it has one, or there is none. */
  readonly chunked: ChunkedBody | null;
}

/** The contexts of the requests that are being handled. */
const contexts = new WeakMap<Request, RequestContext>();

/** Makes `contextOf` return this context for the request. */
export function bindContext(request: Request, context: RequestContext): void {
  contexts.set(request, context);
}

/** What belongs to a request. Throws for a request that the handler has not begun. */
export function contextOf(request: Request): RequestContext {
  const context = contexts.get(request);
  if (context === undefined) throw new TypeError("This request did not come through the handler.");
  return context;
}

/** The authenticated caller. Throws `unauthorized` where there is none: a route that skipped authentication fails closed. */
export function callerOf(context: RequestContext): Caller {
  if (context.caller !== null) return context.caller;
  throw unauthorized();
}

/** What a request line names: path and query. */
interface RequestTarget {
  readonly path: string;
  readonly search: string;
}

/**
 * The target of a request; null: CONNECT, which is no request for a path, or a text that nobody can take for a URL. Bun
 * leaves out scheme and host where the `Host` header is unusable, and then dot segments and backslashes are as sent: they
 * are resolved here, so that the path whose key is asked for is the one that is routed.
 */
export function targetOf({ method, url }: Pick<Request, "method" | "url">): RequestTarget | null {
  if (method === "CONNECT") return null;
  if (url.startsWith("http://") || url.startsWith("https://")) return split(url);
  const resolved = url.startsWith("/") ? URL.parse(`http://localhost${url}`) : null;
  return resolved === null ? null : split(resolved.href);
}

/** An error for a request without a target. */
export function noTarget(): DomainError {
  return new DomainError(
    "invalid_request",
    "The request line has no path of this service. Send one that begins with a slash, by another method than CONNECT.",
  );
}

function split(url: string): RequestTarget {
  const start = Math.max(0, url.indexOf("/", url.indexOf("://") + 3));
  const end = endOf(url, start);
  const question = url.indexOf("?", start);
  if (question === -1 || question > end) return { path: url.slice(start, end), search: "" };
  return { path: url.slice(start, question), search: url.slice(question + 1, end) };
}

/** Where path and query end: a fragment isn't part of them. */
function endOf(url: string, start: number): number {
  const hash = url.indexOf("#", start);
  return hash === -1 ? url.length : hash;
}

export function hasBody({ headers }: Request): boolean {
  const length = headers.get("content-length");
  return (length !== null && length !== "0") || headers.has("transfer-encoding");
}

/** The ids of one request. */
export interface RequestName {
  /** For `X-Request-Id`: the client's own id where its form is accepted, else a new one. */
  readonly id: string;
  /** For the log: the same, masked, since a client may have put a key into the wrong header. */
  readonly logId: string;
  /** For error envelopes and the log, always `req_…`: the same id where it has that form and no secret, else a new one. */
  envelopeId(): string;
}

/** A client's id of any other form is neither echoed nor logged. */
const ACCEPTED_ID = /^[A-Za-z0-9._:-]{1,128}$/;

const ENVELOPE_ID = /^req_[A-Za-z0-9_-]+$/;

export function nameRequest(given: string | null, ids: Pick<Ids, "request">): RequestName {
  if (given === null || !ACCEPTED_ID.test(given)) return named(ids.request());
  const logId = maskText(given, "public");
  if (logId === given && ENVELOPE_ID.test(given)) return named(given);
  // Made on demand, since only errors need it, and once: envelope and log line must show the same id.
  let second: string | null = null;
  return { id: given, logId, envelopeId: () => (second ??= ids.request()) };
}

function named(id: string): RequestName {
  return { id, logId: id, envelopeId: () => id };
}

/**
 * Reads the query of a request by the schema of its route. Throws `invalid_query` with every issue: unknown parameters,
 * repeated ones, values out of range, integers that are not plain decimal digits.
 */
export function readQuery<T>(search: string, check: QueryCheck<T>): T {
  const given = search === "" ? EMPTY : collect(search, check);
  const value: unknown = given.value;
  if (given.repeated.length === 0 && check.accepts(value)) return value;
  const issues: Issue[] = given.repeated.map((field) => ({ field, message: "Is given more than once." }));
  throw new DomainError("invalid_query", "The query is not valid.", [...issues, ...check.issues(value)]);
}

interface Given {
  readonly value: object;
  readonly repeated: readonly string[];
}

const EMPTY: Given = { value: {}, repeated: [] };

const DIGITS = /^\d{1,15}$/;

function collect(search: string, check: QueryCheck<unknown>): Given {
  const texts = new Map<string, string[]>();
  for (const [name, text] of new URLSearchParams(search)) {
    const before = texts.get(name);
    if (before === undefined) texts.set(name, [text]);
    else before.push(text);
  }
  const value = [...texts].map(([name, all]) => [name, valueOf(check.kindOf(name), all)] as const);
  const repeated = [...texts].filter(([name, all]) => all.length > 1 && check.kindOf(name) !== "array");
  return { value: Object.fromEntries(value), repeated: repeated.map(([name]) => name) };
}

function valueOf(kind: "integer" | "array" | "text", all: readonly string[]): unknown {
  if (kind === "array") return all;
  const text = all[0] ?? "";
  return kind === "integer" && DIGITS.test(text) ? Number(text) : text;
}

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

/**
 * Reads the bytes of a body; throws `payload_too_large` as soon as there are more than `limit`, or while nobody has proved
 * who they are, `UNPROVED_BODY_BYTES_MAX`. So read a session before its form.
 */
async function readBytes(context: RequestContext, limit: number): Promise<Uint8Array> {
  const bytesMax = context.caller === null ? Math.min(limit, UNPROVED_BODY_BYTES_MAX) : limit;
  const length = context.request.headers.get("content-length");
  if (length !== null && Number(length) > bytesMax) throw tooLarge(bytesMax);
  // Bun never reads beyond Content-Length.
  const read = context.chunked === null ? await context.request.bytes() : await context.chunked.read(bytesMax);
  if (read === "more") throw tooLarge(bytesMax);
  if (read === "busy")
    throw new DomainError("unavailable", "Too many bodies in tiny chunks arrive at once; try again.");
  if (read === "too_many_chunks") throw new DomainError("payload_too_large", TOO_MANY_CHUNKS);
  context.isBodyUnread = false;
  return read;
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

/** Throws on bytes that are not UTF-8 instead of replacing them. Drops a byte-order mark. */
const UTF_8 = new TextDecoder("utf-8", { fatal: true });

/** Larger bodies are parsed in several turns of the event loop: in one they would block it for up to 50 ms a megabyte. */
const LARGE_BYTES = 131_072;

/** Parses the bytes of a body. Throws `invalid_request`. */
type ParseJson = (bytes: Uint8Array) => Promise<ParsedJson>;

/** Parses JSON after checking depth and number of members. Throws `invalid_request`. */
async function parseJson(bytes: Uint8Array): Promise<ParsedJson> {
  const scan = checkBounds(bytes);
  const text = decode(bytes, "The body");
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
  const decoded = decode(bytes, "The body");
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

function decode(bytes: Uint8Array, what: string): string {
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

/** The fields of a form; of a repeated name the last value counts. */
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
  const form = new Map(new URLSearchParams(decode(await readBytes(context, FORM_BYTES_MAX), "The form")));
  if (form.size <= FORM_FIELDS_MAX) return form;
  throw invalid(`The form has more than ${FORM_FIELDS_MAX} fields.`);
}

/** A query without empty fields, which forms send too. */
export function withoutEmpty(search: string): string {
  return new URLSearchParams([...new URLSearchParams(search)].filter(([, value]) => value !== "")).toString();
}

const GROUPS = 8;

/** A /64: one client can use any address in it. */
const GROUPS_OF_CLIENT = 4;

/** Whether an address is listed in `TRUSTED_PROXIES`. */
export type IsTrustedProxy = (address: string) => boolean;

/** The client for counting requests: its IPv4 address, or the /64 of its IPv6 address. */
export function clientOf({ client }: Pick<RequestContext, "client">): string {
  return networkOf(client);
}

/**
 * The client's IP address; empty where there is no socket. Behind a trusted proxy it is the last address in
 * `X-Forwarded-For` that is not a trusted proxy: anything before it can be forged. Where the header can't be parsed it is
 * the proxy itself.
 */
export function clientAddressOf(socket: string, forwardedFor: string | null, isTrusted: IsTrustedProxy): string {
  const peer = addressIn(socket) ?? "";
  if (forwardedFor === null || peer === "" || !isTrusted(peer)) return peer;
  let client = peer;
  for (const entry of lastOf(forwardedFor)) {
    const address = addressIn(entry);
    if (address === null) return peer;
    client = address;
    if (!isTrusted(address)) break;
  }
  return client;
}

/** The last entries of the header, last one first. */
function lastOf(forwardedFor: string): readonly string[] {
  const entries = forwardedFor.slice(-FORWARDED_CHARS_MAX).split(",");
  // The first one may be cut in the middle.
  if (forwardedFor.length > FORWARDED_CHARS_MAX) entries.shift();
  return entries.slice(-FORWARDED_ADDRESSES_MAX).toReversed();
}

/** An IP address in canonical form, without port, brackets or zone; null for anything else. */
function addressIn(text: string): string | null {
  // Most are: the socket's own, and what proxies write.
  if (isIPv4(text)) return text;
  const trimmed = text.trim();
  const bare = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(trimmed)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(trimmed)?.[1] ?? trimmed;
  const address = bare.split("%", 1)[0] ?? "";
  if (isIP(address) !== 6) return isIP(address) === 4 ? address : null;
  const spelled = new URL(`http://[${address}]/`).hostname.slice(1, -1);
  return mappedIn(spelled) ?? spelled;
}

/** The IPv4 address in a mapped one such as `::ffff:c000:207`; null for others. */
function mappedIn(spelled: string): string | null {
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(spelled) ?? [];
  if (high === undefined || low === undefined) return null;
  return [high, low].flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff]).join(".");
}

/** An IPv4 address as it is, or the first four groups of an IPv6 address. */
export function networkOf(address: string): string {
  if (address.includes(".")) return address.slice(address.lastIndexOf(":") + 1);
  const [front = [], back = []] = address.split("::").map((part) => part.split(":").filter((group) => group !== ""));
  const zeros = Array.from({ length: Math.max(0, GROUPS - front.length - back.length) }, () => "0");
  return address === "" ? "" : [...front, ...zeros, ...back].slice(0, GROUPS_OF_CLIENT).join(":");
}
