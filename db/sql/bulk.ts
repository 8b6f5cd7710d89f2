import { and, desc, eq, inArray, isNotNull, lt, lte, notExists, sql } from "drizzle-orm";
import type { BulkEnd, BulkStore } from "../../src/core/bulk-job.ts";
import { BULK_JOBS_MAX, BULK_RUNNING_MAX } from "../../src/core/limits.ts";
import { auditChange } from "./audit.ts";
import type { StoreContext } from "./context.ts";
import { countOf, itemsOf, isOneOfPlaces, place, placeIn } from "./dialect.ts";
import { bulkLock } from "./locks.ts";
import {
  allOf,
  type Args,
  bareNames,
  changed,
  insertWhere,
  prepare,
  prepareEach,
  query,
  typed,
  valuesOf,
} from "./query.ts";
import { bulkJobs, bulkResults, members, people } from "../libsql/schema.ts";
import type { Statement } from "./sql.ts";

const JOB = [
  "id",
  "accountId",
  "operation",
  "filter",
  "reason",
  "status",
  "matching",
  "done",
  "failed",
  "createdAt",
  "createdBy",
  "keyId",
  "personId",
  "client",
] as const;

const ADD = prepare((arg: Args<(typeof JOB)[number]>) => {
  const isOfAccount = eq(bulkJobs.accountId, arg.accountId);
  const jobs = query.select({ id: bulkJobs.id }).from(bulkJobs);
  const running = jobs.where(and(isOfAccount, eq(bulkJobs.status, "running"))).limit(BULK_RUNNING_MAX);
  const kept = query.select({ id: bulkJobs.id }).from(bulkJobs).where(isOfAccount).limit(BULK_JOBS_MAX);
  const hasRoom = allOf(sql`${countOf(running)} < ${BULK_RUNNING_MAX}`, sql`${countOf(kept)} < ${BULK_JOBS_MAX}`);
  return insertWhere(bulkJobs, hasRoom, valuesOf(arg, JOB));
});

/** The list has ids of our own and numbers. */
const ADD_ACTIONS = prepare((arg: Args<"jobId" | "list">) => {
  const { jobId, actionId, run, status } = bulkResults;
  return sql`insert into ${bulkResults} (${bareNames(jobId, actionId, run, status)})
    select ${typed(arg.jobId, jobId)}, ${placeIn(0)}, cast(${placeIn(1)} as bigint), 'waiting'
    from ${itemsOf(arg.list)} where ${changed}`;
});

const FIND = prepare((arg: Args<"accountId" | "id">) =>
  query
    .select()
    .from(bulkJobs)
    .where(and(eq(bulkJobs.id, arg.id), eq(bulkJobs.accountId, arg.accountId))),
);

const LIST = prepare((arg: Args<"accountId" | "before" | "limit">) =>
  query
    .select()
    .from(bulkJobs)
    .where(and(eq(bulkJobs.accountId, arg.accountId), lt(bulkJobs.id, arg.before)))
    .orderBy(desc(bulkJobs.id))
    .limit(arg.limit),
);

const RUNNING = prepare((arg: Args<"limit">) =>
  query.select().from(bulkJobs).where(eq(bulkJobs.status, "running")).orderBy(bulkJobs.id).limit(arg.limit),
);

const { jobId, actionId, run, status, actionStatus, code, message } = bulkResults;

const RESULTS = prepareEach((by: "any" | "status") =>
  prepare((arg: Args<"jobId" | "status" | "before" | "limit">) =>
    query
      .select({ id: actionId, run, status, actionStatus, code, message })
      .from(bulkResults)
      .where(and(eq(jobId, arg.jobId), lt(actionId, arg.before), by === "any" ? undefined : eq(status, arg.status)))
      .orderBy(desc(actionId))
      .limit(arg.limit),
  ),
);

const WAITING = prepare((arg: Args<"jobId" | "limit">) =>
  query
    .select({ id: actionId, run })
    .from(bulkResults)
    .where(and(eq(jobId, arg.jobId), eq(status, "waiting")))
    .orderBy(desc(actionId))
    .limit(arg.limit),
);

const SETTLE = prepare((arg: Args<"jobId" | "id" | "status" | "actionStatus" | "code" | "message">) =>
  query
    .update(bulkResults)
    .set({
      status: sql`${arg.status}`,
      actionStatus: sql`${arg.actionStatus}`,
      code: sql`${arg.code}`,
      message: sql`${arg.message}`,
    })
    .where(and(eq(jobId, arg.jobId), eq(actionId, arg.id), eq(status, "waiting"))),
);

