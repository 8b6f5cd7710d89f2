import {
  type Address,
  type AddressRange,
  classOf,
  contains,
  holdsAllowable,
  isLoopback,
  parseAddress,
  parseRange,
  hostOf,
} from "./addresses.ts";
import { normalHost, classOfName, isHostName, type NormalTarget, normalTarget } from "./normal-target.ts";
import { networkInterfaces } from "node:os";
import { INTERFACES_FRESH_MS } from "../config/limits.ts";

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
interface BadPolicy {
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

/** Where this service itself answers. An action to it could make actions without end. */
interface OwnOrigins {
  /** The hosts of `BASE_URL` and `HOST`, in their normal form. */
  readonly hostnames: ReadonlySet<string>;
  /** Those of them that are addresses: another name may stand for one, also where NAT keeps it off our interfaces. */
  readonly addresses: ReadonlySet<string>;
  /** The port that we listen on, and that of `BASE_URL`. Each counts at each of our hosts. */
  readonly ports: ReadonlySet<number>;
  /** Addresses of this machine's interfaces now: they come and go while the service runs. */
  readonly machineAddresses: () => readonly string[];
}

/** Reads origins such as `http://127.0.0.1:3000`; 0.0.0.0 and [::] stand for this machine. Null when one is none. */
function parseOwnOrigins(
  origins: readonly string[],
  machineAddresses: () => readonly string[] = createInterfaceAddresses(),
): OwnOrigins | null {
  const targets = origins.map(normalTarget);
  if (!targets.every((target) => target !== null)) return null;
  const literals = targets.map(literalOf).filter((address) => address !== null);
  return {
    hostnames: new Set(targets.map(({ hostname }) => hostname)),
    addresses: new Set(literals.map(hostOf)),
    ports: new Set(targets.flatMap(portsOf)),
    machineAddresses,
  };
}

/**
 * Whether a call would come back to a route of ours that changes something; `address` is what the host stands for, where
 * that is known.
 */
export function isOwnTarget(own: OwnOrigins, target: NormalTarget, address: Address | null): boolean {
  if (!own.ports.has(target.port) || !isOwnPath(target.pathname)) return false;
  if (own.hostnames.has(target.hostname)) return true;
  return address === null ? classOfName(target.hostname) === "loopback" : isOurAddress(own, address);
}

function isOurAddress(own: OwnOrigins, address: Address): boolean {
  if (isThisMachine(address) || own.addresses.has(hostOf(address))) return true;
  return own.machineAddresses().some((text) => isSame(parseAddress(text), address));
}

function isThisMachine(address: Address): boolean {
  return isLoopback(address) || address.every((byte) => byte === 0);
}

function isSame(one: Address | null, other: Address): boolean {
  return one !== null && hostOf(one) === hostOf(other);
}

/** Without a port both schemes lead to us: a plain address is usually redirected to the other. */
function portsOf(target: NormalTarget): readonly number[] {
  const address = literalOf(target);
  const isLocal = address === null ? classOfName(target.hostname) === "loopback" : isThisMachine(address);
  return isLocal || target.host !== target.hostname ? [target.port] : [80, 443];
}

function literalOf({ hostname }: NormalTarget): Address | null {
  return parseAddress(hostname.replace(/^\[(.*)\]$/, "$1"));
}

/** As the system tells them, asked at most once in `INTERFACES_FRESH_MS`: most calls to an API go to a path of /v1. */
function createInterfaceAddresses(): () => readonly string[] {
  let known: readonly string[] = [];
  let askedAtMs = Number.NEGATIVE_INFINITY;
  return () => {
    const nowMs = performance.now();
    if (nowMs - askedAtMs >= INTERFACES_FRESH_MS) {
      const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
      // A link-local one is written with its zone by some systems; its address is what counts.
      known = all.map(({ address }) => address.split("%", 1)[0] ?? "");
      askedAtMs = nowMs;
    }
    return known;
  };
}

/** Whether a path leads to what changes state here. Letters in any case and coding, to be on the safe side. */
function isOwnPath(pathname: string): boolean {
  return OWN_PATH.test(pathname.includes("%") ? decoded(pathname) : pathname);
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
