import {
  type Address,
  addressOfHost,
  type AddressRange,
  classifyAddress,
  contains,
  holdsAllowable,
  isLoopback,
  parseAddress,
  parseRange,
  urlHost,
} from "../core/addresses.ts";
import {
  classOfName,
  isHostName,
  normalHost,
  type NormalTarget,
  normalTarget,
  type ParsedTarget,
  parseTarget,
  type RefusedTarget,
} from "../core/target.ts";
import { networkInterfaces } from "node:os";
import { INTERFACES_FRESH_MS } from "../core/limits.ts";

export interface TargetPolicySettings {
  /** CIDRs, single addresses and host names (ALLOWED_PRIVATE_TARGETS). */
  readonly allowedPrivateTargets: readonly string[];
  /** Whether `HOST` is loopback and `BASE_URL` is unset or loopback. */
  readonly loopbackAllowed: boolean;
  /** `BASE_URL`, and the address and port listened on, as origins: `http://127.0.0.1:3000`. */
  readonly ownOrigins: readonly string[];
  /**
   * Origins whose `TEST_PATH` may be called even at a private address, since only this service answers there. Maps each to the
   * origin that reaches it from here: in a container, BASE_URL may name the machine outside.
   */
  readonly testOrigins?: ReadonlyMap<string, string>;
  /** Addresses of this machine's interfaces; by default the operating system's. */
  readonly machineAddresses?: () => readonly string[];
}

/** Where calls may go. Parsed once, checked for every action and every attempt. */
export interface TargetPolicy {
  readonly ranges: readonly AddressRange[];
  readonly names: ReadonlySet<string>;
  readonly loopbackAllowed: boolean;
  readonly own: OwnOrigins;
  readonly tests: ReadonlyMap<string, ParsedTarget>;
  /** ALLOWED_PRIVATE_TARGETS as written, for display. */
  readonly listed: readonly string[];
}

/** Everything wrong with the settings, one sentence each. */
interface BadPolicy {
  readonly problems: readonly string[];
}

export type TargetVerdict = "allowed" | "never" | "private";

/** Parses the settings, or returns every problem in them. */
export function parseTargetPolicy(settings: TargetPolicySettings): TargetPolicy | BadPolicy {
  const listed = settings.allowedPrivateTargets.map((entry) => entry.trim().toLowerCase());
  const entries = listed.map(parseEntry);
  const own = parseOwnOrigins(settings.ownOrigins, settings.machineAddresses);
  const problems = entries.flatMap((entry) => ("fault" in entry ? [`ALLOWED_PRIVATE_TARGETS ${entry.fault}.`] : []));
  if (own === null) problems.push("An own origin is not an http or https URL.");
  if (problems.length > 0 || own === null) return { problems };
  return {
    ranges: entries.flatMap((entry) => ("range" in entry ? [entry.range] : [])),
    names: new Set(entries.flatMap((entry) => ("name" in entry ? [entry.name] : []))),
    loopbackAllowed: settings.loopbackAllowed,
    own,
    tests: testTargets(settings.testOrigins ?? new Map()),
    listed,
  };
}

/**
 * The policy for a service that the operator has set, such as a mail provider. Its own address and those in `listed` may be
 * private, but metadata addresses are still refused. Throws an error that names the setting.
 */
export function providerPolicy(url: string, setting: string, listed: readonly string[] = []): TargetPolicy {
  const { hostname } = new URL(url);
  const policyWith = (allowedPrivateTargets: readonly string[]) =>
    parseTargetPolicy({ allowedPrivateTargets, loopbackAllowed: true, ownOrigins: [] });
  const policy = policyWith([...listed, hostname]);
  // Only a private host can be listed. A forbidden host is refused when it is called.
  const plain = "problems" in policy ? policyWith(listed) : policy;
  if ("problems" in plain) throw new Error(`${setting} can't be used: ${plain.problems.join(" ")}`);
  return plain;
}

/** One sentence for the log at the start: which policy applies. */
export function describeTargetPolicy({ loopbackAllowed, listed }: TargetPolicy): string {
  const opened = [...(loopbackAllowed ? ["loopback (this server listens only there)"] : []), ...listed];
  return `Calls may go to public addresses${opened.length === 0 ? " only" : ` and to ${opened.join(", ")}`}.`;
}

/** Allows only public addresses, whatever the settings say: for addresses that strangers choose. */
export function publicPolicy(): TargetPolicy {
  const policy = parseTargetPolicy({ allowedPrivateTargets: [], loopbackAllowed: false, ownOrigins: [] });
  if ("problems" in policy) throw new Error(policy.problems.join(" "));
  return policy;
}

/** Checks an address that `name` resolved to, or a literal one if `name` is null. */
export function checkAddress(policy: TargetPolicy, address: Address, name: string | null): TargetVerdict {
  const addressClass = classifyAddress(address);
  if (addressClass !== "private") return addressClass === "public" ? "allowed" : "never";
  if (name !== null && policy.names.has(name)) return "allowed";
  // Other names that resolve to loopback may be DNS rebinding.
  const isLocal = name === null || classOfName(name) === "loopback";
  if (policy.loopbackAllowed && isLocal && isLoopback(address)) return "allowed";
  return policy.ranges.some((range) => contains(range, address)) ? "allowed" : "private";
}

