/** Bulk jobs, and the results of their actions. */
import { and, desc, eq, isNotNull, lt, lte, sql } from "drizzle-orm";
import type { BulkEnd, BulkStore } from "../../src/core/bulk-job.ts";
import { BULK_JOBS_MAX, BULK_RUNNING_MAX } from "../../src/core/limits.ts";
import { accountLock } from "../sql/locks.ts";
import { AFTER_ALL_IDS, all, countRows, findRow, get, hasRow, hasValues, qb } from "../sql/read.ts";
import type { StoreAccess } from "../sql/writer.ts";
import { bulkJobs, bulkResults } from "../tables.ts";
import { addIfWritten, addToAudit } from "./audit.ts";
import { command, deleteSome, insertList, updateList } from "./command.ts";

const ADD_ACTIONS = insertList(bulkResults, ["actionStatus", "code", "message"]);

export const addBulkJob = command<BulkStore["add"]>(
  async (tx, job, actions, audit) => {
    const isOfAccount = eq(bulkJobs.accountId, job.accountId);
    const isRunning = hasValues(bulkJobs, { accountId: job.accountId, status: "running" });
    if ((await countRows(tx, bulkJobs, isRunning)) >= BULK_RUNNING_MAX) return false;
    if ((await countRows(tx, bulkJobs, isOfAccount)) >= BULK_JOBS_MAX) return false;
    await tx.db.insert(bulkJobs).values(job);
    const waiting = actions.map(({ id, run }) => [job.id, id, run, "waiting"]);
    await tx.lists.insert(ADD_ACTIONS, waiting);
    await addToAudit(tx, audit);
    return true;
  },
  ({ accountId }) => [accountLock(accountId)],
);

const SETTLED = ["status", "actionStatus", "code", "message"] as const;

const SETTLE = updateList(bulkResults, SETTLED, ["jobId", "actionId", "status"]);

/** The values of `SETTLED`. */
function settledAs(end: BulkEnd): readonly (string | null)[] {
  return end.status === "done" ? [end.status, end.actionStatus, null, null] : [end.status, null, end.code, end.message];
}

/** Writes the results of waiting actions. Counts the job's totals anew, so that nothing counts twice after a crash. */
export const settleBulkActions = command<BulkStore["settle"]>(async (tx, jobId, ends) => {
  await tx.lists.update(
    SETTLE,
    ends.map((end) => [...settledAs(end), jobId, end.id, "waiting"]),
  );
  const done = await countRows(tx, bulkResults, hasValues(bulkResults, { jobId, status: "done" }));
  const failed = await countRows(tx, bulkResults, hasValues(bulkResults, { jobId, status: "failed" }));
  await tx.db.update(bulkJobs).set({ done, failed }).where(eq(bulkJobs.id, jobId));
});

export const endBulkJob = command<BulkStore["end"]>(async (tx, id, { status, at, by }, audit) => {
  const ended = tx.db
    .update(bulkJobs)
    .set({ status, finishedAt: at, stoppedBy: by })
    .where(hasValues(bulkJobs, { id, status: "running" }))
    .returning();
  return addIfWritten(tx, ended, audit);
});

/** Deletes results of the oldest job that ended by then, and the job with the last ones. Returns whether there may be more. */
export const pruneBulkJobs = command<BulkStore["prune"]>(async (tx, until) => {
  const { id, finishedAt } = bulkJobs;
  const isOver = and(isNotNull(finishedAt), lte(finishedAt, until));
  const first = await get(tx, qb.select({ id }).from(bulkJobs).where(isOver).orderBy(finishedAt).limit(1));
  if (first === null) return false;
  const isOfJob = eq(bulkResults.jobId, first.id);
  await deleteSome(tx, [bulkResults.jobId, bulkResults.actionId], isOfJob);
  if (!(await hasRow(tx, bulkResults, isOfJob))) await tx.db.delete(bulkJobs).where(eq(bulkJobs.id, first.id));
  return true;
});

export function createBulkStore({ reader, writer }: StoreAccess): BulkStore {
  const { jobId: ofJob, actionId, run, status: stored, actionStatus, code, message } = bulkResults;
  return {
    ...writer.methods({ add: addBulkJob, settle: settleBulkActions, end: endBulkJob, prune: pruneBulkJobs }),
    find: (accountId, id) => findRow(reader, bulkJobs, { accountId, id }),
    list(accountId, before, limit) {
      const isEarlier = and(eq(bulkJobs.accountId, accountId), lt(bulkJobs.id, before ?? AFTER_ALL_IDS));
      return all(reader, qb.select().from(bulkJobs).where(isEarlier).orderBy(desc(bulkJobs.id)).limit(limit));
    },
    results(jobId, { status, before, limit }) {
      const isOfPage = and(eq(ofJob, jobId), lt(actionId, before ?? AFTER_ALL_IDS));
      const results = qb
        .select({ id: actionId, run, status: stored, actionStatus, code, message })
        .from(bulkResults)
        .where(and(isOfPage, status === null ? undefined : eq(stored, status)));
      return all(reader, results.orderBy(desc(actionId)).limit(limit));
    },
    running(limit) {
      // Repeats the condition of the partial index.
      const isRunning = sql`${bulkJobs.status} = 'running'`;
      return all(reader, qb.select().from(bulkJobs).where(isRunning).orderBy(bulkJobs.id).limit(limit));
    },
    waiting(jobId, limit) {
      const isWaiting = hasValues(bulkResults, { jobId, status: "waiting" });
      const waiting = qb.select({ id: actionId, run }).from(bulkResults).where(isWaiting);
      return all(reader, waiting.orderBy(desc(actionId)).limit(limit));
    },
  };
}
