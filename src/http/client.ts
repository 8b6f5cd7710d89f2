import { isIP } from "node:net";
import { FORWARDED_ADDRESSES_MAX, FORWARDED_CHARS_MAX } from "../domain/limits.ts";
import type { RequestContext } from "./visit.ts";

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
