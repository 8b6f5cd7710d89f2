import { setTimeout as pause } from "node:timers/promises";
import ky from "ky";
import { describeTlsFailure, tlsFailureOf } from "../outbound/tls.ts";
import type { ErrorEnvelope } from "../api/errors.ts";
import { readFile } from "node:fs/promises";

export interface ClientSettings {
  /** Where the service is, such as `http://127.0.0.1:3000`. */
  readonly url: string;
  /** Null: for what needs none. */
  readonly apiKey: string | null;
  /** For one try of a call, its body too; what it waits for comes on top. 30 s unless it is said. */
  readonly timeoutMs?: number;
  /** How often a call that is safe to repeat is made before it fails; 3 unless it is said. */
  readonly tries?: number;
  /** The pause before the second try; it doubles, and `Retry-After` goes before it. 250 ms unless it is said. */
  readonly retryBaseMs?: number;
  /** Reads the JSON of answers, for who needs every number as it was written. */
  readonly parse?: (text: string) => unknown;
}

/** One request. */
export interface Call {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | readonly string[] | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
  /** Whether a second one does no more than the first. */
  readonly isRepeatable: boolean;
  /** How long the service may take before it answers, beside what it takes anyway. */
  readonly waitSeconds?: number;
  readonly signal?: AbortSignal | undefined;
}

/** Makes calls. Throws `OutgateError`, or the reason of the caller's own signal. */
export interface Transport {
  /** The body of the answer: JSON, text, or undefined where there is none. */
  call(call: Call): Promise<unknown>;
  /** The answer itself as soon as its head is there; one try without an end. */
  open(call: Call): Promise<Response>;
}

const TIMEOUT_MS = 30_000;

const TRIES = 3;

const RETRY_BASE_MS = 250;

const RETRY_AFTER_MS_MAX = 10_000;

/** All that the client knows of HTTP. ky's own retries and time-outs are off: its time-out ends at the head of an answer. */
export function createTransport(settings: ClientSettings): Transport {
  const { timeoutMs = TIMEOUT_MS, tries = TRIES, retryBaseMs = RETRY_BASE_MS, parse = JSON.parse } = settings;

  const attempt = async (call: Call): Promise<unknown> => {
    const limit = AbortSignal.timeout(timeoutMs + (call.waitSeconds ?? 0) * 1_000);
    try {
      const response = await request(settings, call, limit);
      return read(response, await response.text(), parse);
    } catch (error) {
      throw errorFor(error, settings.url, call.signal);
    }
  };

  return {
    async call(call) {
      for (let made = 1; ; made += 1) {
        try {
          return await attempt(call);
        } catch (error) {
          if (made >= tries || !isWorthAnotherTry(error, call)) throw error;
          const backoff = backoffMs(made - 1, { baseMs: retryBaseMs, capMs: RETRY_AFTER_MS_MAX });
          await rest(pauseMs(error, backoff), call.signal);
        }
      }
    },
    async open(call) {
      try {
        const response = await request(settings, call);
        if (!response.ok) read(response, await response.text(), parse);
        return response;
      } catch (error) {
        throw errorFor(error, settings.url, call.signal);
      }
    },
  };
}

