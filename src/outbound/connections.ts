import {
  KEPT_CONNECTION_IDLE_MS,
  KEPT_CONNECTION_LIFE_MS,
  KEPT_CONNECTIONS_MAX,
  KEPT_CONNECTIONS_PER_KIND_MAX,
  KEPT_PAUSE_MS,
  KEPT_PAUSES_MAX,
} from "../core/limits.ts";
import type { Clock } from "../core/clock.ts";
import { type Address, urlHostOf } from "../core/addresses.ts";
import type { ParsedTarget } from "../core/target.ts";

/** The calls that may use each other's connections. */
export interface Pool {
  readonly name: string;
  /** Bun keeps a limited number of each kind. */
  readonly kind: string;
}

/** What one call is made over, from `take` to `release`. */
export interface TargetConnection {
  readonly session: Bun.FetchSession;
  /** Null: it ends with the call. */
  readonly pool: Pool | null;
  readonly openedMs: number;
  /** Calls before this one. */
  readonly calls: number;
}

interface IdleConnection extends TargetConnection {
  readonly pool: Pool;
  readonly sinceMs: number;
}

/**
 * How a call left its connection. `open`: the whole answer was read, and the target did not say that it closes. `lost`:
 * it ended, or what came was no answer. `unfit`: for another reason nothing more may be sent on it.
 */
export type ConnectionState = "open" | "lost" | "unfit";

/**
 * The pool of one account's calls to one origin at one address. The origin tells scheme, port and the name that a
 * certificate is checked against.
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
 * Connections to targets, of which some stay open between calls. Each of those is a session of its own with one call at a
 * time: no other call gets it before its answer was read to the end. Bun closes an idle connection on which anything
 * arrives, and checks that once more just before it writes.
 */
export class Connections {
  readonly #clock: Pick<Clock, "monotonicMs" | "after">;
  readonly #fresh: TargetConnection;
  /** Idle connections, the longest idle first. */
  readonly #idle = new Set<IdleConnection>();
  /** The same by pool and in the same order. */
  readonly #pools = new Map<string, IdleConnection[]>();
  /** Connections of each kind, in use or idle. */
  readonly #ofKind = new Map<string, number>();
  #open = 0;
  /** Pools that keep nothing for now, the oldest first. */
  readonly #pausedUntilMs = new Map<string, number>();
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
   * The pool's connection that was used last, or a new one. One that ends with the call if there is no pool, or as many as
   * there may be: none is closed to make room, since what we close ourselves holds a port of ours for a minute.
   */
  take(pool: Pool | null): TargetConnection {
    if (pool === null || !this.#keeps(pool)) return this.#fresh;
    const latest = this.#latestOf(pool);
    if (latest !== null) {
      this.#remove(latest);
      return latest;
    }
    const ofKind = this.#ofKind.get(pool.kind) ?? 0;
    if (this.#open >= KEPT_CONNECTIONS_MAX || ofKind >= KEPT_CONNECTIONS_PER_KIND_MAX) return this.#fresh;
    this.#ofKind.set(pool.kind, ofKind + 1);
    this.#open += 1;
    // Bun's own coarse timer closes what would be forgotten here.
    const keepAlive = { idleTimeout: KEPT_CONNECTION_IDLE_MS / 1_000, maxIdleSockets: 1 };
    return { session: new Bun.FetchSession({ keepAlive }), pool, openedMs: this.#clock.monotonicMs(), calls: 0 };
  }

  /**
   * Gives it back after the call. If one with earlier calls was lost, the target closes connections without saying so:
   * its pool then keeps none for a while, so that this ends few calls as unknown.
   */
  release({ session, pool, openedMs, calls }: TargetConnection, state: ConnectionState): void {
    if (pool === null) return;
    const nowMs = this.#clock.monotonicMs();
    if (state === "lost" && calls > 0) this.#pause(pool, nowMs);
    const isOver = state !== "open" || nowMs - openedMs >= KEPT_CONNECTION_LIFE_MS || !this.#keeps(pool);
    if (isOver) this.#end(session, pool);
    else this.#add({ session, pool, openedMs, calls: calls + 1, sinceMs: nowMs });
  }

  /** Closes what is idle, and keeps nothing from now on. */
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
    this.#pausedUntilMs.delete(name);
    this.#pausedUntilMs.set(name, nowMs + KEPT_PAUSE_MS);
    const [oldest] = this.#pausedUntilMs.keys();
    if (oldest !== undefined && this.#pausedUntilMs.size > KEPT_PAUSES_MAX) this.#pausedUntilMs.delete(oldest);
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
    const left = (this.#ofKind.get(kind) ?? 1) - 1;
    if (left === 0) this.#ofKind.delete(kind);
    else this.#ofKind.set(kind, left);
  }
}
