import {
  CONNECT_TIMEOUT_MS,
  KEPT_CONNECTION_IDLE_MS,
  LOCATION_CHARS_MAX,
  RESPONSE_BODY_BYTES_MAX,
} from "../core/limits.ts";
import type { Answered, NotSent, Outcome, Unknown } from "../core/outcome.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import {
  ConnectionProbe,
  Connections,
  type ConnectionState,
  isNoFile,
  NO_FILE,
  poolFor,
  type Deadline,
  type EarlyEnd,
  openDeadline,
} from "./connections.ts";
import { resolveAddresses } from "./resolve.ts";
import {
  type AnswerHead,
  type AnswerMask,
  type OutboundRequest,
  type Sender,
  type SendLimits,
  STOPPED,
  type Stopped,
} from "./sender.ts";
import { urlHost } from "../core/addresses.ts";
import { reachedTarget, type TargetPolicy } from "../config/target-policy.ts";
import { keptHeaders } from "../receipts/response-headers.ts";
import { type ParsedTarget, parseTarget } from "../core/target.ts";
import { jsonIn, scanJson } from "../core/json.ts";
import { tlsFailure } from "../core/tls.ts";

interface SenderOptions {
  /** PEM of the only certificate authority to trust instead of the system's, for a private network or a test. */
  readonly ca?: string | undefined;
  readonly clock?: Pick<Clock, "monotonicMs" | "after">;
  /** False: each call has a connection of its own. */
  readonly keepsConnections?: boolean;
}

/** A sender that keeps connections open. */
interface OpenSender extends Sender {
  /** Closes unused connections, and keeps none open from now on. */
  close(): void;
}

/**
 * Creates a sender under the policy. Each call is checked again, with every resolved address, and goes to the first address
 * that accepts connections. Only a POST or PATCH may use the connection of an earlier call: if such a connection ends, Bun
 * repeats GET, PUT and DELETE on its own.
 */
export function createSender(policy: TargetPolicy, options: SenderOptions = {}): OpenSender {
  const { ca, clock = systemClock, keepsConnections = true } = options;
  const connections = new Connections(clock);
  const probe = new ConnectionProbe(() => clock.monotonicMs());

  const sendOnce = async (
    request: OutboundRequest,
    deadline: Deadline,
    { keepFor = null, mayBegin = () => true, complete }: Pick<SendLimits, "keepFor" | "mayBegin" | "complete">,
  ): Promise<Outcome | Stopped> => {
    if (deadline.endedBy() === "interrupted") return STOPPED;
    const named = parseTarget(request.url);
    if ("refused" in named) return NOT_ALLOWED;
    const target = reachedTarget(policy, named);
    const addresses = await resolveAddresses(policy, target, deadline);
    if ("kind" in addresses) return addresses;
    const routes = addresses.map((address) => ({
      address,
      pool: keepFor === null ? null : poolFor(keepFor, target, address),
    }));
    const isOpen = ({ pool }: (typeof routes)[number]) => connections.hasIdle(pool);
    let isRefusedByAll = true;
    // All were checked just now. An address with an open connection comes first, since it answered a moment ago.
    for (const [at, route] of routes.toSorted((a, b) => Number(isOpen(b)) - Number(isOpen(a))).entries()) {
      const { address, pool } = route;
      // Each address gets a share of the remaining time, so that a silent one leads on to the next even with a short
      // deadline.
      const limitMs = Math.min(CONNECT_TIMEOUT_MS, deadline.leftMs() / (addresses.length - at));
      const limits = { limitMs, signal: deadline.signal };
      const isSilent = !isOpen(route) && (await probe.isSilent(address, target.port, limits));
      // No connection has carried the request yet, so nothing has left.
      const overBefore = unsentAfter(deadline);
      if (overBefore !== null) return overBefore;
      if (isSilent) {
        probe.learn(address, target.port, false);
        isRefusedByAll = false;
        continue;
      }
      const completed = complete === undefined ? null : await complete({ isHttps: target.isHttps, address });
      if (completed !== null && "kind" in completed) return completed;
      if (!(await mayBegin())) return STOPPED;
      // Both may have waited.
      const overAfter = unsentAfter(deadline);
      if (overAfter !== null) return overAfter;
      const connection = connections.take(pool);
      const whole = completed === null ? request : { ...request, headers: completed.headers };
      const init = fetchInit(whole, target, { ca, signal: deadline.signal, isKept: connection.pool !== null });
      // Use the checked address instead of the name: Bun must never resolve anything itself.
      const scheme = target.isHttps ? "https" : "http";
      const url = `${scheme}://${urlHost(address)}:${target.port}${target.rest}`;
      const { outcome, state } = await call(
        () => connection.session.fetch(url, init),
        deadline,
        completed?.mask ?? null,
      );
      connections.release(connection, state);
      probe.learn(address, target.port, outcome.kind === "answered");
      if (!isUnconnected(outcome)) return outcome;
      isRefusedByAll &&= outcome === REFUSED;
    }
    return isRefusedByAll ? REFUSED : UNREACHABLE;
  };

  return {
    async send(request, limits) {
      const deadline = openDeadline(limits);
      const mayKeep = keepsConnections && (request.method === "POST" || request.method === "PATCH");
      try {
        return await sendOnce(request, deadline, mayKeep ? limits : { ...limits, keepFor: null });
      } finally {
        deadline.close();
      }
    },
    close: () => connections.close(),
  };
}