function request({ url, apiKey }: ClientSettings, call: Call, limit?: AbortSignal): Promise<Response> {
  const { method, path, query = {}, headers, body, signal } = call;
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const text of [value ?? []].flat()) search.append(name, String(text));
  }
  const signals = [limit, signal].filter((one) => one !== undefined);
  const asked = search.size === 0 ? path : `${path}?${search.toString()}`;
  return ky(`${url.replace(/(?<!\/)\/+$/, "")}${asked}`, {
    method,
    headers: {
      ...(apiKey === null ? {} : { authorization: `Bearer ${apiKey}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.any(signals),
    retry: 0,
    throwHttpErrors: false,
    redirect: "manual",
    timeout: false,
  });
}

/** The body of an answer that is one of ours; anything else throws. */
function read(response: Response, text: string, parse: (text: string) => unknown): unknown {
  const type = response.headers.get("content-type") ?? "";
  const isJson = type.startsWith("application/json");
  if (response.ok && !isJson) {
    if (text === "" || type.startsWith("text/plain")) return text === "" ? undefined : text;
    throw errorOf(response, null);
  }
  const value = isJson ? valueOf(text, parse) : undefined;
  if (!response.ok || value === undefined) throw errorOf(response, value);
  return value;
}

/** Undefined for what is no JSON, whatever it says of itself. */
function valueOf(text: string, parse: (text: string) => unknown): unknown {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}

/** Any failure in our words. The caller's own abort stays what it is. */
function errorFor(error: unknown, url: string, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted === true) return signal.reason;
  if (error instanceof OutgateError) return error;
  if (error instanceof Error && error.name === "TimeoutError") {
    return new OutgateError("timed_out", `Outgate at ${url} did not answer in time.`, { cause: error });
  }
  const failure = tlsFailureOf(error);
  if (failure !== null) return new OutgateError("tls_failed", describeTlsFailure(failure, url), { cause: error });
  return new OutgateError("unreachable", `Outgate can't be reached at ${url}.`, { cause: error });
}

/** A call that was refused for its rate was not carried out; of the others only the repeatable ones may be made again. */
function isWorthAnotherTry(error: unknown, { isRepeatable }: Call): boolean {
  if (!(error instanceof OutgateError)) return false;
  if (error.code === "rate_limited") return true;
  const isPassing = ["unreachable", "timed_out", "unavailable"].includes(error.code);
  return isRepeatable && (isPassing || [502, 503, 504].includes(error.status ?? 0));
}

function pauseMs(error: unknown, backoff: number): number {
  const toldMs = error instanceof OutgateError ? error.retryAfterMs : null;
  return Math.min(RETRY_AFTER_MS_MAX, Math.max(toldMs ?? 0, backoff));
}

/** Throws the reason of the signal as soon as it is aborted. */
async function rest(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await pause(ms, undefined, signal === undefined ? {} : { signal }).catch(() => signal?.throwIfAborted());
}

interface Backoff {
  readonly baseMs: number;
  readonly capMs: number;
}

/** By how much two clients that failed together may drift apart. */
const JITTER = 0.25;

/** Milliseconds to rest after so many tries in vain before this one; it doubles each time, and varies by a quarter. */
export function backoffMs(before: number, { baseMs, capMs }: Backoff, chance = Math.random()): number {
  return Math.min(capMs, baseMs * 2 ** before) * (1 + JITTER * (2 * chance - 1));
}

type Told = ErrorEnvelope["error"];

/**
 * What the service said, or why nothing was heard of it: `unreachable`, `tls_failed`, `timed_out`, or `not_outgate` where
 * something else answers at its address.
 */
export type OutgateErrorCode = Told["code"] | "unreachable" | "tls_failed" | "timed_out" | "not_outgate";

interface Parts {
  readonly retryAfterMs?: number | null;
  readonly status?: number;
  readonly requestId?: string | null;
  readonly details?: Told["details"];
  readonly cause?: unknown;
}

/** Every way in which a call can fail, but for the caller's own abort. The message is for people. */
export class OutgateError extends Error {
  override readonly name = "OutgateError";
  readonly code: OutgateErrorCode;
  /** HTTP status; null: no answer came. */
  readonly status: number | null;
  /** Finds the request in the service's log. */
  readonly requestId: string | null;
  /** Everything that was wrong with the request, field by field. */
  readonly details: NonNullable<Told["details"]>;

  /** When the service said to come back. */
  readonly retryAfterMs: number | null;

  constructor(code: OutgateErrorCode, message: string, parts: Parts = {}) {
    const { status, requestId, details, retryAfterMs, cause } = parts;
    super(message, { cause });
    this.retryAfterMs = retryAfterMs ?? null;
    this.code = code;
    this.status = status ?? null;
    this.requestId = requestId ?? null;
    this.details = details ?? [];
  }
}

/** The error that an answer tells of; `value` is its parsed body. */
function errorOf(response: Response, value: unknown): OutgateError {
  const { status, headers } = response;
  const parts = { status, requestId: headers.get("x-request-id"), retryAfterMs: secondsOf(headers.get("retry-after")) };
  const told = envelopeOf(value);
  if (told !== null) {
    return new OutgateError(told.code, told.message, { ...parts, requestId: told.request_id, details: told.details });
  }
  const type = headers.get("content-type") ?? "no content type";
  return new OutgateError("not_outgate", `The answer is not one of Outgate: status ${status}, ${type}.`, parts);
}

/** In milliseconds; a date, which Outgate never sends, is none. */
function secondsOf(text: string | null): number | null {
  return text !== null && /^\d{1,6}$/.test(text) ? Number(text) * 1_000 : null;
}

function envelopeOf(value: unknown): Told | null {
  const error = typeof value === "object" && value !== null && "error" in value ? value.error : null;
  if (typeof error !== "object" || error === null || !("code" in error) || !("message" in error)) return null;
  // Safe: a body of this form is the service's envelope, which its contract fixes.
  return error as Told;
}

type Env = Readonly<Record<string, string | undefined>>;

/**
 * The API key that `OUTGATE_API_KEY` holds, or the file that `OUTGATE_API_KEY_FILE` names; null: neither is set. Throws a
 * sentence where the file can't be read or holds no key.
 */
export async function apiKeyOf({ OUTGATE_API_KEY: key = "", OUTGATE_API_KEY_FILE: path = "" }: Env) {
  if (key !== "" || path === "") return key === "" ? null : key;
  const text = await readFile(path, "utf8").catch((cause: unknown) => {
    throw new Error(`The file ${path}, which OUTGATE_API_KEY_FILE names, can't be read.`, { cause });
  });
  return apiKeyIn(text, `The file ${path}`);
}

/** Alone, or in the header that `curl -H @file` sends: one file serves both. */
const KEY = /^(?:authorization:[ \t]*)?(?:bearer[ \t]+)?([!-~]{1,512})$/i;

/** The API key that a file holds; `where` begins the sentence that says that it holds none. */
export function apiKeyIn(text: string, where: string): string {
  const [, key] = KEY.exec(text.trim()) ?? [];
  if (key === undefined) throw new Error(`${where} has to hold one API key and nothing else.`);
  return key;
}
