import type { ActionService } from "../actions/service.ts";
import type { Log } from "../observability/log.ts";
import type { Clock } from "../core/clock.ts";
import type { Ids } from "../core/ids.ts";
import { type JobLeases, NO_JOB_LEASES } from "../runtime/job-leases.ts";
import type { Store } from "../core/store.ts";
import { createJobCaller } from "./caller.ts";
import { BulkRunner } from "./runner.ts";
import { createBulkService } from "./service.ts";

interface BulkParts {
  readonly store: Store;
  readonly engine: { readonly actionService: ActionService; readonly isStopped: (accountId: string) => boolean };
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  /** By default those of the only process of a database. */
  readonly leases?: JobLeases;
}

/** The service of bulk jobs, and what carries them out. */
export function createBulk({ store, engine, leases = NO_JOB_LEASES, ...parts }: BulkParts) {
  const { actions, bulk } = store;
  const callerOf = createJobCaller({ ...store, isStopped: engine.isStopped, clock: parts.clock });
  const bulkRunner = new BulkRunner({ ...parts, bulk, actions, decide: engine.actionService, callerOf, leases });
  return { bulkService: createBulkService({ ...parts, bulk, actions, runner: bulkRunner }), bulkRunner };
}