/** How a call ends before anything has left, if its deadline has ended; null: it has not. */
function unsentAfter(deadline: Deadline): NotSent | Stopped | null {
  const endedBy = deadline.endedBy();
  if (endedBy === null) return null;
  return endedBy === "interrupted" ? STOPPED : UNREACHABLE;
}

function fetchInit(
  { method, headers, body }: OutboundRequest,
  { isHttps, host, hostname, literal }: ParsedTarget,
  { ca, signal, isKept }: { readonly ca: string | undefined; readonly signal: AbortSignal; readonly isKept: boolean },
): BunFetchRequestInit {
  const init: BunFetchRequestInit = {
    method,
    headers: [...headers.map(([name, value]) => [name, value]), ["Host", host], ...(isKept ? KEPT_FRAMING : FRAMING)],
    body,
    redirect: "manual",
    // A compression bomb of 405 bytes would become 445 MB.
    decompress: false,
    // Set on every call; otherwise, Bun takes a proxy from the environment.
    proxy: false,
    signal,
  };
  if (isHttps) {
    // The certificate is checked for the name in the URL, although the call connects to an address.
    const serverName = literal === null ? { serverName: hostname } : {};
    init.tls = { rejectUnauthorized: true, ...serverName, ...(ca === undefined ? {} : { ca }) };
  }
  return init;
}

/** How a call ended, and how it left its connection. */
interface Called {
  readonly outcome: Outcome;
  readonly state: ConnectionState;
}

async function call(fetchOnce: () => Promise<Response>, deadline: Deadline, mask: AnswerMask | null): Promise<Called> {
  let response: Response;
  try {
    response = await fetchOnce();
  } catch (error) {
    const outcome = failureOutcome(error, deadline.endedBy());
    const isOurs = deadline.endedBy() !== null || outcome.kind === "not_sent";
    return { outcome, state: isOurs ? "unfit" : "lost" };
  }
  return readAnswer(response, deadline, mask);
}

/** From here on, the outcome is `answered`, whatever happens to the body. Masks before anything is cut. */
async function readAnswer(response: Response, deadline: Deadline, mask: AnswerMask | null): Promise<Called> {
  const { status, headers } = response;
  if (status < 200 || status > 599) {
    await closeBody(response.body);
    return { outcome: NOT_HTTP, state: "lost" };
  }
  const { bytes, truncated, isBroken } = await readBody(response.body);
  const broken = deadline.endedBy() === "timed_out" ? "timed_out" : "closed";
  const ofHeader = async (name: string, charsMax: number) => {
    const value = headers.get(name);
    if (value === null) return null;
    return (mask === null ? value : await mask.maskStart(value, charsMax)).slice(0, charsMax);
  };
  const outcome: Answered = {
    kind: "answered",
    code: status,
    body: mask === null ? responseJson(bytes, truncated) : await maskedJson(bytes, truncated, response, mask),
    headers: await keptHeaders(headers, mask),
    truncated,
    brokenBy: isBroken ? broken : null,
    retryAfter: await ofHeader("retry-after", RETRY_AFTER_CHARS_MAX),
    location: await ofHeader("location", LOCATION_CHARS_MAX),
  };
  return { outcome, state: truncated || saysItCloses(headers) ? "unfit" : "open" };
}

const NOT_ALLOWED: NotSent = { kind: "not_sent", fault: "address_never" };

/** Longer than any date. A number that is longer exceeds every limit, even if it is cut. */
const RETRY_AFTER_CHARS_MAX = 64;

const KEPT_FRAMING: readonly string[][] = [["Accept-Encoding", "identity"]];

/**
 * A client that does not keep connections sends `close` (RFC 9112, 9.3). The target then closes first, which keeps our
 * ports out of TIME_WAIT.
 */
const FRAMING: readonly string[][] = [...KEPT_FRAMING, ["Connection", "close"]];

/** The part of a response body that arrived, without decoding any `Content-Encoding`. */
interface ReadBody {
  /** At most `RESPONSE_BODY_BYTES_MAX`. */
  readonly bytes: Uint8Array;
  readonly truncated: boolean;
  /** The body ended with an error: closed, garbled, or aborted by us. */
  readonly isBroken: boolean;
}