/** Counted anew, so that nothing counts twice after a crash. */
const COUNT = prepare((arg: Args<"jobId">) => {
  const ended = (as: "done" | "failed") =>
    countOf(
      query
        .select({ id: actionId })
        .from(bulkResults)
        .where(and(eq(jobId, arg.jobId), eq(status, as))),
    );
  return query
    .update(bulkJobs)
    .set({ done: ended("done"), failed: ended("failed") })
    .where(eq(bulkJobs.id, arg.jobId));
});

const END = prepare((arg: Args<"id" | "status" | "at" | "by">) =>
  query
    .update(bulkJobs)
    .set({ status: sql`${arg.status}`, finishedAt: sql`${arg.at}`, stoppedBy: sql`${arg.by}` })
    .where(and(eq(bulkJobs.id, arg.id), eq(bulkJobs.status, "running"))),
);

const MEMBER = prepare((arg: Args<"accountId" | "personId">) =>
  query
    .select({ email: people.email, role: members.role })
    .from(members)
    .innerJoin(people, eq(people.id, members.personId))
    .where(and(eq(members.accountId, arg.accountId), eq(members.personId, arg.personId))),
);

const PRUNE_ROWS = 500;

/** The job that ended first. */
const firstEnded = ({ until }: Args<"until">) =>
  query
    .select({ id: bulkJobs.id })
    .from(bulkJobs)
    .where(and(isNotNull(bulkJobs.finishedAt), lte(bulkJobs.finishedAt, until)))
    .orderBy(bulkJobs.finishedAt)
    .limit(1);

const PRUNE_RESULTS = prepare((arg: Args<"until">) => {
  const rows = query
    .select({ place })
    .from(bulkResults)
    .where(inArray(jobId, firstEnded(arg)))
    .limit(PRUNE_ROWS);
  return query.delete(bulkResults).where(isOneOfPlaces(place, sql`(${rows})`));
});

const PRUNE_JOB = prepare((arg: Args<"until">) => {
  const results = query
    .select({ id: actionId })
    .from(bulkResults)
    .where(inArray(jobId, firstEnded(arg)));
  return query.delete(bulkJobs).where(and(inArray(bulkJobs.id, firstEnded(arg)), notExists(results)));
});

const AFTER_ALL_IDS = "\u{10ffff}";

export function createBulkStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): BulkStore {
  return {
    async add(job, actions, audit) {
      const list = JSON.stringify(actions.map((action) => [action.id, action.run]));
      // The entry first: a job without actions has one too.
      const statements = [ADD.bind({ ...job }), ...auditChange(audit), ADD_ACTIONS.bind({ jobId: job.id, list })];
      const [added] = await writer.write(statements, [bulkLock(job.accountId)]);
      return added?.changes === 1;
    },
    find: async (accountId, id) => (await FIND.read(reader, { accountId, id }))[0] ?? null,
    list: (accountId, before, limit) => LIST.read(reader, { accountId, before: before ?? AFTER_ALL_IDS, limit }),
    results: (job, { status: ended, before, limit }) =>
      RESULTS(ended === null ? "any" : "status").read(reader, {
        jobId: job,
        status: ended,
        before: before ?? AFTER_ALL_IDS,
        limit,
      }),
    running: (limit) => RUNNING.read(reader, { limit }),
    waiting: (job, limit) => WAITING.read(reader, { jobId: job, limit }),
    async settle(job, ends) {
      await writer.write([...ends.map((end) => settleOne(job, end)), COUNT.bind({ jobId: job })]);
    },
    async end(id, { status: ended, at, by }, audit) {
      const [done] = await writer.write([END.bind({ id, status: ended, at, by }), ...auditChange(audit)]);
      return done?.changes === 1;
    },
    member: async (accountId, personId) => (await MEMBER.read(reader, { accountId, personId }))[0] ?? null,
    async prune(until) {
      const [results, jobs] = await writer.write([PRUNE_RESULTS.bind({ until }), PRUNE_JOB.bind({ until })]);
      return results?.changes === PRUNE_ROWS || (jobs?.changes ?? 0) > 0;
    },
  };
}

function settleOne(job: string, end: BulkEnd): Statement {
  const shared = { jobId: job, id: end.id, status: end.status };
  return end.status === "done"
    ? SETTLE.bind({ ...shared, actionStatus: end.actionStatus, code: null, message: null })
    : SETTLE.bind({ ...shared, actionStatus: null, code: end.code, message: end.message });
}
