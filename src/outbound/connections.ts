import {
  ADDRESSES_TRIED_MAX,
  CONNECTABLE_FRESH_MS,
  CONNECTABLE_REMEMBERED_MAX,
  DNS_TIMEOUT_MS,
  HOSTS_FILE_BYTES_MAX,
  KEPT_CONNECTION_IDLE_MS,
  KEPT_CONNECTION_LIFE_MS,
  KEPT_CONNECTIONS_MAX,
  KEPT_CONNECTIONS_PER_KIND_MAX,
  KEPT_PAUSE_MS,
  KEPT_PAUSES_MAX,
  LOCAL_DNS_TIMEOUT_MS,
} from "../core/limits.ts";
import type { Clock } from "../core/clock.ts";
import { Counts } from "../core/counts.ts";
import { type Address, parseAddress, urlHostOf } from "../core/addresses.ts";
import { RecentMap } from "../core/recent-map.ts";
import { classOfName, type ParsedTarget } from "../core/target.ts";
import type { NotSent } from "../core/outcome.ts";
import { afterReading, type Deadline, type Stopped } from "./deadline.ts";
import {
  checkAddress,
  checkName,
  isOwnTarget,
  isOwnTest,
  loopbackAddresses,
  type TargetPolicy,
  type TargetVerdict,
} from "../config/target-policy.ts";
// oxlint-disable-next-line no-restricted-imports -- no lookup, but its resolvers, which ask through c-ares and without threads
import { getServers, promises as dns, type ResolverOptions, setServers } from "node:dns";
import { closeSync, openSync } from "node:fs";
import { connect } from "node:net";
import { devNull } from "node:os";

/** The calls that may use each other's connections. */
export interface Pool {
  readonly name: string;
  /** Bun keeps a limited number of each kind. */
  readonly kind: string;
}

/** The connection of one call, from `take` to `release`. */
export interface TargetConnection {
  readonly session: Bun.FetchSession;
  /** Null: it ends with the call. */
  readonly pool: Pool | null;
  readonly openedMs: number;
  /** How many calls it carried before. */
  readonly calls: number;
}

interface IdleConnection extends TargetConnection {
  readonly pool: Pool;
  readonly sinceMs: number;
}

/**
 * How a call left its connection. `open`: the whole answer was read, and the target did not announce to close it. `lost`: it
 * ended, or what arrived was no answer. `unfit`: nothing more may be sent on it, for another reason.
 */
export type ConnectionState = "open" | "lost" | "unfit";

/**
 * The pool of one account's calls to one origin at one address. The origin says scheme, port, and the name for which a
 * certificate is checked.
 */
export function poolOf(
  accountId: string,
  { origin, isHttps, hostname, literal }: Pick<ParsedTarget, "origin" | "isHttps" | "hostname" | "literal">,
  address: Address,
): Pool {
  const kind = isHttps ? `https ${literal === null ? hostname : ""}` : "http";
  return { name: `${accountId} ${origin} ${urlHostOf(address)}`, kind };
}

/**
 * Connections to targets, some of which stay open between calls. Each has one call at a time: no other call gets it before the answer
 * was read to the end. Bun closes an idle connection on which anything arrives, and checks that again just before it writes.
 */
export class Connections {
  readonly #clock: Pick<Clock, "monotonicMs" | "after">;
  readonly #fresh: TargetConnection;
  /** Idle connections, the longest idle first. */
  readonly #idle = new Set<IdleConnection>();
  /** Idle connections by pool, in the same order. */
  readonly #pools = new Map<string, IdleConnection[]>();
  /** Connections of each kind, in use or idle. */
  readonly #ofKind = new Counts();
  #open = 0;
  /** Pools that keep nothing for now. */
  readonly #pausedUntilMs = new RecentMap<number>(KEPT_PAUSES_MAX);
  #cancelSweep: (() => void) | null = null;
  #isClosed = false;

  constructor(clock: Pick<Clock, "monotonicMs" | "after">) {
    this.#clock = clock;
    this.#fresh = { session: new Bun.FetchSession({ keepAlive: false }), pool: null, openedMs: 0, calls: 0 };
  }

