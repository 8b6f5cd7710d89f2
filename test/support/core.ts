import { readFileSync } from "node:fs";

/**
 * Milliseconds for which this thread could have gone on and other work had its core, since it began (Linux: the second
 * number of schedstat). Taken off a time, what is left is the product's, however busy the machine. 0 where nobody tells.
 */
export function waitedForCoreMs(): number {
  try {
    const [, waitedNs] = readFileSync("/proc/thread-self/schedstat", "latin1").split(" ");
    return Number(waitedNs) / 1_000_000;
  } catch {
    return 0;
  }
}

const LOOKS_MAX = 10;

/** A clock that stands still while other work has this thread's core. */
export function ownMs(): number {
  let waitedMs = waitedForCoreMs();
  // The core may be gone between the two looks: then they do not belong together.
  for (let looks = 1; ; looks += 1) {
    const nowMs = performance.now();
    const before = waitedMs;
    waitedMs = waitedForCoreMs();
    if (waitedMs === before || looks === LOOKS_MAX) return nowMs - waitedMs;
  }
}

/** What the work takes of this thread, in milliseconds. */
export function timeOf(work: () => unknown): number {
  const startedMs = ownMs();
  work();
  return ownMs() - startedMs;
}

/** The longest that the event loop is held while something runs in it, in milliseconds of this thread. */
export async function longestTurnMs(work: () => Promise<unknown>): Promise<number> {
  let lastMs = ownMs();
  let longest = 0;
  let isOver = false;
  const turn = () => {
    const nowMs = ownMs();
    longest = Math.max(longest, nowMs - lastMs);
    lastMs = nowMs;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  await work();
  isOver = true;
  turn();
  return longest;
}

/** How often the event loop comes round while something runs in it. */
export async function turnsDuring(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let next = setImmediate(function count() {
    turns += 1;
    next = setImmediate(count);
  });
  await work();
  clearImmediate(next);
  return turns;
}

const TURNS_MAX = 20;
const TRIES_MAX = 10;
/** What the piece of work below takes on a core of 2025 that has nothing else to do. */
const PIECE_MS = 2.5;
const PIECE = JSON.stringify(Array.from({ length: 100_000 }, (_, n) => ({ n })));

/**
 * What the work takes, in milliseconds of an ordinary core: the quickest of up to twenty turns, and where that is not
 * quick enough, held against another piece of work, since a slow core, or one whose caches others use, is slow with both.
 */
export function quickestMs(enoughMs: number, work: () => unknown): number {
  const quickest = leastMs(enoughMs, work);
  return quickest < enoughMs ? quickest : quickest / slowness();
}

/** The same of what measures milliseconds itself, as a gap of the event loop: the least of up to ten tries. */
export async function quickestOf(enoughMs: number, measure: () => Promise<number>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < TRIES_MAX && least >= enoughMs; tries += 1) {
    const ms = await measure();
    least = Math.min(least, ms < enoughMs ? ms : ms / slowness());
  }
  return least;
}

/** How many times as long as an ordinary one this core takes now; never below 1. */
export function slowness(): number {
  return Math.max(1, leastMs(PIECE_MS, () => JSON.stringify(JSON.parse(PIECE))) / PIECE_MS);
}

function leastMs(enoughMs: number, work: () => unknown): number {
  let least = Number.POSITIVE_INFINITY;
  for (let turn = 0; turn < TURNS_MAX && least >= enoughMs; turn += 1) {
    least = Math.min(least, timeOf(work));
  }
  return least;
}