/** Checks a name before it is resolved; its addresses are checked too. */
export function checkName(policy: TargetPolicy, name: string): TargetVerdict {
  const nameClass = classOfName(name);
  if (nameClass === "never") return "never";
  if (nameClass === "public" || policy.names.has(name)) return "allowed";
  if (nameClass === "loopback") return loopbackAddresses(policy, name).length > 0 ? "allowed" : "private";
  return policy.ranges.length > 0 ? "allowed" : "private";
}

/** The allowed loopback addresses of a localhost name (RFC 6761, 6.3), without asking DNS. */
export function loopbackAddresses(policy: TargetPolicy, name: string): readonly Address[] {
  return LOOPBACK.filter((address) => checkAddress(policy, address, name) === "allowed");
}

/** Whether a credential may go to a name without TLS. Each address is checked again before sending. */
export function mayGoPlain({ names, ranges }: TargetPolicy, { hostname, literal }: ParsedTarget): boolean {
  if (literal !== null) return isPrivateAddress(literal);
  // A public name may still resolve to a private address that is listed.
  return classOfName(hostname) !== "public" || names.has(hostname) || ranges.length > 0;
}

export function isPrivateAddress(address: Address): boolean {
  return classifyAddress(address) === "private";
}

const LOOPBACK = ["127.0.0.1", "::1"].flatMap((text) => parseAddress(text) ?? []);

interface CheckedTarget {
  /** ASCII, lower case, no trailing dot, IPv6 in brackets, like `Action.hostname`. */
  readonly hostname: string;
  /** Host name, with the port unless it is the scheme's default. */
  readonly host: string;
}

/** Checks a URL against the target policy, without resolving its name. */
export type CheckTarget = (url: string) => CheckedTarget | RefusedTarget;

/** Checks the text of a URL. Addresses are checked at each attempt. A refusal reads on from the field's name. */
export function checkTarget(policy: TargetPolicy, url: string): CheckedTarget | RefusedTarget {
  const target = parseTarget(url);
  if ("refused" in target) return target;
  const { hostname, host, literal } = target;
  if (isOwnTarget(policy.own, target, literal)) {
    return { refused: `Leads back to this service: of its own addresses calls may reach only ${TEST_PATH}.` };
  }
  const verdict = literal === null ? checkName(policy, hostname) : checkAddress(policy, literal, null);
  if (verdict === "allowed" || (verdict === "private" && isOwnTest(policy, target))) return { hostname, host };
  return { refused: (literal === null ? NAME_REFUSED : ADDRESS_REFUSED)[verdict] };
}

const ADDRESS_REFUSED = {
  never:
    "Points to an address that is never allowed (link-local, metadata, multicast or reserved); no setting opens it.",
  private: "Points to a private address; only those listed in ALLOWED_PRIVATE_TARGETS are allowed.",
} as const;

const NAME_REFUSED = {
  never: "Has a host name that is never allowed (metadata or .onion); no setting opens it.",
  private: "Has a private host name; only those listed in ALLOWED_PRIVATE_TARGETS are allowed.",
} as const;

type Entry = { readonly range: AddressRange } | { readonly name: string } | { readonly fault: string };

/** Why an entry of ALLOWED_PRIVATE_TARGETS can't be used, in words that follow the setting's name; null if it can. */
export function privateTargetFault(entry: string): string | null {
  const parsed = parseEntry(entry.trim().toLowerCase());
  return "fault" in parsed ? parsed.fault : null;
}

function parseEntry(entry: string): Entry {
  const faulty = (why: string) => ({ fault: `has the entry ${JSON.stringify(entry)}, which ${why}` });
  const range = parseRange(entry.replace(/^\[(.*)\]$/, "$1"));
  if (range !== null) {
    return holdsAllowable(range) ? { range } : faulty("can never be allowed");
  }
  if (/^[\d.:a-f]+\/\d+$/.test(entry)) {
    return faulty("is not an address range: write it as 10.0.0.0/8, with no bits set behind the prefix");
  }
  const name = normalHost(entry);
  // URL parsers read `127.1` and `0x7f000001` as addresses, so as names they would never match.
  if (name === null || !isHostName(name) || parseAddress(name) !== null) {
    return faulty("is not an address range, address or host name (without scheme, port and *)");
  }
  return classOfName(name) === "never" ? faulty("can never be allowed") : { name };
}

/** Where this service listens. An action that calls it could create actions without end. */
interface OwnOrigins {
  /** The hosts of `BASE_URL` and `HOST`, in their normal form. */
  readonly hostnames: ReadonlySet<string>;
  /** Our hosts that are addresses. Another name may resolve to one, even if NAT hides it from our interfaces. */
  readonly addresses: ReadonlySet<string>;
  /** The ports of `BASE_URL` and of `PORT`. Each applies to all of our hosts. */
  readonly ports: ReadonlySet<number>;
  /** Only this service answers at these ports, the ones listened on, and at the host and port of `BASE_URL`. */
  readonly onlyOurPorts: ReadonlySet<number>;
  readonly onlyOurHosts: ReadonlySet<string>;
  /** The addresses of this machine's interfaces, which change while the service runs. */
  readonly machineAddresses: () => readonly string[];
}