  hasIdle(pool: Pool | null): boolean {
    return this.#latestOf(pool) !== null;
  }

  /**
   * The pool's last used connection, or a new one. Without a pool, or at the limit, the new one ends with the call. None is
   * closed to make room, since a connection that we close occupies one of our ports for a minute.
   */
  take(pool: Pool | null): TargetConnection {
    if (pool === null || !this.#keeps(pool)) return this.#fresh;
    const latest = this.#latestOf(pool);
    if (latest !== null) {
      this.#remove(latest);
      return latest;
    }
    const isFull = this.#open >= KEPT_CONNECTIONS_MAX || this.#ofKind.of(pool.kind) >= KEPT_CONNECTIONS_PER_KIND_MAX;
    if (isFull) return this.#fresh;
    this.#ofKind.add(pool.kind);
    this.#open += 1;
    // Bun's own coarse timer closes connections that would be forgotten here.
    const keepAlive = { idleTimeout: KEPT_CONNECTION_IDLE_MS / 1_000, maxIdleSockets: 1 };
    return { session: new Bun.FetchSession({ keepAlive }), pool, openedMs: this.#clock.monotonicMs(), calls: 0 };
  }

  /**
   * Gives a connection back after the call. If one with earlier calls was lost, the target closes connections without
   * announcing it, so its pool keeps none for a while: otherwise, many calls would end as unknown.
   */
  release({ session, pool, openedMs, calls }: TargetConnection, state: ConnectionState): void {
    if (pool === null) return;
    const nowMs = this.#clock.monotonicMs();
    if (state === "lost" && calls > 0) this.#pause(pool, nowMs);
    const isOver = state !== "open" || nowMs - openedMs >= KEPT_CONNECTION_LIFE_MS || !this.#keeps(pool);
    if (isOver) this.#end(session, pool);
    else this.#add({ session, pool, openedMs, calls: calls + 1, sinceMs: nowMs });
  }

  /** Closes idle connections, and keeps none from now on. */
  close(): void {
    this.#isClosed = true;
    this.#cancelSweep?.();
    for (const connection of this.#idle) this.#discard(connection);
  }

  #keeps({ name }: Pool): boolean {
    const untilMs = this.#pausedUntilMs.get(name);
    return !this.#isClosed && (untilMs === undefined || this.#clock.monotonicMs() >= untilMs);
  }

  #latestOf(pool: Pool | null): IdleConnection | null {
    const latest = pool === null ? undefined : this.#pools.get(pool.name)?.at(-1);
    // The sweep may be late.
    return latest !== undefined && this.#idleMsOf(latest) < KEPT_CONNECTION_IDLE_MS ? latest : null;
  }

  #idleMsOf({ sinceMs }: IdleConnection): number {
    return this.#clock.monotonicMs() - sinceMs;
  }

  #add(connection: IdleConnection): void {
    this.#idle.add(connection);
    const others = this.#pools.get(connection.pool.name);
    if (others === undefined) this.#pools.set(connection.pool.name, [connection]);
    else others.push(connection);
    this.#cancelSweep ??= this.#clock.after(KEPT_CONNECTION_IDLE_MS, () => this.#sweep());
  }

  #sweep(): void {
    this.#cancelSweep = null;
    for (const connection of this.#idle) {
      const leftMs = KEPT_CONNECTION_IDLE_MS - this.#idleMsOf(connection);
      if (leftMs > 0) {
        this.#cancelSweep = this.#clock.after(leftMs, () => this.#sweep());
        return;
      }
      this.#discard(connection);
    }
  }

  #pause({ name }: Pool, nowMs: number): void {
    for (const connection of this.#pools.get(name)?.slice() ?? []) this.#discard(connection);
    this.#pausedUntilMs.set(name, nowMs + KEPT_PAUSE_MS);
  }

  #discard(connection: IdleConnection): void {
    this.#remove(connection);
    this.#end(connection.session, connection.pool);
  }

  #remove(connection: IdleConnection): void {
    this.#idle.delete(connection);
    const { name } = connection.pool;
    const pooled = this.#pools.get(name) ?? [];
    pooled.splice(pooled.lastIndexOf(connection), 1);
    if (pooled.length === 0) this.#pools.delete(name);
  }

  #end(session: Bun.FetchSession, { kind }: Pool): void {
    session.close();
    this.#open -= 1;
    this.#ofKind.remove(kind);
  }
}

