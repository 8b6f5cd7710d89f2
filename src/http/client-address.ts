import { isIP, isIPv4 } from "node:net";
import { FORWARDED_ADDRESSES_MAX, FORWARDED_CHARS_MAX } from "../core/limits.ts";
import type { RequestContext } from "./request.ts";

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
  // Most are: the socket's own, and what proxies write.
  if (isIPv4(text)) return text;
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
