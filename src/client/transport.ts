import ky from "ky";
import { describeTlsFailure, tlsFailure } from "../core/tls.ts";
import type { ErrorEnvelope } from "./api.ts";
import type { ClientSettings, OutgateErrorCode, OutgateErrorFacts } from "./types.ts";

export interface HttpCall {
  readonly route: `${"GET" | "POST" | "PUT" | "PATCH" | "DELETE"} /${string}`;
  readonly query?: Readonly<Record<string, string | number | readonly string[] | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
  /** A member that every answer has, to tell it from other JSON; null if the answer is empty; absent to allow anything. */
  readonly member?: string | null | undefined;
  /** The content type of a stream. */
  readonly type?: RegExp;
  /** Whether repeating it has no further effect. */
  readonly isRepeatable: boolean;
  /** How long the service may wait before it responds, on top of the timeout. */
  readonly waitSeconds?: number;
  readonly signal?: AbortSignal | undefined;
}

/** Makes calls. Throws `OutgateError`, the reason of the caller's own signal, or a `TypeError` for what can't be sent. */
export interface Transport {
  /** The body of the response: JSON, text, or undefined if it is empty. */
  call(call: HttpCall): Promise<unknown>;
  /** The body of a stream in pieces as they arrive. Tries once, without a timeout. */
  stream(call: HttpCall): AsyncGenerator<Uint8Array>;
}

const TIMEOUT_MS = 30_000;

const TRIES = 3;

const RETRY_BASE_MS = 250;

const RETRY_AFTER_MS_MAX = 10_000;

/** Turns ky's own retries and timeout off, since its timeout doesn't cover the response body. */
export function createTransport(settings: ClientSettings): Transport {
  const { timeoutMs = TIMEOUT_MS, tries = TRIES, retryBaseMs = RETRY_BASE_MS, parse = JSON.parse } = settings;
  // For example from an unset variable. Would fail as if the service were down.
  if (!URL.canParse(settings.url) || !/^https?:/i.test(settings.url)) {
    throw new TypeError(`url must be the address of Outgate, such as http://127.0.0.1:3000, not ${settings.url}.`);
  }

  const attempt = async (call: HttpCall, send: Send): Promise<unknown> => {
    const limit = AbortSignal.timeout(timeoutMs + (call.waitSeconds ?? 0) * 1_000);
    try {
      const response = await send(limit);
      const value = read(response, await response.text(), parse);
      if (!isAnswer(value, call.member)) throw toError(response, null);
      return value;
    } catch (error) {
      throw errorFor(error, settings.url, call.signal);
    }
  };

  return {
    async call(call) {
      const send = prepare(settings, call);
      for (let made = 1; ; made += 1) {
        try {
          return await attempt(call, send);
        } catch (error) {
          if (made >= tries || !isWorthAnotherTry(error, call)) throw error;
          const retryAfterMs = error instanceof OutgateError ? (error.retryAfterMs ?? 0) : 0;
          const backoff = retryDelayMs(made - 1, { baseMs: retryBaseMs, capMs: RETRY_AFTER_MS_MAX });
          await pause(Math.min(RETRY_AFTER_MS_MAX, Math.max(retryAfterMs, backoff)), call.signal);
          call.signal?.throwIfAborted();
        }
      }
    },
    async *stream(call) {
      const send = prepare(settings, call);
      try {
        const response = await send();
        if (!response.ok) read(response, await response.text(), parse);
        if (call.type?.test(response.headers.get("content-type") ?? "") === false) {
          await response.body?.cancel();
          throw toError(response, null);
        }
        yield* readPieces(response, call.signal);
      } catch (error) {
        throw errorFor(error, settings.url, call.signal);
      }
    },
  };
}

