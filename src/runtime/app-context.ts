import type { Config } from "../config/config.ts";
import type { Bus } from "../core/bus.ts";
import type { Clock } from "../core/clock.ts";
import type { Ids } from "../core/ids.ts";
import type { Store } from "../core/store.ts";
import type { Log } from "../observability/log.ts";
import type { Metrics } from "../observability/metrics.ts";

/** What every module gets. A test that needs another clock, store or settings passes other members. */
export interface AppContext {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly config: Config;
  readonly store: Store;
  /** What happens to actions on this node. */
  readonly bus: Bus;
}

/** The part that one module reads, so that a test can make that module alone. */
export type AppPart<Members extends keyof AppContext, Stores extends keyof Store> = Pick<AppContext, Members> & {
  readonly store: Pick<Store, Stores>;
};
