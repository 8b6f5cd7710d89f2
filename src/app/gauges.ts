import type { Store } from "../core/store.ts";
import { VERSION } from "../config/config.ts";
import { COUNTS_FRESH_MS } from "../core/limits.ts";
import type { Delivery } from "../delivery/delivery.ts";
import type { Feed } from "../events/feed.ts";
import type { Clock } from "../core/clock.ts";
import type { Metrics } from "../observability/metrics.ts";
import { cached, type LoopLag } from "../observability/runtime.ts";

interface GaugeSources {
  readonly store: {
    readonly actions: Pick<Store["actions"], "waiting" | "firstDueAt">;
    readonly outbox: Pick<Store["outbox"], "waiting">;
    readonly isUnavailable: boolean;
  };
  readonly delivery: Pick<Delivery, "storeAway"> & {
    readonly unwritten: Pick<Delivery["unwritten"], "count" | "bytes">;
    readonly loop: Pick<Delivery["loop"], "inFlight">;
  };
  readonly feed: Pick<Feed, "count">;
  /** How many processes use the database now. */
  readonly countNodes: () => number;
  readonly lag: Pick<LoopLag, "takeMaxMs">;
  readonly clock: Pick<Clock, "now" | "monotonicMs">;
}

/** Adds the gauges. They are read whenever the metrics are; those that scan the database are cached. */
export function addGauges(metrics: Metrics, { store, delivery, feed, countNodes, lag, clock }: GaugeSources): void {
  const fresh = <Value>(read: () => Promise<Value>) => cached(COUNTS_FRESH_MS, () => clock.monotonicMs(), read);
  const oldestDueSeconds = async () => {
    const nowMs = clock.now().getTime();
    return Math.max(0, nowMs - ((await store.actions.firstDueAt())?.getTime() ?? nowMs)) / 1_000;
  };
  const paused = () => Object.fromEntries(Object.entries(delivery.storeAway()).map(([kind, is]) => [kind, Number(is)]));

  metrics.addInfo("outgate_build_info", "What runs; always 1.", { version: VERSION, bun: Bun.version });
  metrics.addGauge("outgate_nodes", "Processes that use the database now, as far as this one knows.", countNodes);
  metrics.addGauge("outgate_store_paused", "1 while the store can't be written.", () => Number(store.isUnavailable));
  metrics.addGauge("outgate_delivery_paused", "1 while nothing of this kind is claimed.", paused, "kind");
  metrics.addGauge(
    "outgate_actions",
    "Actions that are not final, by status.",
    fresh(() => store.actions.waiting()),
    "status",
  );
  metrics.addGauge(
    "outgate_outbox",
    "Callbacks, mails and messages to channels that are neither delivered nor given up.",
    fresh(() => store.outbox.waiting()),
    "kind",
  );
  metrics.addGauge(
    "outgate_oldest_due_action_age_seconds",
    "Seconds since the action that has been due longest was due, paused ones aside; 0: none is due.",
    fresh(oldestDueSeconds),
  );
  metrics.addGauge("outgate_event_streams", "Event streams that are open now.", () => feed.count());
  metrics.addGauge("outgate_attempts_in_flight", "Attempts that are on their way now.", () => delivery.loop.inFlight);
  addKeptGauges(metrics, delivery);
  metrics.addGauge(
    "outgate_event_loop_lag_max_seconds",
    "Longest delay of the event loop since the last reading.",
    () => lag.takeMaxMs() / 1_000,
  );
  metrics.addGauge("outgate_resident_memory_bytes", "Memory that the process holds.", () => process.memoryUsage.rss());
}

/** Counts the results of attempts that are known but not yet written. */
export function addKeptGauges(metrics: Metrics, { unwritten }: Pick<GaugeSources["delivery"], "unwritten">): void {
  metrics.addGauge("outgate_results_kept", "Results that are known and not written yet.", () => unwritten.count);
  metrics.addGauge(
    "outgate_results_kept_bytes",
    "Memory that they hold; nothing is claimed above 64 MB.",
    () => unwritten.bytes,
  );
}