async function* readPieces({ body }: Response, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
  const stream: ReadableStream<Uint8Array> | null = body;
  const reader = stream?.getReader();
  if (reader === undefined) return;
  try {
    for (;;) {
      // On Node 20, reading an aborted response that has fully arrived never ends.
      signal?.throwIfAborted();
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

type Send = (limit?: AbortSignal) => Promise<Response>;

/**
 * Throws a `TypeError` for values that no request can hold, such as a `BigInt` in a body, a line break in a key, or an empty list: a
 * query without it would match everything.
 */
function prepare({ url, apiKey, stringify = JSON.stringify }: ClientSettings, call: HttpCall): Send {
  const { route, query = {}, headers, body, signal } = call;
  const [method = "", path = ""] = route.split(" ");
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value) && value.length === 0)
      throw new TypeError(`${name} is an empty list, which no query can hold.`);
    for (const text of [value ?? []].flat()) search.append(name, String(text));
  }
  const target = search.size === 0 ? path : `${path}?${search.toString()}`;
  const options = {
    method,
    headers: new Headers({
      ...(typeof apiKey === "string" && { authorization: `Bearer ${apiKey}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    }),
    ...(body === undefined ? {} : { body: stringify(body) }),
    retry: 0,
    throwHttpErrors: false,
    redirect: "manual",
    timeout: false,
  } as const;
  return (limit) => {
    const signals = [limit, signal].filter((one) => one !== undefined);
    return ky(`${url.replace(/(?<!\/)\/+$/, "")}${target}`, { ...options, signal: AbortSignal.any(signals) });
  };
}

/** The body of a successful response; throws for an error, or for a response that isn't Outgate's. */
function read(response: Response, text: string, parse: (text: string) => unknown): unknown {
  const type = response.headers.get("content-type") ?? "";
  const isJson = type.startsWith("application/json");
  if (response.ok && !isJson) {
    if (text === "" || type.startsWith("text/plain")) return text === "" ? undefined : text;
    throw toError(response, null);
  }
  const value = isJson ? parseValue(text, parse) : undefined;
  if (!response.ok || value === undefined) throw toError(response, value);
  return value;
}

function isAnswer(value: unknown, member: HttpCall["member"]): boolean {
  if (member === null) return value === undefined;
  return member === undefined || (typeof value === "object" && value !== null && Object.hasOwn(value, member));
}

/** The value of a JSON text; undefined for other texts. */
function parseValue(text: string, parse: (text: string) => unknown): unknown {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

function errorFor(error: unknown, url: string, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted === true) return signal.reason;
  if (error instanceof OutgateError) return error;
  if (error instanceof Error && error.name === "TimeoutError") {
    return new OutgateError("timed_out", `Outgate at ${url} did not answer in time.`, { cause: error });
  }
  const failure = tlsFailure(error);
  if (failure !== null) return new OutgateError("tls_failed", describeTlsFailure(failure, url), { cause: error });
  return new OutgateError("unreachable", `Outgate can't be reached at ${url}.`, { cause: error });
}

/** Whether to try again. A rate-limited call had no effect, so it can always be repeated; after other failures only repeatable ones. */
function isWorthAnotherTry(error: unknown, { isRepeatable }: HttpCall): boolean {
  return isTemporary(error) && (isRepeatable || error.code === "rate_limited");
}

/** Whether the service is busy or away for now, or a proxy says so. */
export function isTemporary(error: unknown): error is OutgateError {
  if (!(error instanceof OutgateError)) return false;
  const { code, status } = error;
  return (
    ["rate_limited", "unreachable", "timed_out", "unavailable"].includes(code) || [502, 503, 504].includes(status ?? 0)
  );
}

/** Keeps clients that failed together from retrying together. */
const JITTER = 0.25;

/** Pause in milliseconds after `before` earlier failures: doubles each time up to `capMs`, and varies by a quarter. */
export function retryDelayMs(before: number, { baseMs, capMs }: Readonly<Record<"baseMs" | "capMs", number>>): number {
  return Math.min(capMs, baseMs * 2 ** before) * (1 + JITTER * (2 * Math.random() - 1));
}

type ErrorBody = ErrorEnvelope["error"];

/** Any failure of a call, except an abort by the caller. The message is for people. */
export class OutgateError extends Error implements OutgateErrorFacts {
  override readonly name = "OutgateError";
  readonly code: OutgateErrorFacts["code"];
  readonly status: OutgateErrorFacts["status"];
  readonly requestId: OutgateErrorFacts["requestId"];
  readonly details: OutgateErrorFacts["details"];
  readonly detailsLeftOut: OutgateErrorFacts["detailsLeftOut"];
  readonly retryAfterMs: OutgateErrorFacts["retryAfterMs"];

  constructor(
    code: OutgateErrorCode,
    message: string,
    facts: Partial<OutgateErrorFacts> & { readonly cause?: unknown } = {},
  ) {
    super(message, { cause: facts.cause });
    this.code = code;
    this.status = facts.status ?? null;
    this.requestId = facts.requestId ?? null;
    this.details = facts.details ?? [];
    this.detailsLeftOut = facts.detailsLeftOut ?? 0;
    this.retryAfterMs = facts.retryAfterMs ?? null;
  }
}

/** The error in a response; `value` is its parsed body. */
function toError(response: Response, value: unknown): OutgateError {
  const { status, headers } = response;
  const parts = {
    status,
    requestId: headers.get("x-request-id"),
    retryAfterMs: parseRetryAfter(headers.get("retry-after")),
  };
  const body = toErrorBody(value);
  if (body !== null) {
    return new OutgateError(body.code, body.message, {
      ...parts,
      requestId: body.request_id,
      details: body.details ?? [],
      detailsLeftOut: body.details_left_out ?? 0,
    });
  }
  const type = headers.get("content-type") ?? "no content type";
  return new OutgateError("not_outgate", `This is not a response of Outgate: status ${status}, ${type}.`, parts);
}

/** `Retry-After` in milliseconds; null for a date, which Outgate never sends. */
function parseRetryAfter(text: string | null): number | null {
  return text !== null && /^\d{1,6}$/.test(text) ? Number(text) * 1_000 : null;
}

function toErrorBody(value: unknown): ErrorBody | null {
  const error = typeof value === "object" && value !== null && "error" in value ? value.error : null;
  if (!hasTexts(error, "code", "message")) return null;
  const { details = [] } = error;
  // Other services have errors with these names, too.
  if (!Array.isArray(details) || !details.every((issue) => hasTexts(issue, "field", "message"))) return null;
  // Safe: a body of this form is the API's error envelope.
  return error as ErrorBody;
}

function hasTexts(value: unknown, ...names: readonly string[]): value is { readonly details?: unknown } {
  if (typeof value !== "object" || value === null) return false;
  const members = new Map<string, unknown>(Object.entries(value));
  return names.every((name) => typeof members.get(name) === "string");
}

/** Resolves after so many milliseconds, or as soon as the signal is aborted. Browsers have no `node:timers/promises`. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
  });
}
