import { createChangeReader } from "../../db/postgres/cluster.ts";
import { NoAnswer, unavailable } from "../../db/sql/errors.ts";
import type { Clock } from "../../src/core/clock.ts";
import { type ClusterStore, StoreUnavailable } from "../../src/core/store.ts";
import { MemoryCluster } from "../support/memory-cluster.ts";
import type { Process } from "./process.ts";
import type { World } from "./world.ts";
import type { DbConnection } from "../../db/commands/command.ts";

/** What the way to the database does to the calls of a machine. */
export interface Way {
  /** Neither reads nor writes get through. */
  isAway: boolean;
  /** Writes are refused: the disk is full. */
  isFull: boolean;
  /** A write may take longer than its caller waits. */
  isSlow: boolean;
  /** Half of the writes are done, but not answered. */
  isLossy: boolean;
  /** The next write may be done, but its log can't be synced. */
  isUnsynced: boolean;
  /** The process dies at a write: after so many others, before it is done or after that. */
  crash: { in: number; readonly isDone: boolean } | null;
}

export const CLEAR_WAY: Readonly<Way> = {
  isAway: false,
  isFull: false,
  isSlow: false,
  isLossy: false,
  isUnsynced: false,
  crash: null,
};

/** A promise of its own for each call: one for all would keep every dead process. */
function never(): Promise<never> {
  return new Promise(() => {});
}

interface Ends {
  readonly world: World;
  readonly process: Process;
  readonly way: Way;
}

/** The database as a process reaches it: each call takes its time, and nothing comes back to a dead process. */
export function connect({ world, process, way }: Ends, isServer: boolean): DbConnection {
  const random = world.random.fork();
  const write = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    world.stir();
    if (process.isDead) return never();
    const [goMs, comeMs] = [random.between(0, 6), random.between(0, 6)];
    const slowMs = way.isSlow ? random.between(1_000, 7_000) : 0;
    const isSlowToGo = random.chance(0.5);
    // What was sent to a server arrives there, whatever becomes of the process; a file is written by the process.
    await rest(isServer ? world.clock : process.clock, goMs + (isSlowToGo ? slowMs : 0));
    const crash = process.isDead ? null : crashAt(way);
    if (crash?.isDone === false) process.kill("at a write");
    if (process.isDead && !isServer) return never();
    const [isUnsynced, isLost] = [way.isUnsynced, way.isLossy && random.chance(0.5)];
    way.isUnsynced = false;
    const fault = faultOn(way);
    const isDone = fault === null && !(isUnsynced && random.chance(0.5));
    const done = isDone ? await work() : null;
    world.tellCommits(process.name);
    if (crash?.isDone === true) process.kill("after a write");
    await rest(process.clock, comeMs + (isSlowToGo ? 0 : slowMs));
    if (fault !== null) throw fault;
    if (isUnsynced || done === null) throw databaseError("SQLITE_IOERR_FSYNC", "disk I/O error");
    if (isLost) throw new NoAnswer("The answer was lost.");
    return done;
  };
  return {
    dialect: world.sql.dialect,
    async read(statement) {
      world.stir();
      if (process.isDead) return never();
      if (random.chance(0.1)) await rest(process.clock, random.between(1, 15));
      if (way.isAway) throw unavailable(faultOn(way));
      return world.sql.read(statement);
    },
    transact: (calls) => write(() => world.sql.transact(calls)),
    close: async () => {},
  };
}

/** Counts a write; null: the process survives it. */
function crashAt(way: Way): Way["crash"] {
  const { crash } = way;
  if (crash === null || (crash.in -= 1) >= 0) return null;
  way.crash = null;
  return crash;
}

/** Why nothing is written now. */
function faultOn({ isAway, isFull }: Way): Error | null {
  if (isAway) return databaseError("SQLITE_IOERR", "disk I/O error");
  return isFull ? databaseError("SQLITE_FULL", "database or disk is full") : null;
}

function databaseError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code });
}

/** Takes its time; never ends in a process that dies meanwhile. */
function rest(clock: Pick<Clock, "after">, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve));
}

/** What nodes on one database share. */
export function createCluster(world: World): ClusterStore {
  return Object.assign(new MemoryCluster(() => world.clock.now().getTime()), createChangeReader(world.sql));
}

/** The same as a process reaches it. */
export function reachCluster({ world, process, way }: Ends, cluster: ClusterStore): ClusterStore {
  const reach = async <T>(call: () => Promise<T>): Promise<T> => {
    world.stir();
    await rest(process.clock, 0);
    if (way.isAway) throw new StoreUnavailable();
    return call();
  };
  return {
    now: () => reach(() => cluster.now()),
    beat: (...args) => reach(() => cluster.beat(...args)),
    leave: (nodeId) => reach(() => cluster.leave(nodeId)),
    takeJob: (name, nodeId, lastsMs) => reach(() => cluster.takeJob(name, nodeId, lastsMs)),
    releaseJob: (name, nodeId) => reach(() => cluster.releaseJob(name, nodeId)),
    changedSince: (position, limit) => reach(() => cluster.changedSince(position, limit)),
    findRevisions: (ids) => reach(() => cluster.findRevisions(ids)),
    listen: (onHint, onGap) => reach(() => cluster.listen(onHint, onGap)),
  };
}
