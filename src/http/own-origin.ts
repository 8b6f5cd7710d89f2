import { DomainError } from "../api/domain-error.ts";
import { normalTarget } from "../outbound/normal-target.ts";
import type { Guard } from "./router.ts";
import { isIP } from "node:net";
import { FORWARDED_ADDRESSES_MAX, FORWARDED_CHARS_MAX } from "../config/limits.ts";
import type { RequestContext } from "./context.ts";

/** Where people reach the service. */
export interface OwnAddress {
  readonly baseUrl: string;
  /** By other names of this machine too, when nobody else can come in. */
  readonly isOnLoopback: boolean;
  readonly port: number;
}

/** Tells our own pages from others by what a browser says of a request (hostile 7 "CSRF"). */
export interface OwnOrigin {
  /** Lets pass what one of our pages has sent. Throws `forbidden` for everything else, programs included. */
  require(headers: Headers): void;
  /**
   * Throws `forbidden` where either header speaks of another site. For a page that sends no referrer, whose forms have
   * the origin `null` (hostile 7, "Approval page").
   */
  refuseForeignOrNull(headers: Headers): void;
  /** Throws `forbidden` for what another site's page has sent; programs send neither header. */
  refuseForeign(headers: Headers): void;
}

export function createOwnOrigin({ baseUrl, isOnLoopback, port }: OwnAddress): OwnOrigin {
  const names = isOnLoopback ? ["127.0.0.1", "[::1]", "localhost"].map((name) => `http://${name}:${port}`) : [];
  // As `URL` spells them: the port of the scheme is left out, and so do browsers.
  const own = new Set([baseUrl, ...names].map((url) => new URL(url).origin));
  const isOwn = (headers: Headers): boolean | null => {
    const origin = headers.get("origin");
    if (origin !== null) return own.has(origin);
    const site = headers.get("sec-fetch-site");
    // "none": the person typed the address or opened a bookmark, which sends no form.
    return site === null ? null : site === "same-origin";
  };
  const refuse = () => {
    throw new DomainError(
      "forbidden",
      `Forms and log-outs are taken from our own pages only, at ${baseUrl} (the setting BASE_URL says where they are); programs send JSON, and drop their cookie.`,
    );
  };
  return {
    require: (headers) => (isOwn(headers) === true ? undefined : refuse()),
    refuseForeignOrNull(headers) {
      const origin = headers.get("origin");
      const isForeign = origin !== null && origin !== "null" && !own.has(origin);
      if (isForeign || (headers.get("sec-fetch-site") ?? "same-origin") !== "same-origin") refuse();
    },
    refuseForeign: (headers) => (isOwn(headers) === false ? refuse() : undefined),
  };
}

interface OwnHostDeps {
  /** `BASE_URL`'s host name; null where it is not set. */
  readonly ownHostname: string | null;
  /** Whether a request may name any host: we listen for others, and nobody has said under which name. */
  readonly takesAnyHost: boolean;
  /** Whether the host of a URL is this machine. */
  readonly isLoopback: (url: { readonly hostname: string }) => boolean;
}

/** A host name, perhaps with a port: no user, no path, nothing that a parser would mend. */
const HOST = /^[A-Za-z0-9._-]+(:\d+)?$|^\[[0-9A-Fa-f:.]+\](:\d+)?$/;

/**
 * Keeps pages of other sites away from a door that programs use (hostile M13): a page that makes its own name lead here
 * (DNS rebinding) gives itself away by `Host`, any other by `Origin`. Throws `forbidden`; ports are not compared.
 */
export function createOwnHostOnly({ ownHostname, takesAnyHost, isLoopback }: OwnHostDeps): Guard {
  const isOwn = (url: string) => {
    const target = normalTarget(url);
    return target !== null && (target.hostname === ownHostname || isLoopback(target));
  };
  const isOwnHost = (host: string) => takesAnyHost || (HOST.test(host) && isOwn(`http://${host}`));
  return (headers) => {
    const origin = headers.get("origin");
    if (origin !== null && !isOwn(origin)) throw untrusted("Origin");
    if (!isOwnHost(headers.get("host") ?? "")) throw untrusted("Host");
  };
}

