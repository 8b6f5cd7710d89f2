import { isIPv4 } from "node:net";
import { canonicalAddress } from "../core/addresses.ts";
import { FORWARDED_ADDRESSES_MAX, FORWARDED_CHARS_MAX } from "../core/limits.ts";

/** Whether an address is listed in `TRUSTED_PROXIES`. */
export type IsTrustedProxy = (address: string) => boolean;

/**
 * The client's IP address; empty without a socket. Behind a trusted proxy, it is the last address in `X-Forwarded-For` that is
 * not a trusted proxy, since anything before it can be forged. If the header can't be parsed, it is the proxy itself.
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

/** The last entries of the header, in reverse order. */
function lastOf(forwardedFor: string): readonly string[] {
  const entries = forwardedFor.slice(-FORWARDED_CHARS_MAX).split(",");
  // The first one may be cut in the middle.
  if (forwardedFor.length > FORWARDED_CHARS_MAX) entries.shift();
  return entries.slice(-FORWARDED_ADDRESSES_MAX).toReversed();
}

/** An IP address in canonical form, without port, brackets or zone; null for anything else. */
function addressIn(text: string): string | null {
  // The usual case, for sockets and for what proxies write.
  if (isIPv4(text)) return text;
  const trimmed = text.trim();
  const bare = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(trimmed)?.[1] ?? /^([\d.]+):\d{1,5}$/.exec(trimmed)?.[1] ?? trimmed;
  return canonicalAddress(bare.split("%", 1)[0] ?? "");
}
