import { isIPv4 } from "node:net";
import {
  FORWARDED_ADDRESSES_MAX,
  FORWARDED_CHARS_MAX,
  BODY_CHUNKS_MAX,
  FORM_BYTES_MAX,
  FORM_FIELDS_MAX,
  JSON_DEPTH_MAX,
  JSON_MEMBERS_MAX,
  REQUEST_BODY_BYTES_MAX,
  SMALL_BODY_BYTES,
  UNPROVED_BODY_BYTES_MAX,
} from "../core/limits.ts";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Server } from "bun";
import { type Caller, holderIdOf, unauthorized } from "../core/roles.ts";
import { DomainError, type ErrorCode, type Issue } from "../core/domain-error.ts";
import type { QueryCheck } from "../api/check.ts";
import { readMediaType } from "../api/media-type.ts";
import { canonicalAddress, networkOf } from "../core/addresses.ts";
import { compactJson, type JsonScan, type ParsedJson, scanJson, withoutLists } from "../core/json.ts";
import type { RequestKind } from "../observability/metrics.ts";
import { maskText } from "../receipts/masking.ts";
import type { Ids } from "../core/ids.ts";
import { type ChunkedBody, holdBody, lengthOf } from "./body.ts";
import type { PageKind } from "./response.ts";

/** A request while it is handled. Handlers add what they learn, for the log line. */
export interface RequestContext {
  readonly request: Request;
  /** Null: the request came over no socket. */
  readonly server: Server<unknown> | null;
  /** From the request line, not percent-decoded; empty if it has none. */
  readonly path: string;
  /** The query without its question mark; empty when there is none. */
  readonly search: string;
  /** The client's IP address; empty if the request came over no socket. */
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
  /** Called once, when the response has ended: its body counts until then. */
  freeBody: () => void;
  /** The body if it has no length; null: it has one, or there is no body. */
  readonly chunked: ChunkedBody | null;
}

/** The contexts of the requests that are being handled. */
const contexts = new WeakMap<Request, RequestContext>();

/** Makes `contextOf` return this context for the request. */
export function bindContext(request: Request, context: RequestContext): void {
  contexts.set(request, context);
}

/** The context of a request. Throws for a request that the handler has not begun. */
export function contextOf(request: Request): RequestContext {
  const context = contexts.get(request);
  if (context === undefined) throw new TypeError("This request did not come through the handler.");
  return context;
}

/** The authenticated caller. Throws `unauthorized` if there is none, so that a route that skipped authentication fails closed. */
export function callerOf(context: RequestContext): Caller {
  if (context.caller !== null) return context.caller;
  throw unauthorized();
}

/** Path and query of a request, as a link within the service. */
export function pathAndQuery({ path, search }: RequestTarget): string {
  return search === "" ? path : `${path}?${search}`;
}

/** What a request line names: path and query. */
interface RequestTarget {
  readonly path: string;
  readonly search: string;
}

/**
 * The target of a request. Null: CONNECT, which has no path, or a text that is no URL. If the `Host` header is unusable, Bun
 * leaves out scheme and host and keeps dot segments and backslashes as sent; they are resolved here, so that the path that is
 * authenticated is the one that is routed.
 */
export function targetOf({ method, url }: Pick<Request, "method" | "url">): RequestTarget | null {
  if (method === "CONNECT") return null;
  if (url.startsWith("http://") || url.startsWith("https://")) return split(url);
  const resolved = url.startsWith("/") ? URL.parse(`http://localhost${url}`) : null;
  return resolved === null ? null : split(resolved.href);
}

/** The error for a request without a target. */
export function noTarget(): DomainError {
  return new DomainError(
    "invalid_request",
    "The request line has no path of this service. Send one that begins with a slash, by another method than CONNECT.",
  );
}

/** Whether a path always answers JSON, whatever the request accepts. */
export function isApiPath(path: string): boolean {
  return /^\/(v1|mcp)(\/|$)/.test(path);
}

/** Whether the path is /mcp, with or without a slash at its end. */
export function isMcpPath(path: string): boolean {
  return path === "/mcp" || path === "/mcp/";
}

/** Splits path and query, without the fragment, which is part of neither. */
function split(url: string): RequestTarget {
  const [whole = ""] = url.split("#", 1);
  const start = Math.max(0, whole.indexOf("/", whole.indexOf("://") + 3));
  const question = whole.indexOf("?", start);
  if (question === -1) return { path: whole.slice(start), search: "" };
  return { path: whole.slice(start, question), search: whole.slice(question + 1) };
}

export function hasBody(request: Request): boolean {
  return (lengthOf(request) ?? 0) > 0 || request.headers.has("transfer-encoding");
}

