import { DomainError } from "./domain-error.ts";
import { PARSED_TARGET_CHARS_MAX, PARSED_TARGETS_MAX, PORT_MAX, URL_CHARS_MAX } from "./limits.ts";
import { type Address, addressOfHost } from "./addresses.ts";

/** A URL in its normal form, which is used to check, call, sign, list and show it. */
export interface NormalTarget {
  readonly isHttps: boolean;
  /** ASCII, lower case, no trailing dot; an IPv6 address in brackets and in its shortest spelling. */
  readonly hostname: string;
  /** The written port, or the scheme's default. */
  readonly port: number;
  /** Host name, with the port unless it is the scheme's default. */
  readonly host: string;
  /** Scheme and host, to which a signing secret belongs. */
  readonly origin: string;
  readonly pathname: string;
  /** Path and query exactly as they are sent. The fragment is not sent (RFC 9110, 7.1). */
  readonly rest: string;
}

/** The normal form of a URL; null if it is not an http or https URL. It does not check where the URL leads. */
export function normalTarget(text: string): NormalTarget | null {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) return null;
  const hostname = withoutTrailingDot(url.hostname);
  const host = url.port === "" ? hostname : `${hostname}:${url.port}`;
  return {
    isHttps: url.protocol === "https:",
    hostname,
    port: url.port === "" ? SCHEME_PORTS[url.protocol] : Number(url.port),
    host,
    origin: `${url.protocol}//${host}`,
    pathname: url.pathname,
    rest: targetRest(url),
  };
}

/** Whether a text is an http or https URL. */
export function isTarget(text: string): boolean {
  return SCHEME.test(text) && URL.canParse(text);
}

/** The target of a URL that was checked before it was stored, and again when it was read. */
export function storedTarget(url: string): NormalTarget {
  const target = parsedTargets.get(url) ?? normalTarget(url);
  if (target === null) throw new TypeError("The stored target is no http or https URL.");
  return target;
}

/** The origin of a stored URL. */
export function urlOrigin(url: string): string {
  return storedTarget(url).origin;
}

/**
 * The normal form of a host to search for, with or without a port; null if it is no host. A port always stays, since without a
 * scheme none is a default.
 */
export function normalHost(text: string): string | null {
  const [, name = "", port] = HOST_AND_PORT.exec(text) ?? [];
  const hostname = normalTarget(`http://${IPV6.test(text) ? `[${text}]` : name}/`)?.hostname ?? "";
  if (hostname === "") return null;
  if (port === undefined || IPV6.test(text)) return hostname;
  return Number(port) > PORT_MAX ? null : `${hostname}:${Number(port)}`;
}

/** Path and query without needless percent-encoding, and with other codes in capitals (RFC 3986, 6.2.2). */
export function decodeUnreserved(rest: string): string {
  return rest.replaceAll(/%[0-9a-f]{2}/gi, (code) => {
    const letter = String.fromCharCode(Number.parseInt(code.slice(1), 16));
    return UNRESERVED.test(letter) ? letter : code.toUpperCase();
  });
}

/** The URL as it is sent: in normal form, so that no look-alike letter or dot remains, and without the fragment. */
export function sentUrl(url: string): string {
  const target = normalTarget(url);
  return target === null ? url : target.origin + target.rest;
}

/** A parsed URL. Its text is not used again. */
export interface ParsedTarget extends NormalTarget {
  /** The host as an address, if it is one. */
  readonly literal: Address | null;
}

/** Why no call may go there: a sentence that says what is wrong and which setting, if any, allows it. */
export interface RefusedTarget {
  readonly refused: string;
}

/**
 * Targets that were parsed recently, by their whole text: an action's URL is parsed for its create, its signature and its call.
 * The meaning of a text never changes. Where it leads is checked each time and not stored here.
 */
const parsedTargets = new Map<string, ParsedTarget>();

/** Checks how a URL is written, not where it leads. */
export function parseTarget(raw: string): ParsedTarget | RefusedTarget {
  const known = parsedTargets.get(raw);
  if (known !== undefined) return known;
  const target = parseNewTarget(raw);
  if ("refused" in target || raw.length > PARSED_TARGET_CHARS_MAX) return target;
  if (parsedTargets.size >= PARSED_TARGETS_MAX) parsedTargets.clear();
  parsedTargets.set(raw, target);
  return target;
}

