import { setTimeout as pause } from "node:timers/promises";
import ky from "ky";
import { describeTlsFailure, tlsFailureOf } from "../domain/tls.ts";
import { backoffMs } from "./backoff.ts";
import { errorOf, OutgateError } from "./error.ts";

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