/** The addresses to try for a target, in order, all of them checked; or why there are none. */
export async function addressesOf(
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

/** Whether this process, and its machine, may open one more file or connection now. */
export function hasFreeFile(): boolean {
  try {
    closeSync(openSync(devNull, "r"));
    return true;
  } catch (error) {
    return !isNoFile(error);
  }
}

/** Whether an error says that this process, or its machine, has too many files open. */
export function isNoFile(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "EMFILE" || error.code === "ENFILE");
}

/** The connection was never begun: the call can be made as soon as a file is free. */
export const NO_FILE: NotSent = { kind: "not_sent", fault: "no_file" };

const NOT_RESOLVED: NotSent = { kind: "not_sent", fault: "name_not_resolved" };

const TIMED_OUT: NotSent = { kind: "not_sent", fault: "timed_out" };

export const STOPPED: Stopped = { kind: "stopped" };

const REFUSED = {
  never: { kind: "not_sent", fault: "address_never" },
  private: { kind: "not_sent", fault: "address_private" },
} as const satisfies Record<Exclude<TargetVerdict, "allowed">, NotSent>;

interface ProbeLimits {
  readonly limitMs: number;
  /** Ends the probe early; then the address counts as silent. */
  readonly signal: AbortSignal;
}

/**
 * Tells a silent address from one that accepts or refuses connections, before a request is sent. Without this, a call that ends
 * without an answer may have connected and must count as sent, even if a name has one address, since Bun reports both alike. (With
 * https, `tls.checkServerIdentity` is called before anything is written, but it would replace the check of the certificate's name.)
 */
export class ConnectionProbe {
  readonly #nowMs: () => number;
  readonly #probe: typeof isSilent;
  /** The time of the last answer, by address and port. */
  readonly #answeredAtMs = new RecentMap<number>(CONNECTABLE_REMEMBERED_MAX);

  constructor(nowMs: () => number = () => performance.now(), probe = isSilent) {
    this.#nowMs = nowMs;
    this.#probe = probe;
  }

  /** Whether the address does not answer. One that answered a call recently is not probed again. Never rejects. */
  async isSilent(address: Address, port: number, limits: ProbeLimits): Promise<boolean> {
    const answeredMs = this.#answeredAtMs.get(nameOf(address, port)) ?? Number.NEGATIVE_INFINITY;
    return this.#nowMs() - answeredMs >= CONNECTABLE_FRESH_MS && this.#probe(address, port, limits);
  }

  /** Records how a call to the address ended. */
  learn(address: Address, port: number, isAnswered: boolean): void {
    const name = nameOf(address, port);
    if (isAnswered) this.#answeredAtMs.set(name, this.#nowMs());
    else this.#answeredAtMs.delete(name);
  }
}

/**
 * Opens a connection, sends nothing and closes it. The call itself finds out why one fails, since Bun reports ECONNREFUSED for
 * any failure here. Not with `Bun.connect`, which can't end a connection that is not established and keeps it for two minutes.
 */
function isSilent(address: Address, port: number, { limitMs, signal }: ProbeLimits): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host: address.toString(), port });
  const giveUp = () => resolve(true);
  const onAnswer = () => resolve(false);
  const cancel = afterReading(limitMs, giveUp);
  signal.addEventListener("abort", giveUp);
  // Listeners stay: an error without a listener would throw.
  socket.on("connect", onAnswer).on("error", onAnswer).on("close", onAnswer);
  if (signal.aborted) giveUp();
  return promise.finally(() => {
    cancel();
    signal.removeEventListener("abort", giveUp);
    socket.destroy();
  });
}

function nameOf(address: Address, port: number): string {
  return `${urlHostOf(address)}:${port}`;
}
