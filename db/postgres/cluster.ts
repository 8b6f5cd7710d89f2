/** What nodes share besides the store: a clock, who is alive, who runs which job, and hints of each other's commits. */
import { asc, gt, sql } from "drizzle-orm";
import {
  HINT_EVERY_MS,
  HINT_PING_MS,
  HINT_RETRY_MS,
  JOB_LEASE_MS_MAX,
  STORE_CALL_MS_MAX,
} from "../../src/core/limits.ts";
import type { ChangedPage, ClusterStore } from "../../src/core/store.ts";
import { orUnavailable } from "../sql/errors.ts";
import type { StatementResult, SqlValue, Reader } from "../sql/dialect.ts";
import { prepare, qb } from "../sql/read.ts";
import { actions, timeline } from "../tables.ts";
import { Client, type ClientConfig, type Notification } from "pg";
import { setTimeout as pause } from "node:timers/promises";
import type { Send } from "./connection.ts";
import { type DbConnection, runStatements } from "../commands/command.ts";

/** The server's time in milliseconds. Unlike `now()`, it goes on within a transaction and a statement. */
const CLOCK = "cast(extract(epoch from clock_timestamp()) * 1000 as bigint)";

// One statement, so that every node it returns was alive at this node's beat. Dead nodes are deleted by one node at a time, since two
// would wait for each other. A beat in the future is from before the clock was set back.
const BEAT = `with clock as materialized (select ${CLOCK} as now),
    self as (
      insert into nodes (id, version, started_at, seen_at, over_hosts) select $1, $2, $3, now, $5 from clock
      on conflict (id) do update set seen_at = excluded.seen_at, over_hosts = excluded.over_hosts
      returning id, version, started_at, seen_at, over_hosts),
    dead as (
      delete from nodes where id in (
        select id from nodes, clock where abs(now - seen_at) >= $4 and id <> $1 for update of nodes skip locked))
    select id, version, started_at, seen_at, over_hosts from self
    union all
    select id, version, started_at, seen_at, over_hosts from nodes, clock where abs(now - seen_at) < $4 and id <> $1`;

const TAKE_JOB = `insert into jobs (name, node_id, until) values ($1, $2, ${CLOCK} + $3)
    on conflict (name) do update set node_id = excluded.node_id, until = excluded.until
    where jobs.node_id = excluded.node_id or jobs.until <= ${CLOCK} or jobs.until > ${CLOCK} + ${JOB_LEASE_MS_MAX}`;

