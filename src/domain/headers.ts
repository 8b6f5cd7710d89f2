import type { Issue } from "./errors.ts";
import { HEADER_NAME_CHARS_MAX, HEADER_VALUE_BYTES_MAX, HEADERS_BYTES_MAX, HEADERS_MAX } from "./limits.ts";

const NAME = new RegExp(`^[A-Za-z0-9][!#$%&'*+.^_\`|~0-9A-Za-z-]{0,${HEADER_NAME_CHARS_MAX - 1}}$`);
/** Printable ASCII, space and tab (RFC 9110, 5.5, without obs-text). */
const VALUE = /^[\t\x20-\x7e]*$/;
const JSON_TYPE = /^application\/(json|[a-z0-9!#$&^_.+-]+\+json)\s*(;.*)?$/i;

/** What frames the message, belongs to the way there, or makes the target do something else than was approved. */
const DENIED = new Set([
  "host",
  "content-length",
  "content-encoding",
  "transfer-encoding",
  "connection",
  "keep-alive",
  "te",
  "trailer",
  "upgrade",
  "expect",
  "http2-settings",
  "accept-encoding",
  "via",
  "forwarded",
  "x-real-ip",
  "cdn-loop",
  "date",
  "x-http-method",
  "x-http-method-override",
  "x-method-override",
  "x-original-url",
  "x-rewrite-url",
]);
const DENIED_PREFIXES = ["proxy-", "x-forwarded-", "sec-", "webhook-", "x-outgate-"];

/** Everything that is wrong with the headers that a caller wants sent (hostile 2); empty when they may go. */
export function headerIssues(headers: Readonly<Record<string, string>>, hasBody: boolean): readonly Issue[] {
  const names = Object.keys(headers);
  const issues = names.flatMap((name) => {
    const message = problemOf(name, headers[name] ?? "", hasBody);
    return message === null ? [] : [{ field: `headers.${name}`, message }];
  });
  return [...issues, ...repeated(names), ...oversize(headers, names)];
}

function problemOf(name: string, value: string, hasBody: boolean): string | null {
  if (!NAME.test(name)) return "Is not a header name: use letters, digits and hyphens.";
  // Servers read `X_Real_IP` as `X-Real-IP`; so does the list.
  const plain = name.toLowerCase().replaceAll("_", "-");
  if (DENIED.has(plain) || DENIED_PREFIXES.some((prefix) => plain.startsWith(prefix))) {
    return "May not be set by a caller: Outgate or the connection sets it.";
  }
  if (!VALUE.test(value)) return "May hold only printable ASCII, spaces and tabs.";
  if (value.length > HEADER_VALUE_BYTES_MAX) return `Is longer than ${HEADER_VALUE_BYTES_MAX} bytes.`;
  if (plain === "content-type" && hasBody && !JSON_TYPE.test(value)) {
    return "The body is sent as JSON: use application/json or application/*+json.";
  }
  return null;
}

function repeated(names: readonly string[]): readonly Issue[] {
  const seen = new Set<string>();
  return names
    .filter((name) => seen.size === seen.add(name.toLowerCase()).size)
    .map((name) => ({ field: `headers.${name}`, message: "Is there twice: header names are equal without case." }));
}

function oversize(headers: Readonly<Record<string, string>>, names: readonly string[]): readonly Issue[] {
  const issues: Issue[] = [];
  if (names.length > HEADERS_MAX) issues.push({ field: "headers", message: `Has more than ${HEADERS_MAX} headers.` });
  const bytes = names.reduce((sum, name) => sum + name.length + (headers[name]?.length ?? 0), 0);
  if (bytes > HEADERS_BYTES_MAX) {
    issues.push({ field: "headers", message: `Is larger than ${HEADERS_BYTES_MAX} bytes in all.` });
  }
  return issues;
}
