import {
  RESPONSE_HEADER_CHARS_MAX as CHARS_MAX,
  RESPONSE_HEADERS_BYTES_MAX,
  RESPONSE_HEADERS_MAX,
} from "../core/limits.ts";
import { MASK } from "./mask-rules.ts";
import { jsonIn } from "../core/json.ts";

const RETRY_AFTER = "retry-after";

/** The end of a value that was longer. */
export const CUT_SIGN = "…";

export type ResponseHeader = readonly [name: string, value: string];

/**
 * The headers of a response as a JSON text of pairs, bounded in number and bytes; null: there are none. Values of headers that
 * are not listed here are never stored, since they may be cookies or credentials. `mask` hides the secret of a credential;
 * null: the call has none.
 */
export async function keptHeaders(
  headers: Iterable<ResponseHeader>,
  mask: { maskStart(text: string, charsMax: number): Promise<string> } | null,
): Promise<string | null> {
  const kept: ResponseHeader[] = [];
  let bytes = 0;
  const all = [...headers];
  // Retry-After comes first, so that it is always kept: the target must not be called before that time.
  const [first, others] = [all.filter(([name]) => name === RETRY_AFTER), all.filter(([name]) => name !== RETRY_AFTER)];
  for (const [name, value] of [...first, ...others]) {
    if (kept.length >= RESPONSE_HEADERS_MAX) break;
    const isKept = KEPT.has(name) || KEPT_FAMILIES.some((start) => name.startsWith(start));
    // Awaited only with a mask: most calls have no credential.
    const [shownName, shownValue] =
      mask === null ? [name, value] : [await mask.maskStart(name, CHARS_MAX), await mask.maskStart(value, CHARS_MAX)];
    const shortened = shownValue.length <= CHARS_MAX ? shownValue : `${shownValue.slice(0, CHARS_MAX)}${CUT_SIGN}`;
    const pair = [shownName, isKept ? shortened : MASK] as const;
    bytes += Buffer.byteLength(pair[0]) + Buffer.byteLength(pair[1]);
    if (bytes > RESPONSE_HEADERS_BYTES_MAX) break;
    if (name.length <= CHARS_MAX) kept.push(pair);
  }
  return kept.length === 0 ? null : JSON.stringify(kept);
}

/** Whether a text is one that `keptHeaders` may have written. */
export function areHeaders(text: string | null): boolean {
  const value = text === null ? [] : jsonIn(text);
  const isHeader = (pair: unknown) =>
    Array.isArray(pair) && pair.length === 2 && pair.every((part) => typeof part === "string");
  return Array.isArray(value) && value.every(isHeader);
}

/** Reads stored headers. */
export function readHeaders(text: string | null): readonly ResponseHeader[] {
  // Safe: `keptHeaders` wrote it.
  return text === null ? [] : (JSON.parse(text) as readonly ResponseHeader[]);
}

/** The `Retry-After` in stored headers, or null. */
export function keptRetryAfter(text: string | null): string | null {
  return readHeaders(text).find(([name]) => name === RETRY_AFTER)?.[1] ?? null;
}

/** In lower case, as the runtime has them. An allow list, since a list of secret headers would never be complete. */
const KEPT: ReadonlySet<string> = new Set(
  `accept-ranges age allow cache-control connection content-disposition content-encoding content-language content-length
  content-range content-type date deprecation etag expires idempotency-key idempotent-replayed keep-alive last-modified location
  request-id ${RETRY_AFTER} server server-timing strict-transport-security sunset traceparent transfer-encoding vary via warning
  x-amz-request-id x-amzn-errortype x-amzn-requestid x-amzn-trace-id x-cache x-correlation-id x-github-request-id x-ms-request-id
  x-powered-by x-request-id x-runtime x-should-retry x-trace-id cf-cache-status cf-ray stripe-version stripe-should-retry`.split(
    /\s+/,
  ),
);

const KEPT_FAMILIES = ["ratelimit", "x-ratelimit-", "x-rate-limit-"] as const;