/** Parses origins such as `http://127.0.0.1:3000`; 0.0.0.0 and [::] mean this machine. Null when one is invalid. */
function parseOwnOrigins(
  origins: readonly string[],
  machineAddresses: () => readonly string[] = createInterfaceAddresses(),
): OwnOrigins | null {
  const targets = origins.map(normalTarget);
  if (!targets.every((target) => target !== null)) return null;
  const literals = targets.map(({ hostname }) => addressOfHost(hostname)).filter((address) => address !== null);
  return {
    hostnames: new Set(targets.map(({ hostname }) => hostname)),
    addresses: new Set(literals.map(urlHost)),
    ports: new Set(targets.flatMap(possiblePorts)),
    onlyOurPorts: new Set(targets.filter(isLocalHost).map(({ port }) => port)),
    onlyOurHosts: new Set(targets.flatMap((target) => possiblePorts(target).map((port) => hostAt(target, port)))),
    machineAddresses,
  };
}

/** The path of ours that calls may reach, so that people can test the service with itself. It changes nothing. */
const TEST_PATH = "/health";

function testTargets(origins: ReadonlyMap<string, string>): ReadonlyMap<string, ParsedTarget> {
  const tests = new Map<string, ParsedTarget>();
  for (const [origin, reachedAt] of origins) {
    const target = parseTarget(reachedAt + TEST_PATH);
    const named = normalTarget(origin);
    if (named !== null && !("refused" in target)) tests.set(named.origin + TEST_PATH, target);
  }
  return tests;
}

/** Whether a call goes to our test path. Its address may be private: in a container it has no other. */
export function isOwnTest(policy: TargetPolicy, target: NormalTarget): boolean {
  return policy.tests.has(target.origin + target.rest);
}

/** Where a call really goes: to its target, or for our test path to the address that we listen on. */
export function reachedTarget(policy: TargetPolicy, target: ParsedTarget): ParsedTarget {
  return policy.tests.get(target.origin + target.rest) ?? target;
}

/**
 * Whether a call would reach this service. `address` is what the host resolved to, if known. At the port of `BASE_URL`, a
 * proxy may serve other sites too: under their names, only the paths of our routes that change state count as ours.
 */
export function isOwnTarget(own: OwnOrigins, target: NormalTarget, address: Address | null): boolean {
  if (!own.ports.has(target.port) || target.rest === TEST_PATH) return false;
  const isOnlyOurs = own.onlyOurPorts.has(target.port) || own.onlyOurHosts.has(hostAt(target, target.port));
  if (!isOnlyOurs && !isOwnPath(target.pathname)) return false;
  if (own.hostnames.has(target.hostname)) return true;
  return address === null ? classOfName(target.hostname) === "loopback" : isOurAddress(own, address);
}

function isOurAddress(own: OwnOrigins, address: Address): boolean {
  const host = urlHost(address);
  if (isThisMachine(address) || own.addresses.has(host)) return true;
  return own.machineAddresses().some((text) => {
    const other = parseAddress(text);
    return other !== null && urlHost(other) === host;
  });
}

function isThisMachine(address: Address): boolean {
  return isLoopback(address) || address.toByteArray().every((byte) => byte === 0);
}

/** The ports of a URL. Without one both defaults count, since http usually redirects to https. */
function possiblePorts(target: NormalTarget): readonly number[] {
  return isLocalHost(target) || target.host !== target.hostname ? [target.port] : [80, 443];
}

function isLocalHost({ hostname }: NormalTarget): boolean {
  const address = addressOfHost(hostname);
  return address === null ? classOfName(hostname) === "loopback" : isThisMachine(address);
}

function hostAt({ hostname }: NormalTarget, port: number): string {
  return `${hostname}:${port}`;
}

/** The addresses of our interfaces, read at most once per `INTERFACES_FRESH_MS`. */
function createInterfaceAddresses(): () => readonly string[] {
  let cached: readonly string[] = [];
  let readAtMs = Number.NEGATIVE_INFINITY;
  return () => {
    const nowMs = performance.now();
    if (nowMs - readAtMs >= INTERFACES_FRESH_MS) {
      const all = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
      // Some systems append the zone to link-local addresses.
      cached = all.map(({ address }) => address.split("%", 1)[0] ?? "");
      readAtMs = nowMs;
    }
    return cached;
  };
}

/** Whether a path leads to a route of ours that changes state, in any case and encoding. */
function isOwnPath(pathname: string): boolean {
  return OWN_PATH.test(pathname.includes("%") ? decoded(pathname) : pathname);
}

/** Decodes a path, but leaves invalid encoding alone, as our router does. */
function decoded(pathname: string): string {
  try {
    return decodeURIComponent(pathname);
  } catch {
    return pathname;
  }
}

const OWN_PATH = /^\/(v1|auth|mcp|a)(\/|$)/i;
