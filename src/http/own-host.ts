import { DomainError } from "../domain/errors.ts";
import { normalTarget } from "../domain/normal-target.ts";
import type { Guard } from "./route.ts";

export interface OwnHostDeps {
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

export interface PagesHostDeps extends Pick<OwnHostDeps, "isLoopback"> {
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
