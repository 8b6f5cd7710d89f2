import { type Address, isLoopback, parseAddress } from "./address.ts";
import { classOfName, withoutTrailingDot } from "./host-name.ts";

/** Where this service itself answers. An action to it could make actions without end. */
export interface OwnOrigins {
  /** `name:port`, the port always there. */
  readonly hosts: ReadonlySet<string>;
  /** Ports that we listen on at this machine's own loopback. */
  readonly loopbackPorts: ReadonlySet<number>;
}

/** Reads origins such as `http://127.0.0.1:3000`; 0.0.0.0 and [::] stand for loopback. Null when one is none. */
export function parseOwnOrigins(origins: readonly string[]): OwnOrigins | null {
  const hosts = new Set<string>();
  const loopbackPorts = new Set<number>();
  for (const origin of origins) {
    const url = URL.parse(origin);
    if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) return null;
    const name = withoutTrailingDot(url.hostname);
    const address = parseAddress(name.replace(/^\[|\]$/g, ""));
    if (isOurMachine(name, address)) loopbackPorts.add(portOf(url));
    // Without a port both schemes lead to us: a plain address is usually redirected to the other.
    else for (const port of url.port === "" ? [80, 443] : [portOf(url)]) hosts.add(`${name}:${port}`);
  }
  return { hosts, loopbackPorts };
}

/** Whether that host and port are ours; `address` is what the name stands for, where that is known. */
export function isOwnHost(own: OwnOrigins, hostname: string, port: number, address: Address | null): boolean {
  if (own.hosts.has(`${hostname}:${port}`)) return true;
  return own.loopbackPorts.has(port) && isOurMachine(hostname, address);
}

/** Whether a path leads to what changes state here. Letters in any case and coding, to be on the safe side. */
export function isOwnPath(pathname: string): boolean {
  return OWN_PATH.test(pathname.includes("%") ? decoded(pathname) : pathname);
}

/** The effective port of a URL. */
export function portOf(url: URL): number {
  if (url.port !== "") return Number(url.port);
  return url.protocol === "https:" ? 443 : 80;
}

function isOurMachine(name: string, address: Address | null): boolean {
  if (address === null) return classOfName(name) === "loopback";
  return isLoopback(address) || address.every((byte) => byte === 0);
}

/** Broken coding stays as it is: no router of ours would decode it either. */
function decoded(pathname: string): string {
  try {
    return decodeURIComponent(pathname);
  } catch {
    return pathname;
  }
}

const OWN_PATH = /^\/(v1|auth|mcp|a)(\/|$)/i;
