import { and, eq, inArray, isNotNull, lte } from "drizzle-orm";
import type { AuditEntry } from "../../src/core/audit.ts";
import type { BulkEnd, BulkJob, BulkJobEnd } from "../../src/core/bulk-job.ts";
import { BULK_JOBS_MAX, BULK_RUNNING_MAX } from "../../src/core/limits.ts";
import { bulkLock } from "../sql/locks.ts";
import { addToAudit } from "./audit.ts";
import { command, countRows, hasRow } from "./command.ts";
import { insertList, updateList } from "./lists.ts";

interface AddArgs {
  readonly job: BulkJob;
  readonly actions: readonly { readonly id: string; readonly run: number }[];
  readonly audit: AuditEntry;
}

const ADD_ACTIONS = insertList("bulkResults", ["jobId", "actionId", "run", "status"]);

/** Adds a job with its actions; returns whether the account may run and keep one more. */
export const add = command(
  async (tx, { job, actions, audit }: AddArgs) => {
    const { bulkJobs } = tx.tables;
    const isOfAccount = eq(bulkJobs.accountId, job.accountId);
    const isRunning = and(isOfAccount, eq(bulkJobs.status, "running"));
    if ((await countRows(tx, bulkJobs, isRunning)) >= BULK_RUNNING_MAX) return false;
    if ((await countRows(tx, bulkJobs, isOfAccount)) >= BULK_JOBS_MAX) return false;
    await tx.db.insert(bulkJobs).values(job);
    await tx.lists.insert(
      ADD_ACTIONS,
      actions.map(({ id, run }) => [job.id, id, run, "waiting"]),
    );
    await addToAudit(tx, audit);
    return true;
  },
  ({ job }) => [bulkLock(job.accountId)],
);

const SETTLED = ["status", "actionStatus", "code", "message"] as const;

const SETTLE = updateList("bulkResults", SETTLED, ["jobId", "actionId", "status"]);

/** The values of `SETTLED`. */
function settledAs(end: BulkEnd): readonly (string | null)[] {
  return end.status === "done" ? [end.status, end.actionStatus, null, null] : [end.status, null, end.code, end.message];
}

/** Writes what became of actions that waited. The job's counts are counted anew, so that nothing counts twice after a crash. */
export const settle = command(async (tx, { jobId, ends }: Readonly<{ jobId: string; ends: readonly BulkEnd[] }>) => {
  const { bulkJobs, bulkResults } = tx.tables;
  const isOfJob = eq(bulkResults.jobId, jobId);
  await tx.lists.update(
    SETTLE,
    ends.map((end) => [...settledAs(end), jobId, end.id, "waiting"]),
  );
  const done = await countRows(tx, bulkResults, and(isOfJob, eq(bulkResults.status, "done")));
  const failed = await countRows(tx, bulkResults, and(isOfJob, eq(bulkResults.status, "failed")));
  await tx.db.update(bulkJobs).set({ done, failed }).where(eq(bulkJobs.id, jobId));
});

interface EndArgs extends BulkJobEnd {
  readonly id: string;
  readonly audit: AuditEntry | undefined;
}

/** Ends a job; returns whether it was running. */
export const end = command(async (tx, { id, status, at, by, audit }: EndArgs) => {
  const { bulkJobs } = tx.tables;
  const ended = await tx.db
    .update(bulkJobs)
    .set({ status, finishedAt: at, stoppedBy: by })
    .where(and(eq(bulkJobs.id, id), eq(bulkJobs.status, "running")))
    .returning({ id: bulkJobs.id });
  if (ended.length === 0) return false;
  await addToAudit(tx, audit);
  return true;
});

const PRUNE_ROWS = 500;

/** Deletes results of the job that ended first, if that is until then, and the job with the last; returns whether there may be more. */
export const prune = command(async (tx, { until }: Readonly<{ until: Date }>) => {
  const { bulkJobs, bulkResults } = tx.tables;
  const [first] = await tx.db
    .select({ id: bulkJobs.id })
    .from(bulkJobs)
    .where(and(isNotNull(bulkJobs.finishedAt), lte(bulkJobs.finishedAt, until)))
    .orderBy(bulkJobs.finishedAt)
    .limit(1);
  if (first === undefined) return false;
  const isOfJob = eq(bulkResults.jobId, first.id);
  const some = tx.db.select({ id: bulkResults.actionId }).from(bulkResults).where(isOfJob).limit(PRUNE_ROWS);
  await tx.db.delete(bulkResults).where(and(isOfJob, inArray(bulkResults.actionId, some)));
  if (!(await hasRow(tx, bulkResults, isOfJob))) await tx.db.delete(bulkJobs).where(eq(bulkJobs.id, first.id));
  return true;
});
