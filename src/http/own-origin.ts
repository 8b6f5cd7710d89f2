import { DomainError } from "../api/domain-error.ts";
import { normalTarget } from "../outbound/target.ts";
import type { RequestContext } from "./request.ts";
import { isIP } from "node:net";
import { FORWARDED_ADDRESSES_MAX, FORWARDED_CHARS_MAX } from "../config/limits.ts";

export interface OwnAddress {
  /** Public address of the service. */
  readonly baseUrl: string;
}

/** CSRF checks by the headers `Origin` and `Sec-Fetch-Site`. See docs/security.md. */
export interface OwnOrigin {
  /** Throws `forbidden` unless one of our pages sent the request; programs, which send neither header, are refused. */
  require(headers: Headers): void;
  /**
   * Throws `forbidden` where either header names another site, but accepts `Origin: null`: browsers send that with forms
   * of a page that has the referrer policy `no-referrer`, such as the approval page.
   */
  refuseOtherSitesButNull(headers: Headers): void;
  /** Throws `forbidden` for requests that another site's page sent; programs, which send neither header, pass. */
  refuseOtherSites(headers: Headers): void;
}

export function createOwnOrigin({ baseUrl }: OwnAddress): OwnOrigin {
  // `URL` leaves out the scheme's default port, as browsers do.
  const own = new URL(baseUrl).origin;
  const isOwn = (headers: Headers): boolean | null => {
    const origin = headers.get("origin");
    if (origin !== null) return origin === own;
    const site = headers.get("sec-fetch-site");
    // "none" (a typed address or a bookmark) never sends a form.
    return site === null ? null : site === "same-origin";
  };
  const refuse = () => {
    throw new DomainError(
      "forbidden",
      `Forms and log-outs are accepted only from Outgate's own pages at ${baseUrl} (the setting BASE_URL). Programs send JSON, and log out by dropping their cookie.`,
    );
  };
  return {
    require: (headers) => (isOwn(headers) === true ? undefined : refuse()),
    refuseOtherSitesButNull(headers) {
      const origin = headers.get("origin");
      const isForeign = origin !== null && origin !== "null" && origin !== own;
      if (isForeign || (headers.get("sec-fetch-site") ?? "same-origin") !== "same-origin") refuse();
    },
    refuseOtherSites: (headers) => (isOwn(headers) === false ? refuse() : undefined),
  };
}

/** Checks Host and Origin of a request, before its key. Throws `forbidden` or `Misdirected`. */
export type Guard = (headers: Headers) => void;

interface OwnHostDeps {
  /** Host name of `BASE_URL`; null where it is not set. */
  readonly ownHostname: string | null;
  /** Whether any Host is accepted: where we listen for other machines and `BASE_URL` is not set. */
  readonly takesAnyHost: boolean;
  /** Whether the host of a URL is this machine. */
  readonly isLoopback: (url: { readonly hostname: string }) => boolean;
}

/** A host name with or without a port, and nothing that `URL` would normalise: no user, no path. */
const HOST = /^[A-Za-z0-9._-]+(:\d+)?$|^\[[0-9A-Fa-f:.]+\](:\d+)?$/;

/**
 * Refuses pages of other sites on routes for programs: `Host` reveals DNS rebinding, `Origin` any other page. Throws
 * `forbidden`. Ports are not compared.
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
  readonly baseUrl: string;
  /** Whether only this machine can connect. */
  readonly isOnLoopback: boolean;
}

/**
 * On loopback, serves pages for people only at the address of `BASE_URL`. Throws `Misdirected`: another Host comes from a
 * tunnel without `BASE_URL`, or from DNS rebinding. Another name of this machine is redirected: `localhost` can mean
 * 127.0.0.1 today and ::1 tomorrow, and whoever listens there would get the cookies and stored secrets of that name.
 */
export function createOwnHostPages({ baseUrl, isOnLoopback, isLoopback }: PagesHostDeps): Guard {
  const { hostname } = new URL(baseUrl);
  return (headers) => {
    const host = headers.get("host");
    // Browsers always send a Host; without one it is a program.
    if (!isOnLoopback || host === null) return;
    const target = HOST.test(host) ? normalTarget(`http://${host}`) : null;
    if (target === null || !isLoopback(target)) throw new Misdirected(null);
    if (target.hostname !== hostname) throw new Misdirected(baseUrl);
  };
}

/** 421 (RFC 9110, 15.5.20). */
export class Misdirected extends DomainError {
  /** Where the same is answered; null: the request may not be meant for this service. */
  readonly insteadAt: string | null;

  constructor(insteadAt: string | null) {
    super(
      "invalid_request",
      insteadAt === null
        ? "This service accepts only requests to its own machine, and this request has another Host. To reach it through a tunnel or proxy, set BASE_URL to the address that people open, and restart it."
        : `Open ${insteadAt} instead: pages are served at one address, which the setting BASE_URL names.`,
    );
    this.insteadAt = insteadAt;
  }
}

function untrusted(header: "Origin" | "Host"): DomainError {
  return new DomainError(
    "forbidden",
    `The ${header} of this request is not an address of this service. Use the one in BASE_URL, or a loopback address of this machine.`,
  );
}

const GROUPS = 8;

/** A /64: one client can use any address in it. */
const GROUPS_OF_CLIENT = 4;

/** Whether an address is listed in `TRUSTED_PROXIES`. */
export type IsTrustedProxy = (address: string) => boolean;

/** The client for counting requests: its IPv4 address, or the /64 of its IPv6 address. */
export function clientOf({ client }: Pick<RequestContext, "client">): string {
  return networkOf(client);
}

/**
 * The client's IP address; empty where there is no socket. Behind a trusted proxy it is the last address in
 * `X-Forwarded-For` that is not a trusted proxy: anything before it can be forged. Where the header can't be parsed it is
 * the proxy itself.
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

/** The last entries of the header, last one first. */
function lastOf(forwardedFor: string): readonly string[] {
  const entries = forwardedFor.slice(-FORWARDED_CHARS_MAX).split(",");
  // The first one may be cut in the middle.
  if (forwardedFor.length > FORWARDED_CHARS_MAX) entries.shift();
  return entries.slice(-FORWARDED_ADDRESSES_MAX).toReversed();
}

/** An IP address in canonical form, without port, brackets or zone; null for anything else. */
function addressIn(text: string): string | null {
  const trimmed = text.trim();
  const bare = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(trimmed)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(trimmed)?.[1] ?? trimmed;
  const address = bare.split("%", 1)[0] ?? "";
  if (isIP(address) !== 6) return isIP(address) === 4 ? address : null;
  const spelled = new URL(`http://[${address}]/`).hostname.slice(1, -1);
  return mappedIn(spelled) ?? spelled;
}

/** The IPv4 address in a mapped one such as `::ffff:c000:207`; null for others. */
function mappedIn(spelled: string): string | null {
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(spelled) ?? [];
  if (high === undefined || low === undefined) return null;
  return [high, low].flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 0xff]).join(".");
}

/** An IPv4 address as it is, or the first four groups of an IPv6 address. */
export function networkOf(address: string): string {
  if (address.includes(".")) return address.slice(address.lastIndexOf(":") + 1);
  const [front = [], back = []] = address.split("::").map((part) => part.split(":").filter((group) => group !== ""));
  const zeros = Array.from({ length: Math.max(0, GROUPS - front.length - back.length) }, () => "0");
  return address === "" ? "" : [...front, ...zeros, ...back].slice(0, GROUPS_OF_CLIENT).join(":");
}
