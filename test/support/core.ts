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

/** A clock that stands still while other work has this thread's core. */
export function ownMs(): number {
  return performance.now() - waitedForCoreMs();
}