/** The ids of one request. */
export interface RequestName {
  /** For `X-Request-Id`: the client's own id if its form is accepted, else a new one. */
  readonly id: string;
  /** The same id for the log, masked, since a client may have put a key into the wrong header. */
  readonly logId: string;
  /** For error envelopes and the log, always `req_…`: the same id if it has that form and no secret, else a new one. */
  envelopeId(): string;
}

/** A client's id of any other form is neither echoed nor logged. */
const ACCEPTED_ID = /^[A-Za-z0-9._:-]{1,128}$/;

const ENVELOPE_ID = /^req_[A-Za-z0-9_-]+$/;

export function nameRequest(given: string | null, ids: Pick<Ids, "request">): RequestName {
  const isAccepted = given !== null && ACCEPTED_ID.test(given);
  const id = isAccepted ? given : ids.request();
  const logId = isAccepted ? maskText(id, "public") : id;
  // Made on demand, since only errors need a new one, and only once, since envelope and log line must show the same id.
  let envelopeId = logId === id && ENVELOPE_ID.test(id) ? id : null;
  return { id, logId, envelopeId: () => (envelopeId ??= ids.request()) };
}

/**
 * Reads the query of a request by the schema of its route. Throws `invalid_query` with every issue: unknown parameters,
 * repeated ones, values out of range, integers that are not plain decimal digits.
 */
export function readQuery<T>(search: string, check: QueryCheck<T>): T {
  const given = search === "" ? NO_PARAMETERS : Map.groupBy(new URLSearchParams(search), ([name]) => name);
  const repeated: Issue[] = [];
  const values = [...given].map(([name, pairs]) => {
    const [text = "", ...more] = pairs.map(([, one]) => one);
    const kind = check.kindOf(name);
    if (kind === "array") return [name, [text, ...more]];
    if (more.length > 0) repeated.push({ field: name, message: "Is given more than once." });
    return [name, kind === "integer" && DIGITS.test(text) ? Number(text) : text];
  });
  const value: unknown = Object.fromEntries(values);
  if (repeated.length === 0 && check.accepts(value)) return value;
  throw new DomainError("invalid_query", "The query is not valid.", [...repeated, ...check.issues(value)]);
}

const NO_PARAMETERS: ReadonlyMap<string, readonly [string, string][]> = new Map();

const DIGITS = /^\d{1,15}$/;

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
  const holdMost = () => hold(context, bytesMax);
  // Bun never reads beyond Content-Length.
  const read =
    context.chunked === null ? await context.request.bytes() : await context.chunked.read(bytesMax, holdMost);
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
  const text = decode(bytes, "The body");
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
  const decoded = decode(bytes, "The body");
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
  const fields = new URLSearchParams(decode(await readBytes(context, FORM_BYTES_MAX), "The form"));
  const form = new Map(fields);
  if (form.size > FORM_FIELDS_MAX) throw invalid(`The form has more than ${FORM_FIELDS_MAX} fields.`);
  // If a form has two decisions, it is unknown which one was meant.
  if (form.size < fields.size) throw invalid("The form has a field twice. Load the page again, then send its form.");
  return form;
}

/** The query without empty fields, which forms also send. */
export function withoutEmpty(search: string): string {
  return new URLSearchParams([...new URLSearchParams(search)].filter(([, value]) => value !== "")).toString();
}

/** Whether an address is listed in `TRUSTED_PROXIES`. */
export type IsTrustedProxy = (address: string) => boolean;

/** The client for counting requests: its IPv4 address, or its IPv6 /64, in which it can use any address. */
export function clientOf({ client }: Pick<RequestContext, "client">): string {
  return networkOf(client);
}

/**
 * The client's IP address; empty without a socket. Behind a trusted proxy, it is the last address in `X-Forwarded-For` that is
 * not a trusted proxy, since anything before it can be forged. If the header can't be parsed, it is the proxy itself.
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

/** The last entries of the header, in reverse order. */
function lastOf(forwardedFor: string): readonly string[] {
  const entries = forwardedFor.slice(-FORWARDED_CHARS_MAX).split(",");
  // The first one may be cut in the middle.
  if (forwardedFor.length > FORWARDED_CHARS_MAX) entries.shift();
  return entries.slice(-FORWARDED_ADDRESSES_MAX).toReversed();
}

/** An IP address in canonical form, without port, brackets or zone; null for anything else. */
function addressIn(text: string): string | null {
  // The usual case, for sockets and for what proxies write.
  if (isIPv4(text)) return text;
  const trimmed = text.trim();
  const bare = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(trimmed)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(trimmed)?.[1] ?? trimmed;
  return canonicalAddress(bare.split("%", 1)[0] ?? "");
}
