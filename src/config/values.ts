import { existsSync, lstatSync, readlinkSync, realpathSync } from "node:fs";
import { isIP } from "node:net";
import { basename, dirname, join, resolve } from "node:path";
import { contains, parseAddress, parseRange } from "../core/addresses.ts";
import { LINKS_FOLLOWED_MAX } from "../core/limits.ts";

/** What is wrong with a text, in words that follow the setting's name ("is not an address"); null if valid. */
export type FindFault = (value: string) => string | null;

export const hostFault: FindFault = (value) => {
  if (isIP(value) === 0 && !/^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/.test(value)) return "is not an address";
  return URL.canParse(`http://${inUrl(value)}`) ? null : "is not an address";
};

/** Checks the base URL of a service: http(s), without credentials and path. */
export const originFault = urlFault("an http:// or https:// address", (url) =>
  url.href === `${url.origin}/` ? null : "has more than a host",
);

/** Checks the issuer of an OpenID provider, which may have a path: https, or http on this machine. */
export const issuerFault = urlFault("an https:// address", (url) => {
  if (url.search !== "" || url.hash !== "") return "has a query or a fragment";
  return url.protocol === "https:" || isLoopbackUrl(url) ? null : "is not https://";
});

function urlFault(kind: string, findFault: (url: URL) => string | null): FindFault {
  return (value) => {
    const url = /^https?:\/\//i.test(value) ? URL.parse(value) : null;
    if (url === null) return `is not ${kind}`;
    return url.username === "" && url.password === "" ? findFault(url) : "holds a user name or a password";
  };
}

/** HOST, normalized. `localhost` becomes 127.0.0.1: a resolver could say otherwise, and loopback has privileges. */
export function listenAddress(host: string): string {
  const { hostname } = new URL(`http://${inUrl(host)}`);
  return hostname === "localhost" ? "127.0.0.1" : hostname.replace(/^\[|\]$/g, "");
}

/** The URL at which a browser on this machine reaches a listen address, without a trailing slash. */
export function localUrl(address: string, port: number): string {
  const reachable: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };
  return new URL(`http://${inUrl(reachable[address] ?? address)}:${port}`).origin;
}

/** Whether an IP address is loopback. False for names, since they may resolve to anything. */
export function isLoopbackAddress(address: string): boolean {
  return address === "::1" || (isIP(address) === 4 && address.startsWith("127."));
}

/** Whether the host of a URL is loopback, including `localhost` (RFC 6761). */
export function isLoopbackUrl({ hostname }: Pick<URL, "hostname">): boolean {
  const isName = hostname === "localhost" || hostname.endsWith(".localhost");
  return isName || isLoopbackAddress(hostname.replace(/^\[|\]$/g, ""));
}

function inUrl(address: string): string {
  return isIP(address) === 6 ? `[${address}]` : address;
}

export const proxyFault: FindFault = (value) => {
  const range = parseRange(value);
  if (range === null) return "has an entry that is not an address range (no bits may be set behind the prefix)";
  return range.prefix === 0 ? "has an entry that holds every address: anyone could then write any" : null;
};

export function proxyMatcher(entries: readonly string[]): (address: string) => boolean {
  const ranges = entries.flatMap((entry) => parseRange(entry) ?? []);
  return (text) => {
    const address = ranges.length === 0 ? null : parseAddress(text);
    return address !== null && ranges.some((range) => contains(range, address));
  };
}

export type Database =
  | { readonly kind: "file"; readonly url: string; readonly path: string }
  | { readonly kind: "remote"; readonly url: string; readonly authToken: string | null };

/** Remote libSQL: `libsql:` is https under another name. */
const REMOTE = /^(libsql|https?):\/\//i;

const POSTGRES = /^postgres(ql)?:\/\//i;

export const databaseFault: FindFault = (value) => {
  if (POSTGRES.test(value)) return postgresFault(value);
  if (REMOTE.test(value)) return remoteFault(value);
  if (!/^file:/i.test(value)) return "is not the address of a database";
  const path = urlPath(value);
  if (path === null || path.endsWith("/")) return "names no file";
  return path.startsWith(":") ? "names a store in memory, which forgets everything" : null;
};

export function readDatabase(url: string, authToken: string | null): Database {
  // The URL contains the password.
  if (isPostgresUrl(url)) return { kind: "remote", url, authToken: null };
  const path = REMOTE.test(url) ? null : urlPath(url);
  return path === null ? { kind: "remote", url, authToken } : { kind: "file", url, path };
}

/** The URL for the driver, whose `file:` URLs have plain paths without percent encoding. */
export function databaseAddress(database: Database): { readonly url: string; readonly authToken: string | null } {
  return database.kind === "remote" ? database : { url: `file:${database.path}`, authToken: null };
}

/** Where the database is, in words for the operator, without user and password. */
export function databasePlace(database: Database): string {
  if (database.kind === "file") return database.path;
  const { protocol, host, pathname } = new URL(database.url);
  return `${protocol}//${host}${pathname === "/" ? "" : pathname}`;
}

