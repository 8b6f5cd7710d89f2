import { normalHost, normalTarget } from "./normal-target.ts";

/** A host that an owner has listed for callbacks, in its normal form. */
export interface ListedHost {
  readonly host: string;
  readonly createdAt: Date;
}

/**
 * Whether a list names the host of a callback. A host without a port means the scheme's own port and no other: whoever has
 * a server beside a listed one has it at another port.
 */
export function isListedHost(url: string, hosts: readonly string[]): boolean {
  const target = normalTarget(url);
  if (target === null) return false;
  const { hostname, host, port } = target;
  return hosts.some((one) => one === host || one === `${hostname}:${port}`);
}

/** The form in which a host is listed: null for what is none, such as a URL or a pattern. */
export function listableHost(text: string): string | null {
  return text.includes("*") ? null : normalHost(text);
}
