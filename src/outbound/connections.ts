import {
  CONNECTABLE_FRESH_MS,
  CONNECTABLE_REMEMBERED_MAX,
  KEPT_CONNECTION_IDLE_MS,
  KEPT_CONNECTION_LIFE_MS,
  KEPT_CONNECTIONS_MAX,
  KEPT_CONNECTIONS_PER_KIND_MAX,
  KEPT_PAUSE_MS,
  KEPT_PAUSES_MAX,
  DEADLINE_LATE_MS,
  DEADLINE_LATE_SHARE,
  DEADLINE_TURN_MS,
  DEADLINE_TURNS,
  DEADLINE_TURNS_LATE,
  DEADLINE_TURNS_MAX,
} from "../core/limits.ts";
import type { Clock } from "../core/clock.ts";
import { Counts, RecentMap } from "../core/maps.ts";
import { type Address, urlHost } from "../core/addresses.ts";
import type { ParsedTarget } from "../core/target.ts";
import type { NotSent } from "../core/outcome.ts";
import { closeSync, openSync } from "node:fs";
import { connect } from "node:net";
import { devNull } from "node:os";
import type { SendLimits } from "./sender.ts";

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
export function poolFor(
  accountId: string,
  { origin, isHttps, hostname, literal }: Pick<ParsedTarget, "origin" | "isHttps" | "hostname" | "literal">,
  address: Address,
): Pool {
  const kind = isHttps ? `https ${literal === null ? hostname : ""}` : "http";
  return { name: `${accountId} ${origin} ${urlHost(address)}`, kind };
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
    return this.#takeLatest(pool) !== null;
  }

  /**
   * The pool's last used connection, or a new one. Without a pool, or at the limit, the new one ends with the call. None is
   * closed to make room, since a connection that we close occupies one of our ports for a minute.
   */
  take(pool: Pool | null): TargetConnection {
    if (pool === null || !this.#keeps(pool)) return this.#fresh;
    const latest = this.#takeLatest(pool);
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

  #takeLatest(pool: Pool | null): IdleConnection | null {
    const latest = pool === null ? undefined : this.#pools.get(pool.name)?.at(-1);
    // The sweep may be late.
    return latest !== undefined && this.#idleMs(latest) < KEPT_CONNECTION_IDLE_MS ? latest : null;
  }

  #idleMs({ sinceMs }: IdleConnection): number {
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
      const leftMs = KEPT_CONNECTION_IDLE_MS - this.#idleMs(connection);
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
    const answeredMs = this.#answeredAtMs.get(endpointName(address, port)) ?? Number.NEGATIVE_INFINITY;
    return this.#nowMs() - answeredMs >= CONNECTABLE_FRESH_MS && this.#probe(address, port, limits);
  }

  /** Records how a call to the address ended. */
  learn(address: Address, port: number, isAnswered: boolean): void {
    const name = endpointName(address, port);
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

function endpointName(address: Address, port: number): string {
  return `${urlHost(address)}:${port}`;
}

/** Why we ended an attempt early; null while we did not. */
export type EarlyEnd = "timed_out" | "interrupted" | null;

/**
 * One deadline and one stop signal for a whole attempt: resolving, finding an address, connecting, TLS, sending and
 * reading.
 */
export interface Deadline {
  readonly signal: AbortSignal;
  endedBy(): EarlyEnd;
  /** Milliseconds until it aborts; never less than 0. */
  leftMs(): number;
  /** Releases the timer and the stop signal. Call it at the end of every attempt. */
  close(): void;
}

/**
 * Starts the deadline, which ends after `timeoutMs` or when `stop` aborts. Its signal then aborts; after a timeout, only once
 * what had arrived was read, since a process that was frozen gets its timers before its sockets.
 */
export function openDeadline({ timeoutMs, stop }: SendLimits): Deadline {
  const controller = new AbortController();
  const endMs = performance.now() + timeoutMs;
  let cause: EarlyEnd = null;
  const end = (by: "timed_out" | "interrupted") => {
    cause ??= by;
    controller.abort();
  };
  const interrupt = () => end("interrupted");
  const cancel = afterReading(timeoutMs, () => end("timed_out"));
  if (stop?.aborted === true) interrupt();
  else stop?.addEventListener("abort", interrupt);
  return {
    signal: controller.signal,
    endedBy() {
      // Nothing new begins after the deadline, although what has arrived is still being read.
      if (cause === null && performance.now() >= endMs) cause = "timed_out";
      return cause;
    },
    leftMs: () => Math.max(0, endMs - performance.now()),
    close() {
      cancel();
      stop?.removeEventListener("abort", interrupt);
    },
  };
}

/**
 * Calls `ring` after `ms` and some further turns of the event loop, in which sockets are read. A long turn counts as one, so
 * that our own work takes none of them away. Returns a function that cancels it.
 */
export function afterReading(ms: number, ring: () => void): () => void {
  const dueMs = performance.now() + ms;
  const turn = (left: number) => {
    if (left > 0) timer = setTimeout(turn, DEADLINE_TURN_MS, left - 1);
    else ring();
  };
  let timer = setTimeout(() => {
    turn(turnsToRead(performance.now() - dueMs));
  }, ms);
  return () => clearTimeout(timer);
}

/** In how many turns sockets are read before a deadline that rang this late ends anything. */
export function turnsToRead(lateMs: number): number {
  if (lateMs <= DEADLINE_LATE_MS) return DEADLINE_TURNS;
  const turns = Math.ceil((lateMs * DEADLINE_LATE_SHARE) / DEADLINE_TURN_MS);
  return Math.min(DEADLINE_TURNS_MAX, Math.max(DEADLINE_TURNS_LATE, turns));
}
