import { and, desc, eq, lt } from "drizzle-orm";
import type { BulkStore } from "../../src/core/bulk-job.ts";
import * as commands from "../commands/bulk.ts";
import type { StoreContext } from "./context.ts";
import { type Args, prepare, prepareEach, query } from "./query.ts";
import { bulkJobs, bulkResults, members, people } from "../libsql/schema.ts";

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

const MEMBER = prepare((arg: Args<"accountId" | "personId">) =>
  query
    .select({ email: people.email, role: members.role })
    .from(members)
    .innerJoin(people, eq(people.id, members.personId))
    .where(and(eq(members.accountId, arg.accountId), eq(members.personId, arg.personId))),
);

const AFTER_ALL_IDS = "\u{10ffff}";

export function createBulkStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): BulkStore {
  return {
    add: (job, actions, audit) => writer.run(commands.add, { job, actions, audit }),
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
    settle: (job, ends) => writer.run(commands.settle, { jobId: job, ends }),
    end: (id, how, audit) => writer.run(commands.end, { id, ...how, audit }),
    member: async (accountId, personId) => (await MEMBER.read(reader, { accountId, personId }))[0] ?? null,
    prune: (until) => writer.run(commands.prune, { until }),
  };
}
