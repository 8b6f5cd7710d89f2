import { scanJson } from "../core/json.ts";
import { KEPT_CONNECTION_IDLE_MS, RESPONSE_BODY_BYTES_MAX } from "../core/limits.ts";
import type { NotSent, Outcome, Unknown } from "../core/outcome.ts";
import { tlsFailureOf } from "../core/tls.ts";
import type { AnswerMask, EarlyEnd } from "./deadline.ts";

/** What arrived of a response body, without decoding any `Content-Encoding`. */
interface ReadBody {
  /** At most `RESPONSE_BODY_BYTES_MAX`. */
  readonly bytes: Uint8Array;
  readonly truncated: boolean;
  /** The body ended with an error: closed, garbled, or aborted by us. */
  readonly isBroken: boolean;
}

/** Reads up to the limit and closes the connection on the rest: a body of 2 GB costs 3 MB. Never throws. */
export async function readBody(body: ReadableStream<Uint8Array> | null): Promise<ReadBody> {
  if (body === null) return EMPTY;
  const reader = body.getReader();
  let buffer = EMPTY.bytes;
  let length = 0;
  let isBroken = false;
  try {
    while (length <= RESPONSE_BODY_BYTES_MAX) {
      const { done, value } = await reader.read();
      if (done) break;
      buffer = appended(buffer, length, value);
      length += value.byteLength;
    }
  } catch {
    isBroken = true;
  }
  const isTooLong = length > RESPONSE_BODY_BYTES_MAX;
  if (isTooLong) await closeBody(reader);
  const bytes = buffer.subarray(0, Math.min(length, RESPONSE_BODY_BYTES_MAX));
  return { bytes, truncated: isTooLong || isBroken, isBroken };
}

/** Closes the connection of a response that is not read on. Never throws. */
export async function closeBody(body: Pick<ReadableStream, "cancel"> | null): Promise<void> {
  try {
    await body?.cancel();
  } catch {
    // It was broken already: there is no connection to close.
  }
}

/** Whether the target closes the connection after this answer, or might before the next call. */
export function saysItCloses(headers: Headers): boolean {
  if (headers.get("connection")?.toLowerCase().includes("close") === true) return true;
  const seconds = KEEP_ALIVE_SECONDS.exec(headers.get("keep-alive") ?? "")?.[1];
  return seconds !== undefined && Number(seconds) * 1_000 <= KEPT_CONNECTION_IDLE_MS;
}

const KEEP_ALIVE_SECONDS = /timeout=(\d{1,9})/i;

/**
 * The JSON text of `response_body`: a JSON value exactly as it was written; other text as a string; bytes as base64;
 * null for nothing. A truncated text is never taken for a value: 12 may have been 123.
 */
export function responseJson(bytes: Uint8Array, truncated: boolean): string | null {
  if (bytes.byteLength === 0) return null;
  const text = textOf(bytes, truncated);
  if (text === null) return JSON.stringify({ encoding: "base64", data: Buffer.from(bytes).toString("base64") });
  return !truncated && isJson(bytes, text) ? text : JSON.stringify(text);
}

/** The same without what may not be shown. */
export async function maskedJson(
  bytes: Uint8Array,
  truncated: boolean,
  headers: Pick<Headers, "get" | "has">,
  mask: AnswerMask,
): Promise<string | null> {
  if (bytes.byteLength === 0) return null;
  const text = await mask.maskBody(bytes, truncated, headers);
  return text === null ? JSON.stringify(WITHHELD) : responseJson(Buffer.from(text), truncated);
}

/** In place of a body that can't be searched for a credential. */
const WITHHELD = "withheld: it may contain the credential";

/** Null when it is not UTF-8. An incomplete last character of a truncated text is left out. */
function textOf(bytes: Uint8Array, truncated: boolean): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: truncated });
  } catch {
    return null;
  }
}