/** What nodes share besides the store: the clock, which nodes live, and which runs which job. Nothing is kept in a session. */
export function createNodeStore(
  connection: Pick<DbConnection, "read" | "transact">,
): Pick<ClusterStore, "now" | "beat" | "leave" | "takeJob" | "releaseJob"> {
  /** These writes share no commit with others, so they bypass the writer and classify errors here. */
  const write = async (text: string, ...args: readonly SqlValue[]): Promise<StatementResult | undefined> =>
    (await orUnavailable(() => runStatements(connection, [{ sql: text, args }])))[0];
  return {
    async now() {
      const [row] = await connection.read({ sql: `select ${CLOCK} as now`, args: [] });
      return new Date(Number(row?.["now"]));
    },
    async beat({ id, version, startedAt }, livesMs, overHosts = []) {
      const done = await write(BEAT, id, version, startedAt.getTime(), livesMs, overHosts.join(" "));
      return (done?.rows ?? []).map((row) => ({
        id: String(row["id"]),
        version: String(row["version"]),
        startedAt: new Date(Number(row["started_at"])),
        beatAt: new Date(Number(row["seen_at"])),
        overHosts: String(row["over_hosts"]).split(" ").filter(Boolean),
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
  // A column, not a condition, since rows after the first open transaction are also read.
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

/** Reads the changes of all nodes. */
export function createChangeReader(reader: Reader): Pick<ClusterStore, "changedSince" | "findRevisions"> {
  return {
    async changedSince(position, limit): Promise<ChangedPage> {
      const rows = await ROWS_AFTER.all(reader, { after: position, limit });
      const settled = rows.findLast(({ isSettled }) => isSettled === 1);
      const isLast = rows.length < limit && settled === rows.at(-1);
      return { changes: rows, position: settled?.seq ?? position, isLast };
    },
    async findRevisions(ids) {
      const rows = await REVISIONS.all(reader, { ids });
      return new Map(rows.map((row) => [row.id, row.revision]));
    },
  };
}

/** The channel on which nodes announce commits, with the sender's name as the payload. */
export const HINT_CHANNEL = "outgate_hints";

/** How often the connection is checked or tried again, and how long the server may take to answer. */
interface HintTimes {
  readonly pingMs: number;
  readonly retryMs: number;
  readonly answerMs: number;
}

const TIMES: HintTimes = { pingMs: HINT_PING_MS, retryMs: HINT_RETRY_MS, answerMs: STORE_CALL_MS_MAX };

/**
 * Sends hints of commits to the other nodes, after the commits: inside their transactions, commits of all nodes would wait for
 * each other. The node's own listener ignores `sender`. Commits soon after a hint share the next one.
 */
export function createHintSender(sender: string): (send: Send) => void {
  let sentMs = Number.NEGATIVE_INFINITY;
  let isWaiting = false;
  const hint = (send: Send) => {
    isWaiting = false;
    sentMs = performance.now();
    send("select pg_notify($1, $2)", [HINT_CHANNEL, sender]);
  };
  return (send) => {
    const waitMs = sentMs + HINT_EVERY_MS - performance.now();
    if (isWaiting) return;
    if (waitMs <= 0) return hint(send);
    isWaiting = true;
    setTimeout(hint, waitMs, send);
  };
}

/**
 * Listens for hints of other nodes' commits, over its own connection, and connects again if that is lost or the server stops answering. Null if
 * hints would not arrive: behind a pooler, which lends a connection to others after each transaction, or if the database has no LISTEN.
 */
export function createListen(config: ClientConfig, sender: string, times = TIMES): ClusterStore["listen"] {
  const { pingMs, retryMs, answerMs } = times;
  // Its queries have a deadline, to notice a server that went silent. Without a pipeline, since its end would be awaited.
  const limits = { connectionTimeoutMillis: answerMs, query_timeout: answerMs };
  const settings = { ...config, ...limits, pipeline: false, keepAlive: true };
  return async (onHint, onGap) => {
    const stopping = new AbortController();
    const connect = () =>
      listenOn(new Client(settings), (payload) => {
        if (payload !== sender) onHint();
      });
    const first = await connect();
    if (first === "no hints") return null;
    const keepOn = async () => {
      for (let state: Listening = first; state !== "no hints";) {
        if (state !== "away") await untilLost(state, pingMs, stopping.signal);
        await pause(retryMs, undefined, { signal: stopping.signal }).catch(() => {});
        if (stopping.signal.aborted) return;
        state = await connect();
        if (typeof state === "object" && !stopping.signal.aborted) onGap();
      }
    };
    // Nothing waits for it: each of its steps ends, whatever happens.
    keepOn().catch(() => {});
    return async () => stopping.abort();
  };
}

/** A listening connection. `lost` aborts when it ends. */
interface Listener {
  readonly client: Client;
  readonly lost: AbortSignal;
}

type Listening = Listener | "away" | "no hints";

async function listenOn(client: Client, onPayload: (payload: string | undefined) => void): Promise<Listening> {
  const end = new AbortController();
  client.on("error", () => end.abort());
  client.on("end", () => end.abort());
  client.on("notification", ({ payload }: Notification) => onPayload(payload));
  try {
    await client.connect();
    const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
    // When a connection begins, the server sends its process id; a pooler sends a number of its own.
    const isDirect = rows[0]?.pid === Reflect.get(client, "processID");
    if (isDirect) await client.query(`listen ${HINT_CHANNEL}`);
    else drop(client);
    return isDirect ? { client, lost: end.signal } : "no hints";
  } catch (error) {
    drop(client);
    return isUnsupported(error) ? "no hints" : "away";
  }
}

/** Waits until the connection is lost, its server is silent or nobody listens any more, then gives it up. */
async function untilLost({ client, lost }: Listener, pingMs: number, stopping: AbortSignal): Promise<void> {
  const over = AbortSignal.any([lost, stopping]);
  try {
    for (;;) {
      await pause(pingMs, undefined, { signal: over });
      await client.query("select 1");
    }
  } catch {
    drop(client);
  }
}

/** Ends a connection without waiting, since a server that went silent never confirms it. */
function drop(client: Client): void {
  client.end().catch(() => {});
}

/** Feature not supported, syntax error, unknown name: how engines without LISTEN answer. */
const UNSUPPORTED: ReadonlySet<unknown> = new Set(["0A000", "42601", "42883"]);

function isUnsupported(error: unknown): boolean {
  return error instanceof Error && UNSUPPORTED.has(Reflect.get(error, "code"));
}