interface PagesHostDeps extends Pick<OwnHostDeps, "isLoopback"> {
  /** Nobody but this machine is served; see the settings. */
  readonly isOnLoopback: boolean;
}

/**
 * Keeps everything for people to the names of this machine, where it serves nobody else: a name that leads here from
 * elsewhere belongs to a tunnel that nobody has told us of, or to a page that rebinds it. Throws `Misdirected`.
 */
export function createOwnHostPages({ isOnLoopback, isLoopback }: PagesHostDeps): Guard {
  return (headers) => {
    const host = headers.get("host");
    // Browsers always name one.
    if (!isOnLoopback || host === null) return;
    const target = HOST.test(host) ? normalTarget(`http://${host}`) : null;
    if (target === null || !isLoopback(target)) throw new Misdirected();
  };
}

/** 421 (RFC 9110, 15.5.20). */
export class Misdirected extends DomainError {
  constructor() {
    super(
      "invalid_request",
      "This service answers on its own machine only, at addresses like http://127.0.0.1 or http://localhost; the Host of this request is another one. To reach it through a tunnel or proxy, set BASE_URL to the address that people open, and restart it.",
    );
  }
}

function untrusted(header: "Origin" | "Host"): DomainError {
  return new DomainError(
    "forbidden",
    `The ${header} of this request is foreign. Use the address that the service is reached at (BASE_URL), or this machine's own.`,
  );
}

const GROUPS = 8;

/** A home or a server is given this much of an IPv6 address, and chooses the rest as it likes. */
const GROUPS_OF_CLIENT = 4;

/** Whether an address is that of a proxy whose `X-Forwarded-For` is believed. */
export type IsTrustedProxy = (address: string) => boolean;

/** Who sends a request, as far as a count of them goes: the IPv4 address, or the /64 of an IPv6 one. */
export function clientOf({ client }: Pick<RequestContext, "client">): string {
  return networkOf(client);
}

/**
 * The address that a request comes from; empty where no socket is behind it. From a trusted proxy that is the last address
 * of `X-Forwarded-For` that is no trusted proxy's: whatever stands before it anybody can have written. Where the header
 * can't be read, the proxy itself.
 */
export function clientAddressOf(socket: string, forwardedFor: string | null, isTrusted: IsTrustedProxy): string {
  const peer = addressIn(socket) ?? "";
  if (forwardedFor === null || peer === "" || !isTrusted(peer)) return peer;
  let client = peer;
  for (const entry of lastOf(forwardedFor)) {
    const address = addressIn(entry);
    if (address === null) return peer;
    client = address;
    if (!isTrusted(address)) break;
  }
  return client;
}

/** The entries of the header from its end. */
function lastOf(forwardedFor: string): readonly string[] {
  const entries = forwardedFor.slice(-FORWARDED_CHARS_MAX).split(",");
  // Cut in the middle it could be another address.
  if (forwardedFor.length > FORWARDED_CHARS_MAX) entries.shift();
  return entries.slice(-FORWARDED_ADDRESSES_MAX).toReversed();
}

/** An address in its one spelling, without port, brackets or zone; null for anything else. */
function addressIn(text: string): string | null {
  const trimmed = text.trim();
  const bare = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(trimmed)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(trimmed)?.[1] ?? trimmed;
  const address = bare.split("%", 1)[0] ?? "";
  if (isIP(address) !== 6) return isIP(address) === 4 ? address : null;
  const spelled = new URL(`http://[${address}]/`).hostname.slice(1, -1);
  return mappedIn(spelled) ?? spelled;
}

/** An IPv4 address can come as `::ffff:c000:207`. */
function mappedIn(spelled: string): string | null {
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(spelled) ?? [];
  if (high === undefined || low === undefined) return null;
  return [high, low].flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff]).join(".");
}

export function networkOf(address: string): string {
  if (address.includes(".")) return address.slice(address.lastIndexOf(":") + 1);
  const [front = [], back = []] = address.split("::").map((part) => part.split(":").filter((group) => group !== ""));
  const zeros = Array.from({ length: Math.max(0, GROUPS - front.length - back.length) }, () => "0");
  return address === "" ? "" : [...front, ...zeros, ...back].slice(0, GROUPS_OF_CLIENT).join(":");
}
