import type { ActionService } from "../actions/service.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { type JobLeases, NO_JOB_LEASES } from "../runtime/job-leases.ts";
import { createJobCaller } from "./caller.ts";
import { BulkRunner } from "./runner.ts";
import { createBulkService } from "./service.ts";

interface BulkNeeds {
  readonly actionService: ActionService;
  readonly isStopped: (accountId: string) => boolean;
  /** By default those of the only process of a database. */
  readonly leases?: JobLeases | undefined;
}

/** The service of bulk jobs, and what carries them out. */
export function createBulk(app: AppContext, { actionService, isStopped, leases = NO_JOB_LEASES }: BulkNeeds) {
  const { store, clock, ids, log } = app;
  const { actions, bulk } = store;
  const callerOf = createJobCaller({ ...store, isStopped, clock });
  const bulkRunner = new BulkRunner({ clock, log, bulk, actions, decide: actionService, callerOf, leases });
  return { bulkService: createBulkService({ clock, ids, bulk, actions, runner: bulkRunner }), bulkRunner };
}
