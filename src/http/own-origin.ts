import type { Config } from "../config/config.ts";
import { isLoopbackAddress, isLoopbackUrl } from "../config/values.ts";
import { DomainError } from "../core/domain-error.ts";
import { normalTarget } from "../core/target.ts";

/** CSRF checks by the headers `Origin` and `Sec-Fetch-Site`. See docs/security.md. */
export type OwnOrigin = ReturnType<typeof createOwnOrigin>;

/** `baseUrl`: the public address of the service. */
export function createOwnOrigin({ baseUrl }: { readonly baseUrl: string }) {
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
      `Forms and logouts are accepted only from Outgate's own pages at ${baseUrl} (the setting BASE_URL). Programs send JSON, and log out by dropping their cookie.`,
    );
  };
  return {
    /** Throws `forbidden` unless one of our pages sent the request; programs, which send neither header, are refused. */
    require: (headers: Headers) => (isOwn(headers) === true ? undefined : refuse()),
    /**
     * Throws `forbidden` if either header names another site, but accepts `Origin: null`, which browsers send with forms of
     * pages with the referrer policy `no-referrer`, such as the approval page.
     */
    refuseOtherSitesButNull(headers: Headers): void {
      const origin = headers.get("origin");
      const isForeign = origin !== null && origin !== "null" && origin !== own;
      if (isForeign || (headers.get("sec-fetch-site") ?? "same-origin") !== "same-origin") refuse();
    },
    /** Throws `forbidden` for requests that another site's page sent; programs, which send neither header, pass. */
    refuseOtherSites: (headers: Headers) => (isOwn(headers) === false ? refuse() : undefined),
  };
}

/** Checks Host and Origin of a request, before its key. Throws `forbidden` or `Misdirected`. */
export type Guard = (headers: Headers) => void;

/** A host name with or without a port, and nothing that `URL` would normalise: no user, no path. */
const HOST = /^[A-Za-z0-9._-]+(:\d+)?$|^\[[0-9A-Fa-f:.]+\](:\d+)?$/;

/**
 * Refuses pages of other sites at /mcp: `Host` reveals DNS rebinding, `Origin` any other page. Throws `forbidden`. Ports are not
 * compared. Any Host is accepted if we listen for other machines and `BASE_URL` is not set.
 */
export function createMcpGuard({
  baseUrl,
  isBaseUrlSet,
  host,
}: Pick<Config, "baseUrl" | "isBaseUrlSet" | "host">): Guard {
  const ownHostname = isBaseUrlSet ? new URL(baseUrl).hostname : null;
  const takesAnyHost = !isBaseUrlSet && !isLoopbackAddress(host);
  const isOwn = (url: string) => {
    const target = normalTarget(url);
    return target !== null && (target.hostname === ownHostname || isLoopbackUrl(target));
  };
  const isOwnHost = (text: string) => takesAnyHost || (HOST.test(text) && isOwn(`http://${text}`));
  return (headers) => {
    const origin = headers.get("origin");
    if (origin !== null && !isOwn(origin)) throw untrusted("Origin");
    if (!isOwnHost(headers.get("host") ?? "")) throw untrusted("Host");
  };
}

/**
 * On loopback, serves pages for people only at the address of `BASE_URL`. Throws `Misdirected` for another Host, which comes
 * from a tunnel without `BASE_URL` or from DNS rebinding. Another name of this machine is redirected: `localhost` can mean
 * 127.0.0.1 today and ::1 tomorrow, and a server that listens there would get the cookies and stored secrets of that name.
 */
export function createPagesGuard({ baseUrl, isOnLoopback }: Pick<Config, "baseUrl" | "isOnLoopback">): Guard {
  const { hostname } = new URL(baseUrl);
  return (headers) => {
    const host = headers.get("host");
    // Browsers always send a Host, so without one it is a program.
    if (!isOnLoopback || host === null) return;
    const target = HOST.test(host) ? normalTarget(`http://${host}`) : null;
    if (target === null || !isLoopbackUrl(target)) throw new Misdirected(null);
    if (target.hostname !== hostname) throw new Misdirected(baseUrl);
  };
}

/** 421 (RFC 9110, 15.5.20). */
export class Misdirected extends DomainError {
  /** The address that answers this request; null: it may not be meant for this service. */
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
