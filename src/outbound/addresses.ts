import { isIPv4, isIPv6 } from "node:net";

/** The bytes of an address, 4 or 16: checks see exactly what is connected to, however it was written. */
export type Address = readonly number[];

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
export function classOf(address: Address): AddressClass {
  return address.length === 4 ? classOfV4(address) : classOfV6(address);
}

/** Whether the address is this machine itself: 127/8 or ::1. */
export function isLoopback(address: Address): boolean {
  return contains(LOOPBACK_V4, address) || contains(LOOPBACK_V6, address);
}

/** Whether the address is in the range. IPv4 and IPv6 never match each other. */
export function contains({ network, prefix }: AddressRange, address: Address): boolean {
  if (network.length !== address.length) return false;
  const whole = prefix >> 3;
  for (let at = 0; at < whole; at += 1) if (network[at] !== address[at]) return false;
  const mask = 0xff00 >> (prefix & 7);
  return (((network[whole] ?? 0) ^ (address[whole] ?? 0)) & mask & 0xff) === 0;
}

/** The bytes of a canonical address; null for anything else, such as one with a zone id (`%eth0`). */
export function parseAddress(text: string): Address | null {
  if (isIPv4(text)) return text.split(".").map(Number);
  return isIPv6(text) && !text.includes("%") ? parseV6(text) : null;
}

/** The address as the host of a URL; IPv6 in brackets. */
export function hostOf(address: Address): string {
  if (address.length === 4) return address.join(".");
  const groups = Array.from({ length: 8 }, (_, at) => word(address, 2 * at).toString(16));
  return `[${groups.join(":")}]`;
}

/** Parses `10.0.0.0/8` or a single address; null when it is neither, or has bits set after its prefix. */
export function parseRange(text: string): AddressRange | null {
  const [name = "", length, ...more] = text.split("/");
  const network = parseAddress(name);
  if (network === null || more.length > 0) return null;
  const bits = 8 * network.length;
  if (length === undefined) return { network, prefix: bits };
  const prefix = /^\d{1,3}$/.test(length) ? Number(length) : Infinity;
  if (prefix > bits || !isClear(network, prefix)) return null;
  return { network, prefix };
}

/** Whether listing the range in ALLOWED_PRIVATE_TARGETS allows anything: false when all of it is `never`. */
export function holdsAllowable(range: AddressRange): boolean {
  if (classOf(range.network) !== "never") return true;
  return [...PRIVATE_V4, ...PRIVATE_V6].some(({ network }) => contains(range, network));
}

function classOfV4(address: Address): AddressClass {
  if (isIn(NEVER_V4, address)) return "never";
  return isIn(PRIVATE_V4, address) ? "private" : "public";
}

/** `never` first: fd00:ec2::/32 is inside fc00::/7. */
function classOfV6(address: Address): AddressClass {
  if (isIn(NEVER_V6, address)) return "never";
  if (isIn(PRIVATE_V6, address)) return "private";
  return contains(GLOBAL_V6, address) ? "public" : "never";
}

function isIn(ranges: readonly AddressRange[], address: Address): boolean {
  for (const range of ranges) if (contains(range, address)) return true;
  return false;
}

function isClear(network: Address, prefix: number): boolean {
  return network.every((byte, at) => (byte & (0xff >> Math.min(8, Math.max(0, prefix - 8 * at)))) === 0);
}

function parseV6(text: string): Address {
  const [head = "", tail] = text.split("::");
  const left = bytesOf(head);
  const right = tail === undefined ? [] : bytesOf(tail);
  return [...left, ...Array.from({ length: 16 - left.length - right.length }, () => 0), ...right];
}

function bytesOf(groups: string): number[] {
  if (groups === "") return [];
  return groups.split(":").flatMap((group) => {
    // The last four bytes may be dotted: ::ffff:127.0.0.1.
    if (group.includes(".")) return group.split(".").map(Number);
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}

function word(address: Address, at: number): number {
  return ((address[at] ?? 0) << 8) | (address[at + 1] ?? 0);
}

/** For the tables below: a typo must not pass as an empty range. */
function rangeOf(text: string): AddressRange {
  const parsed = parseRange(text);
  if (parsed === null) throw new Error(`${text} is not an address range.`);
  return parsed;
}

const LOOPBACK_V4 = rangeOf("127.0.0.0/8");

const LOOPBACK_V6 = rangeOf("::1");

const NEVER_V4 = [
  "0.0.0.0/8", // "this network": reaches loopback on Linux
  "169.254.0.0/16", // link-local, and the metadata service of most clouds
  "224.0.0.0/4", // multicast
  "240.0.0.0/4", // reserved and broadcast
  "192.0.0.0/24", // protocol assignments; Oracle's metadata service
  "100.100.100.200", // Alibaba's metadata service
  "168.63.129.16", // Azure's
].map(rangeOf);

const PRIVATE_V4 = [
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
].map(rangeOf);

/** Global unicast (RFC 4291). Mapped, compatible, NAT64, link-local and multicast addresses are outside it. */
const GLOBAL_V6 = rangeOf("2000::/3");

const NEVER_V6 = [
  "fd00:ec2::/32", // Amazon's metadata service
  "fd20:ce::254", // Google's
  "2001::/23", // protocol assignments, Teredo among them
  "2002::/16", // 6to4 carries any IPv4 address
].map(rangeOf);

const PRIVATE_V6 = ["::1", "fc00::/7", "2001:db8::/32", "3fff::/20"].map(rangeOf);
