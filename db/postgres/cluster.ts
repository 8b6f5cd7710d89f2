import { asc, gt, sql } from "drizzle-orm";
import { JOB_LEASE_MS_MAX } from "../../src/core/limits.ts";
import type { ChangedPage, ClusterStore } from "../../src/core/store.ts";
import { orUnavailable } from "../sql/errors.ts";
import type { Done, Sql, SqlValue } from "../sql/sql.ts";
import { prepare, type Reader, qb } from "../sql/read.ts";
import { actions, timeline } from "../libsql/schema.ts";

/** In milliseconds. It goes on within a transaction and a statement, unlike `now()`. */
const CLOCK = "cast(extract(epoch from clock_timestamp()) * 1000 as bigint)";

// One statement: whoever is returned lived when this node said that it does. Dead nodes are deleted, but by no two nodes
// at a time, which would wait for each other. A beat in the future is from before the clock was set back.
const BEAT = `with clock as materialized (select ${CLOCK} as now),
    self as (
      insert into nodes (id, version, started_at, seen_at) select $1, $2, $3, now from clock
      on conflict (id) do update set seen_at = excluded.seen_at returning id, version, started_at, seen_at),
    dead as (
      delete from nodes where id in (
        select id from nodes, clock where abs(now - seen_at) >= $4 and id <> $1 for update of nodes skip locked))
    select id, version, started_at, seen_at from self
    union all
    select id, version, started_at, seen_at from nodes, clock where abs(now - seen_at) < $4 and id <> $1`;

const TAKE_JOB = `insert into jobs (name, node_id, until) values ($1, $2, ${CLOCK} + $3)
    on conflict (name) do update set node_id = excluded.node_id, until = excluded.until
    where jobs.node_id = excluded.node_id or jobs.until <= ${CLOCK} or jobs.until > ${CLOCK} + ${JOB_LEASE_MS_MAX}`;

/** What nodes share besides the store: the clock, who lives, and who runs which job. Nothing of it is kept in a session. */
export function createNodeStore(
  connection: Pick<Sql, "read" | "batch">,
): Pick<ClusterStore, "now" | "beat" | "leave" | "takeJob" | "releaseJob"> {
  /** These writes share no commit with others, and so don't pass the writer, which tells callers what a fault means. */
  const write = async (text: string, ...args: readonly SqlValue[]): Promise<Done | undefined> =>
    (await orUnavailable(() => connection.batch([{ sql: text, args }])))[0];
  return {
    async now() {
      const [row] = await connection.read({ sql: `select ${CLOCK} as now`, args: [] });
      return new Date(Number(row?.["now"]));
    },
    async beat({ id, version, startedAt }, livesMs) {
      const done = await write(BEAT, id, version, startedAt.getTime(), livesMs);
      return (done?.rows ?? []).map((row) => ({
        id: String(row["id"]),
        version: String(row["version"]),
        startedAt: new Date(Number(row["started_at"])),
        beatAt: new Date(Number(row["seen_at"])),
      }));
    },
    async leave(id) {
      await write("delete from nodes where id = $1", id);
    },
    async takeJob(name, id, lastsMs) {
      const done = await write(TAKE_JOB, name, id, lastsMs);
      return done?.changes === 1;
    },
    async releaseJob(name, id) {
      await write("delete from jobs where name = $1 and node_id = $2", name, id);
    },
  };
}

const ROWS_AFTER = prepare({ after: "number", limit: "number" }, (arg, { isSettled }) => {
  const { seq, actionId, accountId, revision } = timeline;
  // As a value: rows behind the first open transaction are read too.
  const settled = sql<number>`case when ${isSettled(seq) ?? sql`true`} then 1 else 0 end`.as("is_settled");
  return qb
    .select({ seq, actionId, accountId, revision, isSettled: settled })
    .from(timeline)
    .where(gt(seq, arg.after))
    .orderBy(asc(seq))
    .limit(arg.limit);
});

const REVISIONS = prepare({ ids: "list" }, (arg, { isOneOf }) =>
  qb.select({ id: actions.id, revision: actions.revision }).from(actions).where(isOneOf(actions.id, arg.ids)),
);

/** What a node reads of the changes of all nodes. */
export function createChangeReader(reader: Reader): Pick<ClusterStore, "changedSince" | "revisionsOf"> {
  return {
    async changedSince(position, limit): Promise<ChangedPage> {
      const rows = await ROWS_AFTER.all(reader, { after: position, limit });
      const settled = rows.findLast(({ isSettled }) => isSettled === 1);
      const isLast = rows.length < limit && settled === rows.at(-1);
      return { changes: rows, position: settled?.seq ?? position, isLast };
    },
    async revisionsOf(ids) {
      const rows = await REVISIONS.all(reader, { ids });
      return new Map(rows.map((row) => [row.id, row.revision]));
    },
  };
}