/** First character of any JSON text: cheaper than a parser that throws. */
const JSON_START = /^\s*[{["\-0-9tfn]/;

/** Depth is checked first: 100,000 levels would block the event loop in the parser. */
function isJson(bytes: Uint8Array, text: string): boolean {
  if (!JSON_START.test(text) || scanJson(bytes, Infinity) === "too_deep") return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * A list of small chunks would cost a hundred times their bytes, so there is one buffer, doubled when full. A single
 * chunk, the usual case, is never copied.
 */
function appended(buffer: Uint8Array, length: number, chunk: Uint8Array): Uint8Array {
  if (length === 0) return chunk;
  const needed = Math.min(length + chunk.byteLength, RESPONSE_BODY_BYTES_MAX);
  let target = buffer;
  if (needed > buffer.byteLength) {
    target = new Uint8Array(Math.min(2 * needed, RESPONSE_BODY_BYTES_MAX));
    target.set(buffer.subarray(0, length));
  }
  target.set(chunk.subarray(0, needed - length), length);
  return target;
}

const EMPTY: ReadBody = { bytes: new Uint8Array(0), truncated: false, isBroken: false };

/**
 * What a failed call means, from the error's code alone: its message contains the address and query string and is never
 * shown. Unless it is certain that nothing left, the outcome is `unknown`.
 */
export function outcomeOf(error: unknown, endedBy: EarlyEnd): NotSent | Unknown {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const known = OUTCOMES.get(code) ?? tlsOutcome(error);
  if (known !== null) return known;
  return endedBy === null ? CLOSED : { kind: "unknown", fault: endedBy };
}

/** Whether the next address may be tried: no connection came about, so nothing was sent. */
export function isUnconnected(outcome: Outcome): boolean {
  return outcome === REFUSED || outcome === UNREACHABLE;
}

/** Certificates are checked before the request is written. */
function tlsOutcome(error: unknown): NotSent | Unknown | null {
  const failure = tlsFailureOf(error);
  if (failure === null) return null;
  if (failure === "handshake") return TLS_HANDSHAKE;
  return { kind: "not_sent", fault: failure === "certificate" ? failure : `certificate_${failure}` };
}

const CLOSED: Unknown = { kind: "unknown", fault: "closed" };

/** No connection came about. `unreachable` unless every address refused. */
export const REFUSED: NotSent = { kind: "not_sent", fault: "refused" };

export const UNREACHABLE: NotSent = { kind: "not_sent", fault: "unreachable" };

/** In TLS 1.3 the target may still abort the handshake after it has read the request. */
const TLS_HANDSHAKE: Unknown = { kind: "unknown", fault: "tls_handshake" };

export const NOT_HTTP: Unknown = { kind: "unknown", fault: "not_http" };

const HEADERS_TOO_LARGE: Unknown = { kind: "unknown", fault: "headers_too_large" };

/** Bun's own idle timer, five minutes: it fires only under a longer deadline. */
const TIMED_OUT: Unknown = { kind: "unknown", fault: "timed_out" };

const OUTCOMES: ReadonlyMap<string, NotSent | Unknown> = new Map<string, NotSent | Unknown>([
  ["ECONNREFUSED", REFUSED],
  ["ENETUNREACH", UNREACHABLE],
  ["EHOSTUNREACH", UNREACHABLE],
  // A local firewall, or this machine out of ports or files: the connection was never begun.
  ["EACCES", UNREACHABLE],
  ["EPERM", UNREACHABLE],
  ["EADDRNOTAVAIL", UNREACHABLE],
  ["EMFILE", UNREACHABLE],
  ["ENFILE", UNREACHABLE],
  ["Malformed_HTTP_Response", NOT_HTTP],
  ["InvalidContentLength", NOT_HTTP],
  ["InvalidHTTPResponse", NOT_HTTP],
  ["UnrequestedUpgrade", NOT_HTTP],
  ["ResponseHeadersTooLarge", HEADERS_TOO_LARGE],
  ["23", TIMED_OUT],
]);
