import { sql } from "drizzle-orm";
import { JOB_LEASE_MS_MAX } from "../../src/core/limits.ts";
import { faultOf, unavailable } from "../sql/errors.ts";
import { type Args, prepare } from "../sql/query.ts";
import type { Done, Sql, SqlValue, Statement } from "../sql/sql.ts";
import type { ClusterStore } from "../../src/core/store.ts";

/** In milliseconds. It goes on within a transaction and a statement, unlike `now()`. */
const CLOCK = sql`cast(extract(epoch from clock_timestamp()) * 1000 as bigint)`;

const NOW = prepare(() => sql<{ readonly now: SqlValue }>`select ${CLOCK} as now`);

interface NodeColumns {
  readonly id: string;
  readonly version: string;
  readonly started_at: number;
  readonly seen_at: number;
}

// One statement: whoever is returned lived when this node said that it does. Dead nodes are deleted, but by no two nodes
// at a time, which would wait for each other. A beat in the future is from before the clock was set back.
const BEAT = prepare(
  (
    arg: Args<"id" | "version" | "startedAt" | "livesMs">,
  ) => sql<NodeColumns>`with clock as materialized (select ${CLOCK} as now),
    self as (
      insert into nodes (id, version, started_at, seen_at) select ${arg.id}, ${arg.version}, ${arg.startedAt}, now from clock
      on conflict (id) do update set seen_at = excluded.seen_at returning id, version, started_at, seen_at),
    dead as (
      delete from nodes where id in (
        select id from nodes, clock where abs(now - seen_at) >= ${arg.livesMs} and id <> ${arg.id} for update of nodes skip locked))
    select id, version, started_at, seen_at from self
    union all
    select id, version, started_at, seen_at from nodes, clock where abs(now - seen_at) < ${arg.livesMs} and id <> ${arg.id}`,
);

const LEAVE = prepare((arg: Args<"id">) => sql`delete from nodes where id = ${arg.id}`);

const TAKE_JOB = prepare(
  (arg: Args<"name" | "id" | "lastsMs">) => sql`insert into jobs (name, node_id, until)
    values (${arg.name}, ${arg.id}, ${CLOCK} + ${arg.lastsMs})
    on conflict (name) do update set node_id = excluded.node_id, until = excluded.until
    where jobs.node_id = excluded.node_id or jobs.until <= ${CLOCK} or jobs.until > ${CLOCK} + ${JOB_LEASE_MS_MAX}`,
);

const RELEASE_JOB = prepare(
  (arg: Args<"name" | "id">) => sql`delete from jobs where name = ${arg.name} and node_id = ${arg.id}`,
);

/** What nodes share besides the store: the clock, who lives, and who runs which job. Nothing of it is kept in a session. */
export function createNodeStore(
  connection: Pick<Sql, "read" | "batch">,
): Pick<ClusterStore, "now" | "beat" | "leave" | "takeJob" | "releaseJob"> {
  /** These writes share no commit with others, and so don't pass the writer, which tells callers what a fault means. */
  const write = async (statement: Statement): Promise<Done | undefined> => {
    try {
      return (await connection.batch([statement]))[0];
    } catch (error) {
      throw faultOf(error) === "rejected" ? error : unavailable(error);
    }
  };
  return {
    async now() {
      const [row] = await NOW.read(connection, {});
      return new Date(Number(row?.now));
    },
    async beat({ id, version, startedAt }, livesMs) {
      const done = await write(BEAT.bind({ id, version, startedAt, livesMs }));
      return (done?.rows ?? []).map((row) => ({
        id: String(row["id"]),
        version: String(row["version"]),
        startedAt: new Date(Number(row["started_at"])),
        beatAt: new Date(Number(row["seen_at"])),
      }));
    },
    async leave(id) {
      await write(LEAVE.bind({ id }));
    },
    async takeJob(name, id, lastsMs) {
      const done = await write(TAKE_JOB.bind({ name, id, lastsMs }));
      return done?.changes === 1;
    },
    async releaseJob(name, id) {
      await write(RELEASE_JOB.bind({ name, id }));
    },
  };
}