/** Whether the database is on a server, and so has no key file. */
export function isRemote(url: string): boolean {
  return REMOTE.test(url) || isPostgresUrl(url);
}

/** Whether the database is PostgreSQL, which several nodes may use. */
export function isPostgresUrl(url: string): boolean {
  return POSTGRES.test(url);
}

const SEVERAL_HOSTS = "names several hosts: name one address that always leads to the primary";

/** What is wrong with a PostgreSQL URL. The driver needs one host, or `?host=` with a socket's folder. */
function postgresFault(value: string): string | null {
  const [address = ""] = value.split("?");
  const [hosts] = address
    .slice(address.lastIndexOf("@") + 1)
    .replace(POSTGRES, "")
    .split("/");
  if (hosts?.includes(",") === true) return SEVERAL_HOSTS;
  if (!URL.canParse(value))
    return "is not the address of a database: characters like @ and / in a password are written as %40 and %2F";
  const url = new URL(value);
  const [host, encoding = "UTF8"] = ["host", "client_encoding"].map((name) => url.searchParams.get(name) ?? undefined);
  if (host?.includes(",") === true) return SEVERAL_HOSTS;
  // Nodes would read what each other wrote as other texts.
  if (!/^utf-?8$/i.test(encoding)) return "has a client_encoding other than UTF8";
  if (url.hostname === "" && host === undefined) return "names no host";
  return url.pathname.length > 1 ? null : "names no database: it follows the host and a slash";
}

function remoteFault(value: string): string | null {
  if (!URL.canParse(value)) return "is not the address of a database";
  const url = new URL(value);
  // A secret in the URL would appear in logs and messages.
  const holdsSecret = url.username !== "" || url.password !== "" || url.searchParams.has("authToken");
  if (holdsSecret) return "holds a token: put it into DATABASE_AUTH_TOKEN";
  return url.hostname === "" ? "names no host" : null;
}

/**
 * The real path of a database file with all symbolic links resolved, even before the file exists. Lock and log lie beside
 * it, whichever name was used. Throws an error for the operator if a link leads nowhere.
 */
export function realPath(path: string): string {
  if (existsSync(path)) return realpathSync(path);
  const target = endOfLinks(path);
  const folder = dirname(target);
  if (existsSync(folder)) return join(realpathSync(folder), basename(target));
  if (target === resolve(path)) return target;
  throw new Error(
    `The database ${path} is a link to ${target}, and there is no folder ${folder}. Mount the disk or make the folder.`,
  );
}

/** Follows the links of a path that has no file yet. */
function endOfLinks(path: string): string {
  let target = resolve(path);
  for (let followed = 0; followed < LINKS_FOLLOWED_MAX; followed += 1) {
    if (lstatSync(target, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return target;
    target = resolve(dirname(target), readlinkSync(target));
  }
  throw new Error(`The database ${path} is a link that leads nowhere. Set DATABASE_URL to the file itself.`);
}

/** The path of a `file:` URL as the driver reads it: percent-decoded, with an empty authority or `localhost`. */
function urlPath(url: string): string | null {
  const path = /^file:(?:\/\/(?:localhost)?(?=\/))?((?!\/\/)[^?#\0]+)$/i.exec(url)?.[1];
  try {
    return path === undefined ? null : decodeURIComponent(path);
  } catch {
    return null;
  }
}

export const KEY_BYTES = 32;

/** Why nobody may sign up: a setting, or a key of the first account that has a hold. */
export type SignUpsClosedBy = "SIGNUPS" | "HOST" | "APPROVERS" | "AGENT_APPROVAL" | "hold";

/**
 * Who may sign up. `until_hold`: anybody, until a key of the first account has a hold. From then on a new account, whose
 * owner key sends without approval, would be a way around that hold.
 */
export type SignUps = "open" | "until_hold" | { readonly closedBy: SignUpsClosedBy };

/** The forms that `readKey` accepts, for error messages. */
export const KEY_FORMS = "32 bytes as base64 (44 characters) or hex (64 characters)";

/** Parses 32 bytes as base64 (also URL-safe or without padding) or hex; null if it is neither. */
export function readKey(text: string): Uint8Array | null {
  if (/^[0-9a-fA-F]{64}$/.test(text)) return new Uint8Array(Buffer.from(text, "hex"));
  const bytes = Buffer.from(text, "base64");
  // The decoder skips unknown characters, so a key with a typo would silently become another key.
  const plain = text
    .replaceAll("-", "+")
    .replaceAll("_", "/")
    .replace(/(?<!=)=+$/, "");
  const isExact = bytes.length === KEY_BYTES && bytes.toString("base64").replace(/(?<!=)=+$/, "") === plain;
  return isExact ? new Uint8Array(bytes) : null;
}

/** Most verbose first. */
export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;

/** `auto`: text on a terminal, else JSON. */
export const LOG_FORMATS = ["auto", "text", "json"] as const;

export type LogLevel = (typeof LOG_LEVELS)[number];
