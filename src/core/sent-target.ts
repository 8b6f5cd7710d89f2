import { decodeUnreserved, normalTarget, parseTarget } from "./target.ts";

/** Where a call goes as it is sent, which is what its target reads; the URL as written may say something else. */
export interface SentTarget {
  /** ASCII, lower case, without port. */
  readonly hostname: string;
  /** With the port unless it is the scheme's default. */
  readonly host: string;
  /** Dots are resolved, and characters that need no code are written plainly. */
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
  /** Targets read such a path in different ways: see `AMBIGUOUS`. */
  readonly isAmbiguous: boolean;
}

/** The target as it is sent; null: the text is no http or https URL. */
export function sentTarget(url: string): SentTarget | null {
  // Its create has parsed it, and `parseTarget` still knows it. A URL that was altered in the database may be refused now.
  const parsed = parseTarget(url);
  const target = "refused" in parsed ? normalTarget(url) : parsed;
  if (target === null) return null;
  const { hostname, host, pathname, rest } = target;
  return {
    hostname,
    host,
    path: decodeUnreserved(pathname),
    query: rest.slice(pathname.length + 1),
    isAmbiguous: AMBIGUOUS.test(pathname),
  };
}

/**
 * `%25` too, since a target that decodes twice reads `%252f` as a slash; `%3b`, since a proxy in front of it may decode it; a code that
 * is none, as `%u002e` of old ones; control characters, of which NUL ends a path for some; and characters in more bytes than they need,
 * as `%c0%ae` for a dot, which old decoders take.
 */
const AMBIGUOUS = /%2f|%5c|%2e|%25|%3b|%[01][0-9a-f]|%(?![0-9a-f]{2})|%c[01]|%e0%[89]|%f0%8|;|\/\//i;

/**
 * Whether a path lies under a prefix, by whole segments: `/pay` is no prefix of `/payments`. `*` in the prefix stands for one
 * segment. An ambiguous path is under none.
 */
export function isUnder({ path, isAmbiguous }: Pick<SentTarget, "path" | "isAmbiguous">, prefix: string): boolean {
  if (isAmbiguous) return false;
  // Most prefixes, several times as fast: an account may have hundreds.
  if (!prefix.includes("*")) {
    const end = prefix.endsWith("/") ? prefix.length - 1 : prefix.length;
    return (path.length === end || path[end] === "/") && path.startsWith(prefix.slice(0, end));
  }
  const segments = path.split("/");
  const wanted = (prefix.endsWith("/") ? prefix.slice(0, -1) : prefix).split("/");
  return (
    segments.length >= wanted.length &&
    wanted.every((one, at) => (one === "*" ? segments[at] !== "" : one === segments[at]))
  );
}

/** A prefix as `isUnder` compares it: written as paths are sent. Null: no path can lie under it. */
export function normalPrefix(text: string): string | null {
  if (!text.startsWith("/") || /[?#\\\s]/.test(text)) return null;
  const target = sentTarget(`http://host${text}`);
  return target === null || target.isAmbiguous ? null : target.path;
}
