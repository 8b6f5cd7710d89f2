import { ADDRESSES_TRIED_MAX, DNS_TIMEOUT_MS, HOSTS_FILE_BYTES_MAX, LOCAL_DNS_TIMEOUT_MS } from "../core/limits.ts";
import { type Address, parseAddress } from "../core/addresses.ts";
import { classOfName, type ParsedTarget } from "../core/target.ts";
import type { NotSent } from "../core/outcome.ts";
import {
  checkAddress,
  checkName,
  isOwnTarget,
  isOwnTest,
  loopbackAddresses,
  type TargetPolicy,
  type TargetVerdict,
} from "../config/target-policy.ts";
import { hasFreeFile, NO_FILE, afterReading, type Deadline } from "./connections.ts";
import { STOPPED, type Stopped } from "./sender.ts";
// oxlint-disable-next-line no-restricted-imports -- no lookup, but its resolvers, which ask through c-ares and without threads
import { getServers, promises as dns, type ResolverOptions, setServers } from "node:dns";

/** The addresses to try for a target, in order, all of them checked; or why there are none. */
export async function resolveAddresses(
  policy: TargetPolicy,
  target: ParsedTarget,
  deadline: Deadline,
): Promise<readonly Address[] | NotSent | Stopped> {
  const { literal, hostname } = target;
  if (literal !== null) return checked(policy, target, [literal], null);
  const verdict = checkName(policy, hostname);
  if (verdict === "never" || (verdict === "private" && !isOwnTest(policy, target))) return REFUSED[verdict];
  if (classOfName(hostname) === "loopback") {
    return checked(policy, target, loopbackAddresses(policy, hostname), hostname);
  }
  const found = await lookUp(hostname, deadline);
  return "kind" in found ? found : checked(policy, target, found, hostname);
}

/** One forbidden address refuses the whole host, since the owner of the name chose it. */
function checked(
  policy: TargetPolicy,
  target: ParsedTarget,
  addresses: readonly (Address | null)[],
  name: string | null,
): readonly Address[] | NotSent {
  const allowed: Address[] = [];
  let worst: TargetVerdict = "allowed";
  for (const address of addresses) {
    const verdict = address === null ? "never" : checkAddress(policy, address, name);
    if (verdict === "never" || isOwnTarget(policy.own, target, address)) return REFUSED.never;
    if (verdict === "private" && !isOwnTest(policy, target)) worst = "private";
    else if (address !== null) allowed.push(address);
  }
  if (worst === "private") return REFUSED.private;
  return allowed.length === 0 ? NOT_RESOLVED : allowed.slice(0, ADDRESSES_TRIED_MAX);
}

/**
 * Asks DNS through c-ares: the system's resolver has one thread per core, shared with file reads and password hashing,
 * so that 40 names on a slow server blocked everything else for 4 s. A lookup can't be aborted; a late answer is
 * dropped.
 */
function lookUp(hostname: string, deadline: Deadline): Promise<readonly (Address | null)[] | NotSent | Stopped> {
  const { promise, resolve, reject } = Promise.withResolvers<readonly (Address | null)[] | NotSent | Stopped>();
  let anew: dns.Resolver | null = null;
  let isOver = false;
  const ask = (options?: ResolverOptions) => {
    anew = new dns.Resolver(options);
    followServers(anew);
    return askAnew(anew, hostname);
  };
  const find = async () => {
    const isLocal = hostname.endsWith(".local");
    // Neither the file of hosts nor the name servers could be read.
    if (isLocal && !hasFreeFile()) return NO_FILE;
    let known = isLocal ? await inHostsFile(hostname) : [];
    if (isLocal && known.length === 0 && !isOver) known = await ask({ timeout: LOCAL_DNS_TIMEOUT_MS, tries: 1 });
    if (known.length > 0 || isOver) return known;
    const answers = await (isLocal ? onThread(() => (isOver ? [] : lookup(hostname))) : lookup(hostname));
    if (answers !== null) return answers;
    // c-ares reports that it could open no socket as if the server had refused.
    if (!hasFreeFile()) return NO_FILE;
    return isLocal || isOver ? NOT_RESOLVED : ask();
  };
  const giveUp = () => {
    resolve(NOT_RESOLVED);
    // For the next attempt. Without a file to read, a new resolver knows no servers.
    if (hasFreeFile()) followServers(new dns.Resolver());
  };
  const onAbort = () => resolve(deadline.endedBy() === "interrupted" ? STOPPED : TIMED_OUT);
  const cancel = afterReading(DNS_TIMEOUT_MS, giveUp);
  deadline.signal.addEventListener("abort", onAbort);
  find().then(resolve, reject);
  return promise.finally(() => {
    isOver = true;
    cancel();
    anew?.cancel();
    deadline.signal.removeEventListener("abort", onAbort);
  });
}

/** Null: the name has no address, or could not be looked up. */
async function lookup(hostname: string): Promise<readonly (Address | null)[] | null> {
  try {
    const answers = await Bun.dns.lookup(hostname, { backend: "c-ares" });
    return answers.map((answer) => parseAddress(answer.address));
  } catch {
    return null;
  }
}

/** What the machine's file of hosts says of a name, which goes before DNS. */
async function inHostsFile(hostname: string): Promise<readonly (Address | null)[]> {
  const text = await Bun.file("/etc/hosts")
    .slice(0, HOSTS_FILE_BYTES_MAX)
    .text()
    .catch(() => "");
  const lines = text.toLowerCase().split("\n");
  return lines.flatMap((line) => {
    if (!line.includes(hostname)) return [];
    const [address = "", ...names] = (line.split("#", 1)[0] ?? "").trim().split(/\s+/);
    return names.includes(hostname) ? [parseAddress(address)] : [];
  });
}

/** The last lookup on a thread. */
let lastOnThread: Promise<unknown> = Promise.resolve();

/**
 * Bun asks the system's resolver about `.local` whatever the backend, for mDNS. So these names are looked up one at a time, and only
 * if neither the file of hosts nor DNS has an address.
 */
function onThread<Found>(find: () => Found | Promise<Found>): Promise<Found> {
  const found = lastOnThread.then(find);
  lastOnThread = found;
  return found;
}

/** Asks a new resolver, since the usual one remembers for an hour that a name had no address. Never rejects. */
async function askAnew(resolver: dns.Resolver, hostname: string): Promise<readonly (Address | null)[]> {
  const answers = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)]);
  return answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value.map(parseAddress) : []));
}

/**
 * Lets all lookups ask the name servers that the machine has now: the usual resolver reads resolv.conf once, and would keep
 * asking those of a network that this machine has left. Without link-local servers, since their zone is lost here.
 */
function followServers(now: dns.Resolver): void {
  const [servers, before] = [now.getServers(), getServers()].map((all) =>
    all.filter((one) => !one.startsWith("fe80:")),
  );
  if (servers !== undefined && servers.length > 0 && servers.join() !== before?.join()) setServers(servers);
}

const NOT_RESOLVED: NotSent = { kind: "not_sent", fault: "name_not_resolved" };

const TIMED_OUT: NotSent = { kind: "not_sent", fault: "timed_out" };

const REFUSED = {
  never: { kind: "not_sent", fault: "address_never" },
  private: { kind: "not_sent", fault: "address_private" },
} as const satisfies Record<Exclude<TargetVerdict, "allowed">, NotSent>;
