import { StoreUnavailable } from "../core/store.ts";
import type { Log } from "../observability/log.ts";
import type { Metrics } from "../observability/metrics.ts";
import type { Clock } from "../core/clock.ts";

interface FreshDeps {
  readonly clock: Pick<Clock, "after">;
  readonly log: Pick<Log, "error">;
  readonly metrics: Pick<Metrics, "taskFailed">;
}

/**
 * Runs all reads every `everyMs` after the last ones have ended, so that what other processes changed takes effect here. A
 * read that fails comes again; it is logged unless the store is away, which `Outage` tells of. The returned function stops it and
 * resolves when none runs any more.
 */
export function keepFresh(
  everyMs: number,
  reads: Readonly<Record<string, () => Promise<unknown>>>,
  { clock, log, metrics }: FreshDeps,
): () => Promise<void> {
  let isStopped = false;
  let running: Promise<unknown> = Promise.resolve();
  let cancel = () => {};
  const runOne = async ([name, read]: [string, () => Promise<unknown>]): Promise<void> => {
    try {
      await read();
    } catch (error) {
      if (error instanceof StoreUnavailable) return;
      metrics.taskFailed("refresh");
      log.error("refresh.failed", { of: name, error: error instanceof Error ? error.name : "unknown" });
    }
  };
  const later = () => {
    if (isStopped) return;
    cancel = clock.after(everyMs, () => {
      running = Promise.all(Object.entries(reads).map(runOne)).then(later);
    });
  };
  later();
  return async () => {
    isStopped = true;
    cancel();
    await running;
  };
}