/** Reads up to the limit and closes the connection on the rest: a body of 2 GB costs 3 MB. Never throws. */
async function readBody(body: ReadableStream<Uint8Array> | null): Promise<ReadBody> {
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

/** Closes the connection of a response that is not read further. Never throws. */
async function closeBody(body: Pick<ReadableStream, "cancel"> | null): Promise<void> {
  try {
    await body?.cancel();
  } catch {
    // It was broken already, so there is no connection to close.
  }
}

/** Whether the target closes the connection after this answer, or may before the next call. */
function saysItCloses(headers: Headers): boolean {
  if (headers.get("connection")?.toLowerCase().includes("close") === true) return true;
  const seconds = KEEP_ALIVE_SECONDS.exec(headers.get("keep-alive") ?? "")?.[1];
  return seconds !== undefined && Number(seconds) * 1_000 <= KEPT_CONNECTION_IDLE_MS;
}

const KEEP_ALIVE_SECONDS = /timeout=(\d{1,9})/i;

/**
 * The JSON text of `response_body`: a JSON value exactly as it was written; other text as a string; bytes as base64;
 * null for nothing. A truncated text is never taken for a value: 12 may have been 123.
 */
function responseJson(bytes: Uint8Array, truncated: boolean): string | null {
  if (bytes.byteLength === 0) return null;
  const text = decodeUtf8(bytes, truncated);
  if (text === null) return JSON.stringify({ encoding: "base64", data: Buffer.from(bytes).toString("base64") });
  return !truncated && isJson(bytes, text) ? text : JSON.stringify(text);
}

/** The same, masked. */
async function maskedJson(
  bytes: Uint8Array,
  truncated: boolean,
  head: AnswerHead,
  mask: AnswerMask,
): Promise<string | null> {
  if (bytes.byteLength === 0) return null;
  const text = await mask.maskBody(bytes, truncated, head);
  if (text === null) return JSON.stringify(WITHHELD);
  return responseJson(typeof text === "string" ? Buffer.from(text) : text, truncated);
}

/** Shown instead of a body that can't be searched for credentials. */
const WITHHELD = "withheld: it may contain the credential";

/** Decodes UTF-8; null: it is none. Leaves out an incomplete last character of a truncated text. */
function decodeUtf8(bytes: Uint8Array, truncated: boolean): string | null {
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
  return JSON_START.test(text) && scanJson(bytes, Infinity) !== "too_deep" && jsonIn(text) !== undefined;
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
export function failureOutcome(error: unknown, endedBy: EarlyEnd): NotSent | Unknown {
  if (isNoFile(error)) return NO_FILE;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const known = OUTCOMES.get(code) ?? tlsOutcome(error);
  if (known !== null) return known;
  return endedBy === null ? CLOSED : { kind: "unknown", fault: endedBy };
}

/** Whether the next address may be tried, because there was no connection and so nothing was sent. */
function isUnconnected(outcome: Outcome): boolean {
  return outcome === REFUSED || outcome === UNREACHABLE;
}

/** The outcome of a TLS error, or null. Certificates are checked before the request is written. */
function tlsOutcome(error: unknown): NotSent | Unknown | null {
  const failure = tlsFailure(error);
  if (failure === null) return null;
  if (failure === "handshake") return TLS_HANDSHAKE;
  return { kind: "not_sent", fault: failure === "certificate" ? failure : `certificate_${failure}` };
}

const CLOSED: Unknown = { kind: "unknown", fault: "closed" };

/** The address refused the connection. If not every address did, the fault is `unreachable`. */
export const REFUSED: NotSent = { kind: "not_sent", fault: "refused" };

export const UNREACHABLE: NotSent = { kind: "not_sent", fault: "unreachable" };

/** Unknown, because in TLS 1.3 the target may abort the handshake after it has read the request. */
const TLS_HANDSHAKE: Unknown = { kind: "unknown", fault: "tls_handshake" };

const NOT_HTTP: Unknown = { kind: "unknown", fault: "not_http" };

const HEADERS_TOO_LARGE: Unknown = { kind: "unknown", fault: "headers_too_large" };

/** Bun's own idle timer of five minutes, which fires only under a longer deadline. */
const TIMED_OUT: Unknown = { kind: "unknown", fault: "timed_out" };

const OUTCOMES: ReadonlyMap<string, NotSent | Unknown> = new Map<string, NotSent | Unknown>([
  ["ECONNREFUSED", REFUSED],
  ["ENETUNREACH", UNREACHABLE],
  ["EHOSTUNREACH", UNREACHABLE],
  // A local firewall, or no free ports on this machine: the connection was never begun.
  ["EACCES", UNREACHABLE],
  ["EPERM", UNREACHABLE],
  ["EADDRNOTAVAIL", UNREACHABLE],
  ["Malformed_HTTP_Response", NOT_HTTP],
  ["InvalidContentLength", NOT_HTTP],
  ["InvalidHTTPResponse", NOT_HTTP],
  ["UnrequestedUpgrade", NOT_HTTP],
  ["ResponseHeadersTooLarge", HEADERS_TOO_LARGE],
  ["23", TIMED_OUT],
]);
