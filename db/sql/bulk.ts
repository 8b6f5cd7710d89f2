import { and, desc, eq, lt } from "drizzle-orm";
import type { BulkStore } from "../../src/core/bulk-job.ts";
import * as commands from "../commands/bulk.ts";
import type { StoreContext } from "./context.ts";
import { read } from "./read.ts";

const FIND = read({ accountId: "text", id: "text" }, ({ db, tables: { bulkJobs } }, arg) =>
  db
    .select()
    .from(bulkJobs)
    .where(and(eq(bulkJobs.id, arg.id), eq(bulkJobs.accountId, arg.accountId))),
);

const LIST = read({ accountId: "text", before: "text", limit: "number" }, ({ db, tables: { bulkJobs } }, arg) =>
  db
    .select()
    .from(bulkJobs)
    .where(and(eq(bulkJobs.accountId, arg.accountId), lt(bulkJobs.id, arg.before)))
    .orderBy(desc(bulkJobs.id))
    .limit(arg.limit),
);

const RUNNING = read({ limit: "number" }, ({ db, tables: { bulkJobs } }, arg) =>
  db.select().from(bulkJobs).where(eq(bulkJobs.status, "running")).orderBy(bulkJobs.id).limit(arg.limit),
);

const results = (by: "any" | "status") =>
  read({ jobId: "text", status: "text?", before: "text", limit: "number" }, ({ db, tables: { bulkResults } }, arg) => {
    const { jobId, actionId, run, status, actionStatus, code, message } = bulkResults;
    return db
      .select({ id: actionId, run, status, actionStatus, code, message })
      .from(bulkResults)
      .where(and(eq(jobId, arg.jobId), lt(actionId, arg.before), by === "any" ? undefined : eq(status, arg.status)))
      .orderBy(desc(actionId))
      .limit(arg.limit);
  });

const RESULTS = { any: results("any"), status: results("status") };

const WAITING = read({ jobId: "text", limit: "number" }, ({ db, tables: { bulkResults } }, arg) => {
  const { jobId, actionId, run, status } = bulkResults;
  return db
    .select({ id: actionId, run })
    .from(bulkResults)
    .where(and(eq(jobId, arg.jobId), eq(status, "waiting")))
    .orderBy(desc(actionId))
    .limit(arg.limit);
});

const MEMBER = read({ accountId: "text", personId: "text" }, ({ db, tables: { people, members } }, arg) =>
  db
    .select({ email: people.email, role: members.role })
    .from(members)
    .innerJoin(people, eq(people.id, members.personId))
    .where(and(eq(members.accountId, arg.accountId), eq(members.personId, arg.personId))),
);

const AFTER_ALL_IDS = "\u{10ffff}";

export function createBulkStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): BulkStore {
  return {
    add: (job, actions, audit) => writer.run(commands.add, { job, actions, audit }),
    find: (accountId, id) => FIND.get(reader, { accountId, id }),
    list: (accountId, before, limit) => LIST.all(reader, { accountId, before: before ?? AFTER_ALL_IDS, limit }),
    results: (job, { status: ended, before, limit }) =>
      RESULTS[ended === null ? "any" : "status"].all(reader, {
        jobId: job,
        status: ended,
        before: before ?? AFTER_ALL_IDS,
        limit,
      }),
    running: (limit) => RUNNING.all(reader, { limit }),
    waiting: (job, limit) => WAITING.all(reader, { jobId: job, limit }),
    settle: (job, ends) => writer.run(commands.settle, { jobId: job, ends }),
    end: (id, how, audit) => writer.run(commands.end, { id, ...how, audit }),
    member: (accountId, personId) => MEMBER.get(reader, { accountId, personId }),
    prune: (until) => writer.run(commands.prune, { until }),
  };
}