function parseNewTarget(raw: string): ParsedTarget | RefusedTarget {
  const refused = textProblem(raw);
  if (refused !== null) return { refused };
  const target = normalTarget(raw);
  if (target === null) return { refused: "Is not a URL: its host or port can't be read." };
  const literal = addressOfHost(target.hostname);
  const problem = partsProblem(target, literal);
  return problem === null ? { ...target, literal } : { refused: problem };
}

/** Refuses what the URL parser would silently fix: tabs, backslashes and missing slashes. */
function textProblem(raw: string): string | null {
  if (raw.length > URL_CHARS_MAX) return `Is longer than ${URL_CHARS_MAX} characters.`;
  const scheme = SCHEME.exec(raw);
  if (scheme === null) return "Must begin with http:// or https://.";
  if (BLANK.test(raw)) return "Must not contain white space or control characters: percent-encode them.";
  if (raw.includes("\\")) return "Must not contain a backslash: write it as %5C.";
  if (!raw.isWellFormed()) return "Is not well-formed Unicode.";
  const authority = AUTHORITY.exec(raw.slice(scheme[0].length))?.[0] ?? "";
  if (authority === "") return "Has no host.";
  if (authority.includes("@")) return "Must not contain a user name or password: use the authorization header.";
  return null;
}

function partsProblem({ hostname, port, pathname }: NormalTarget, literal: Address | null): string | null {
  if (literal === null && !isHostName(hostname))
    return "Has no valid host: labels of 1 to 63 letters, digits or hyphens, 253 in all.";
  if (port === 0) return "Has port 0, which nothing can listen on.";
  if (CLOSED_PORTS.has(port)) return `Has port ${port}, which does not speak HTTP and is not allowed.`;
  // Bun would send `//a` as `/a`: another path than the one that was shown and approved.
  if (pathname.startsWith("//")) return "Must not have a path that begins with //.";
  return null;
}

/** Removes a trailing dot, which marks a complete name: `Host` and certificates omit it. */
function withoutTrailingDot(name: string): string {
  return name.endsWith(".") ? name.slice(0, -1) : name;
}

/** Path and query, cut from the whole href because `search` doesn't distinguish `/a?` from `/a`. */
function targetRest({ href, protocol, hash }: URL): string {
  const rest = href.slice(href.indexOf("/", protocol.length + 2));
  if (hash !== "") return rest.slice(0, -hash.length);
  return rest.endsWith("#") ? rest.slice(0, -1) : rest;
}

const SCHEME_PORTS = { "http:": 80, "https:": 443 } as const;

