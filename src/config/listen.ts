import { isIP } from "node:net";
import type { FaultOf } from "./kinds.ts";

/** What is wrong with a HOST. */
export const hostFault: FaultOf = (value) => {
  if (isIP(value) === 0 && !/^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/.test(value)) return "is no address";
  return URL.canParse(`http://${inUrl(value)}`) ? null : "is no address";
};

/** What is wrong with an address of a service that begins at the root of a host. */
export const originFault: FaultOf = (value) => {
  if (!/^https?:\/\//i.test(value) || !URL.canParse(value)) return "is no http:// or https:// address";
  const url = new URL(value);
  if (url.username !== "" || url.password !== "") return "holds a user name or a password";
  return url.href === `${url.origin}/` ? null : "has more behind the host";
};

/**
 * The address that HOST means, spelled in one way and without brackets. `localhost` becomes 127.0.0.1: a name could be
 * resolved to something else, and everything that is allowed on loopback only hangs on it.
 */
export function listenAddress(host: string): string {
  const { hostname } = new URL(`http://${inUrl(host)}`);
  return hostname === "localhost" ? "127.0.0.1" : hostname.replace(/^\[|\]$/g, "");
}

/** Where a browser on this machine reaches an address that we listen on, without a trailing slash. */
export function localUrl(address: string, port: number): string {
  const reachable: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };
  return new URL(`http://${inUrl(reachable[address] ?? address)}:${port}`).origin;
}

/** Whether an address reaches this machine only. A name is none: who knows what it is resolved to. */
export function isLoopbackAddress(address: string): boolean {
  return address === "::1" || (isIP(address) === 4 && address.startsWith("127."));
}

/** Whether the host of a URL is this machine to whoever opens it (RFC 6761 for `localhost`). */
export function isLoopbackUrl({ hostname }: Pick<URL, "hostname">): boolean {
  const isName = hostname === "localhost" || hostname.endsWith(".localhost");
  return isName || isLoopbackAddress(hostname.replace(/^\[|\]$/g, ""));
}

function inUrl(address: string): string {
  return isIP(address) === 6 ? `[${address}]` : address;
}
