import { isIPv4, isIPv6 } from "node:net";
import ipaddr from "ipaddr.js";

/** A parsed address, so that checks see exactly the address that is connected to, however it was written. */
export type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** All addresses whose first `prefix` bits are those of `network`. */
export interface AddressRange {
  readonly network: Address;
  readonly prefix: number;
}

/**
 * `never`: no setting allows it. `private`: allowed if listed in ALLOWED_PRIVATE_TARGETS. `public`: allowed. See
 * docs/security.md.
 */
type AddressClass = "never" | "private" | "public";

/** The class of an address. IPv6 addresses that are not known to be public are `never`. */
export function classifyAddress(address: Address): AddressClass {
  // `never` first: fd00:ec2::/32 is inside fc00::/7.
  if (isIn(NEVER, address)) return "never";
  if (isIn(PRIVATE, address)) return "private";
  return address.kind() === "ipv4" || contains(GLOBAL_V6, address) ? "public" : "never";
}

/** Whether the address is this machine itself: 127/8 or ::1. */
export function isLoopback(address: Address): boolean {
  return isIn(LOOPBACK, address);
}

/** Whether the address is in the range. IPv4 and IPv6 never match each other. */
export function contains({ network, prefix }: AddressRange, address: Address): boolean {
  return network.kind() === address.kind() && address.match(network, prefix);
}

/**
 * Parses a canonical address; null for anything else, such as one with a zone id (`%eth0`). ipaddr.js alone would accept
 * spellings such as 0x7f.1.
 */
export function parseAddress(text: string): Address | null {
  if (isIPv4(text)) return ipaddr.IPv4.parse(text);
  return isIPv6(text) && !text.includes("%") ? ipaddr.IPv6.parse(text) : null;
}

/** The canonical text of an address, as IPv4 if it is mapped into IPv6; null for anything else. */
export function canonicalAddress(text: string): string | null {
  return parseAddress(text) === null ? null : ipaddr.process(text).toString();
}

/** The network of a client: its canonical IPv4 address, or its IPv6 /64, in which it can use any address. */
export function clientNetwork(text: string): string {
  const address = parseAddress(text);
  if (address === null || !("parts" in address)) return text;
  return address.parts
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(":");
}

/** The address of a host in a URL, where IPv6 is in brackets; null for a name. */
export function addressOfHost(host: string): Address | null {
  return parseAddress(host.replace(/^\[(.*)\]$/, "$1"));
}

/** The address as the host of a URL; IPv6 in brackets. */
export function urlHost(address: Address): string {
  const text = address.toNormalizedString();
  return address.kind() === "ipv6" ? `[${text}]` : text;
}

/** Parses `10.0.0.0/8` or a single address. Null: it is neither, or has bits set after its prefix. */
export function parseRange(text: string): AddressRange | null {
  const [name = "", length, ...more] = text.split("/");
  const network = parseAddress(name);
  if (network === null || more.length > 0) return null;
  const bytes = network.toByteArray();
  const bits = 8 * bytes.length;
  if (length === undefined) return { network, prefix: bits };
  const prefix = /^\d{1,3}$/.test(length) ? Number(length) : Infinity;
  const isClear = bytes.every((byte, at) => (byte & (0xff >> Math.min(8, Math.max(0, prefix - 8 * at)))) === 0);
  return prefix <= bits && isClear ? { network, prefix } : null;
}

/** Whether listing the range in ALLOWED_PRIVATE_TARGETS allows anything: false when all of it is `never`. */
export function holdsAllowable(range: AddressRange): boolean {
  return classifyAddress(range.network) !== "never" || PRIVATE.some(({ network }) => contains(range, network));
}

function isIn(ranges: readonly AddressRange[], address: Address): boolean {
  return ranges.some((range) => contains(range, address));
}

/** Throws, so that a typo in the tables below can't pass as an empty range. */
function requireRange(text: string): AddressRange {
  const parsed = parseRange(text);
  if (parsed === null) throw new Error(`${text} is not an address range.`);
  return parsed;
}

const LOOPBACK = ["127.0.0.0/8", "::1"].map(requireRange);

// The tables are ours: ipaddr.js calls some of the metadata services plain unicast.
const NEVER = [
  "0.0.0.0/8", // "this network": reaches loopback on Linux
  "169.254.0.0/16", // link-local, and the metadata service of most clouds
  "224.0.0.0/4", // multicast
  "240.0.0.0/4", // reserved and broadcast
  "192.0.0.0/24", // protocol assignments; Oracle's metadata service
  "100.100.100.200", // Alibaba's metadata service
  "168.63.129.16", // Azure's
  "fd00:ec2::/32", // Amazon's
  "fd20:ce::254", // Google's
  "2001::/23", // protocol assignments, Teredo among them
  "2002::/16", // 6to4 carries any IPv4 address
].map(requireRange);

const PRIVATE = [
  "127.0.0.0/8",
  "10.0.0.0/8",
  "172.16.0.0/12",
  "192.168.0.0/16",
  "100.64.0.0/10", // carrier-grade NAT (RFC 6598)
  "192.0.2.0/24", // documentation (RFC 5737), as are the next two
  "198.51.100.0/24",
  "203.0.113.0/24",
  "198.18.0.0/15", // benchmarks (RFC 2544)
  "192.88.99.0/24", // the old 6to4 relays (RFC 7526)
  "::1",
  "fc00::/7",
  "2001:db8::/32", // documentation (RFC 3849, RFC 9637)
  "3fff::/20",
].map(requireRange);

/** Global unicast (RFC 4291). Mapped, compatible, NAT64, link-local and multicast addresses are outside it. */
const GLOBAL_V6 = requireRange("2000::/3");