/** A host and a port: no character that would start another part of a URL. */
const HOST_AND_PORT = /^(\[[^\]/?#@\\\s]*\]|[^:/?#@\\\s]*)(?::(\d{1,5}))?$/;

/** An IPv6 address without its brackets; with a port it needs them. */
const IPV6 = /^[0-9a-f]*:[0-9a-f]*:[0-9a-f:.]*$/i;

const UNRESERVED = /[A-Za-z0-9._~-]/;

const SCHEME = /^https?:\/\//i;

const AUTHORITY = /^[^/?#]*/;

const BLANK = /[\s\p{Cc}]/u;

/** Remote shells, mail, databases and caches could read a request as commands. */
const CLOSED_PORTS = new Set([22, 23, 25, 110, 143, 465, 587, 993, 995, 3306, 5432, 6379, 11211, 27017]);

const LABEL_CHARS_MAX = 63;

const NAME_CHARS_MAX = 253;

const LABEL = new RegExp(`^[a-z0-9_-]{1,${LABEL_CHARS_MAX}}$`);

/** What a name alone says, before it is resolved. See docs/security.md. */
type NameClass = "never" | "loopback" | "private" | "public";

/** Loopback names are answered here and never sent to DNS (RFC 6761, 6.3). */
export function classOfName(name: string): NameClass {
  if (NEVER.has(name) || name.endsWith(".onion")) return "never";
  if (name === "localhost" || name.endsWith(".localhost")) return "loopback";
  const isPrivate = !name.includes(".") || PRIVATE_ENDINGS.some((ending) => name.endsWith(ending));
  return isPrivate ? "private" : "public";
}

/** Whether a name, in ASCII and without a trailing dot, is a valid host name (RFC 1035, 2.3.4). */
export function isHostName(name: string): boolean {
  return name.length <= NAME_CHARS_MAX && name.split(".").every((label) => LABEL.test(label));
}

const NEVER = new Set(["metadata.google.internal"]);

const PRIVATE_ENDINGS = [".internal", ".local", ".home.arpa"];

/**
 * The normal form of a host as actions have it, with the port unless it is the scheme's default; or what is wrong with the
 * text. Ports 80 and 443 are refused: without a scheme, it is unknown whether they are defaults, and a setting for a host that
 * no action has would have no effect.
 */
export function readHost(text: string): { readonly host: string } | { readonly problem: string } {
  const host = text.includes("*") ? null : normalHost(text.trim());
  if (host === null) return { problem: NOT_A_HOST };
  if (!DEFAULT_PORT.test(host)) return { host };
  return { problem: "Leave out the port 443 of https and the port 80 of http, which are the default." };
}

/** Like `readHost`, but throws for a member `host` (`validation_error`) or a path (`not_found`). */
export function checkHost(text: string, code: "validation_error" | "not_found"): string {
  const read = readHost(text);
  if ("host" in read) return read.host;
  if (code === "not_found") throw new DomainError(code, `There is no such host. ${read.problem}`);
  throw new DomainError(code, "The host is not valid.", [{ field: "host", message: read.problem }]);
}

export const NOT_A_HOST =
  "Must be a host name or an IP address, with or without a port, like api.example.com or 10.0.0.7:8080.";

/** An IPv6 address is in brackets, so that its last part is no port. */
const DEFAULT_PORT = /:(80|443)$/;

/** Where a call goes as it is sent, which is what its target reads. The URL as written may look different. */
export interface SentTarget {
  /** ASCII, lower case, without port. */
  readonly hostname: string;
  /** With the port unless it is the scheme's default. */
  readonly host: string;
  /** Without dot segments and needless percent-encoding. */
  readonly path: string;
  /** Without the question mark. */
  readonly query: string;
  /** Whether targets may read the path in different ways: see `AMBIGUOUS`. */
  readonly isAmbiguous: boolean;
}

/** The target of an http or https URL as it is sent. */
export function sentTarget(url: string): SentTarget {
  const { hostname, host, pathname, rest } = storedTarget(url);
  return {
    hostname,
    host,
    path: decodeUnreserved(pathname),
    query: rest.slice(pathname.length + 1),
    isAmbiguous: AMBIGUOUS.test(pathname),
  };
}

/**
 * What targets read differently in a path. `%25`: a target that decodes twice reads `%252f` as a slash. `%3b`, `%3f`, `%23`: if
 * a proxy decodes them, the path ends there. Invalid codes, such as the old `%u002e`. Control characters: for some, NUL ends a
 * path. Overlong characters, such as `%c0%ae` for a dot, which old decoders accept.
 */
const AMBIGUOUS = /%2f|%5c|%2e|%25|%3b|%3f|%23|%[01][0-9a-f]|%(?![0-9a-f]{2})|%c[01]|%e0%[89]|%f0%8|;|\/\//i;

/**
 * Whether a path is under a prefix, by whole segments: `/pay` is no prefix of `/payments`. `*` in the prefix stands for one
 * segment. An ambiguous path is under no prefix.
 */
export function isUnder({ path, isAmbiguous }: Pick<SentTarget, "path" | "isAmbiguous">, prefix: string): boolean {
  if (isAmbiguous) return false;
  // The fast path for most prefixes, since an account may have hundreds.
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
  const { isAmbiguous, path } = sentTarget(`http://host${text}`);
  return isAmbiguous ? null : path;
}

export const HTTP_METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

export type HttpMethod = (typeof HTTP_METHODS)[number];
