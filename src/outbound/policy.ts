import {
  type Address,
  type AddressRange,
  classOf,
  contains,
  holdsAllowable,
  isLoopback,
  parseAddress,
  parseRange,
} from "./address.ts";
import { normalHost } from "../domain/normal-target.ts";
import { classOfName, isHostName } from "./host-name.ts";
import { type OwnOrigins, parseOwnOrigins } from "./own-origin.ts";

/** What the settings say about targets. */
export interface PolicySettings {
  /** CIDRs, single addresses and host names (ALLOWED_PRIVATE_TARGETS). */
  readonly allowedPrivateTargets: readonly string[];
  /** `HOST` is loopback and `BASE_URL` is unset or loopback (decisions 10). */
  readonly loopbackAllowed: boolean;
  /** `BASE_URL`, and the address and port listened on, as origins: `http://127.0.0.1:3000`. */
  readonly ownOrigins: readonly string[];
  /** Addresses of this machine's interfaces; as the system tells them unless it is said. */
  readonly machineAddresses?: () => readonly string[];
}

/** Where calls may go: read once, asked for every action and every attempt. */
export interface TargetPolicy {
  readonly ranges: readonly AddressRange[];
  readonly names: ReadonlySet<string>;
  readonly loopbackAllowed: boolean;
  readonly own: OwnOrigins;
  /** What was listed, for people. */
  readonly listed: readonly string[];
}

/** Everything that is wrong with the settings, a sentence each. */
export interface BadPolicy {
  readonly problems: readonly string[];
}

export type Verdict = "allowed" | "never" | "private";

/** Reads the settings; what can't be read is told, all of it at once. */
export function parsePolicy(settings: PolicySettings): TargetPolicy | BadPolicy {
  const listed = settings.allowedPrivateTargets.map((entry) => entry.trim().toLowerCase());
  const entries = listed.map(parseEntry);
  const own = parseOwnOrigins(settings.ownOrigins, settings.machineAddresses);
  const problems = entries.flatMap((entry) => ("problem" in entry ? [entry.problem] : []));
  if (own === null) problems.push("An own origin is not an http or https URL.");
  if (problems.length > 0 || own === null) return { problems };
  return {
    ranges: entries.flatMap((entry) => ("range" in entry ? [entry.range] : [])),
    names: new Set(entries.flatMap((entry) => ("name" in entry ? [entry.name] : []))),
    loopbackAllowed: settings.loopbackAllowed,
    own,
    listed,
  };
}

/** One sentence for the start log: which policy is in force (hostile 3). */
export function describePolicy({ loopbackAllowed, listed }: TargetPolicy): string {
  const opened = [...(loopbackAllowed ? ["loopback (this server listens only there)"] : []), ...listed];
  return `Calls may go to public addresses${opened.length === 0 ? " only" : ` and to ${opened.join(", ")}`}.`;
}

/** Judges an address, alone or as one that a name stands for. */
export function checkAddress(policy: TargetPolicy, address: Address, name: string | null): Verdict {
  const addressClass = classOf(address);
  if (addressClass !== "private") return addressClass === "public" ? "allowed" : "never";
  if (name !== null && policy.names.has(name)) return "allowed";
  // Only a literal or a localhost name: another name that resolves to loopback was not meant to be local.
  const isLocal = name === null || classOfName(name) === "loopback";
  if (policy.loopbackAllowed && isLocal && isLoopback(address)) return "allowed";
  return policy.ranges.some((range) => contains(range, address)) ? "allowed" : "private";
}

/** Judges a name before it is resolved; what it resolves to is judged besides. */
export function checkName(policy: TargetPolicy, name: string): Verdict {
  const nameClass = classOfName(name);
  if (nameClass === "never") return "never";
  if (nameClass === "public" || policy.names.has(name)) return "allowed";
  if (nameClass === "loopback") return loopbackAddresses(policy, name).length > 0 ? "allowed" : "private";
  return policy.ranges.length > 0 ? "allowed" : "private";
}

/** What a localhost name stands for (RFC 6761, 6.3), as far as it is allowed; DNS is not asked. */
export function loopbackAddresses(policy: TargetPolicy, name: string): readonly Address[] {
  return LOOPBACK.filter((address) => checkAddress(policy, address, name) === "allowed");
}

const LOOPBACK: readonly Address[] = [
  [127, 0, 0, 1],
  [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
];

type Entry = { readonly range: AddressRange } | { readonly name: string } | { readonly problem: string };

function parseEntry(entry: string): Entry {
  const quoted = JSON.stringify(entry);
  const range = parseRange(entry.replace(/^\[(.*)\]$/, "$1"));
  if (range !== null) {
    if (!holdsAllowable(range)) return { problem: `ALLOWED_PRIVATE_TARGETS: ${quoted} can never be allowed.` };
    return { range };
  }
  if (/^[\d.:a-f]+\/\d+$/.test(entry)) {
    return {
      problem: `ALLOWED_PRIVATE_TARGETS: ${quoted} is no range: write it as 10.0.0.0/8, no bits set behind the prefix.`,
    };
  }
  const name = normalHost(entry);
  // `127.1` and `0x7f000001` are addresses to the parser of URLs: as a name they would never match.
  if (name === null || !isHostName(name) || parseAddress(name) !== null) {
    return { problem: `ALLOWED_PRIVATE_TARGETS: ${quoted} is no CIDR, address or host name (no scheme, port or *).` };
  }
  if (classOfName(name) === "never") return { problem: `ALLOWED_PRIVATE_TARGETS: ${quoted} can never be allowed.` };
  return { name };
}
