import { and, eq, sql } from "drizzle-orm";
import type { Action, ActionStatus } from "../../src/actions/action.ts";
import { type Claimed, startAttempt } from "../../src/actions/settle.ts";
import type { DueRow } from "../store.ts";
import { isConstraint } from "./errors.ts";
import type { Done, Sql, SqlValue, Statement } from "./sql.ts";
import type { StoreContext } from "./context.ts";
import { isPaused } from "./pauses.ts";
import { type Args, changed, prepare, query } from "./query.ts";
import { actionOf, COLUMNS_BUT_RESULT } from "./rows.ts";
import { actions, timeline } from "./schema.ts";
import { setImmediate as nextTurn } from "node:timers/promises";
import { DUE_LANES_SCANNED_MAX } from "../../src/config/limits.ts";
import type { NotificationKind } from "../../src/delivery/notification.ts";

type ClaimName = "id" | "revision" | "now" | "leaseUntil";

const claim = (arg: Args<ClaimName>) => {
  const { revision, attempts, startedAt, accountId, keyId } = actions;
  const isPending = and(eq(actions.id, arg.id), eq(revision, arg.revision), eq(actions.status, "pending"));
  return query
    .update(actions)
    .set({
      status: "active",
      revision: sql`${revision} + 1`,
      attempts: sql`${attempts} + 1`,
      dueAt: null,
      leaseUntil: sql`${arg.leaseUntil}`,
      startedAt: sql`coalesce(${startedAt}, ${arg.now})`,
    })
    .where(and(isPending, sql`not ${isPaused(accountId, keyId)}`));
};

const CLAIM = prepare(claim);

const CLAIM_AND_READ = prepare((arg: Args<ClaimName>) => claim(arg).returning(COLUMNS_BUT_RESULT));

const READ = prepare((arg: Args<"id" | "revision">) =>
  query
    .select(COLUMNS_BUT_RESULT)
    .from(actions)
    .where(and(eq(actions.id, arg.id), eq(actions.revision, arg.revision))),
);

const STARTED = prepare((arg: Args<"id" | "now">) => {
  const { accountId, run, revision, id } = actions;
  return sql`insert into ${timeline} (action_id, account_id, at, run, revision, type, status, detail)
    select ${id}, ${accountId}, ${arg.now}, ${run}, ${revision}, 'started', 'active', '{}'
    from ${actions} where ${id} = ${arg.id} and ${changed}`;
});

/**
 * Makes pending actions active and counts the attempt, in one commit before anything is sent. The new revision is the
 * fencing token: only its holder can settle. Actions that changed meanwhile or are paused are not among those returned.
 * If the database refuses a row, each is claimed separately.
 */
export async function claimActions(db: StoreContext, due: readonly DueRow[], at: Claimed): Promise<readonly Action[]> {
  try {
    return await claimAll(db, due, at);
  } catch (error) {
    if (!isConstraint(error)) throw error;
    const [only] = due;
    if (due.length > 1) return (await Promise.all(due.map((one) => claimActions(db, [one], at)))).flat();
    if (only !== undefined) db.refused.add(only.id);
    return [];
  }
}

async function claimAll(
  { sql: reader, writer, seal, recent }: StoreContext,
  due: readonly DueRow[],
  at: Claimed,
): Promise<readonly Action[]> {
  const { now, leaseUntil } = at;
  const known: (Action | null)[] = [];
  for (const { id, revision, largeBytes } of due) {
    // Results of writes cross threads as JSON: a large row is read here first, under the same revision.
    const action =
      recent.take(id, revision) ?? (largeBytes === undefined ? null : await read({ sql: reader, seal }, id, revision));
    known.push(action);
  }
  const statements = due.flatMap(({ id, revision }, n): readonly Statement[] => [
    (known[n] === null ? CLAIM_AND_READ : CLAIM).bind({ id, revision, now, leaseUntil }),
    STARTED.bind({ id, now }),
  ]);
  const done = await writer.write(statements);
  const won = (claim: Done | undefined, action: Action | null | undefined): readonly Action[] => {
    if (claim === undefined || claim.changes === 0) return [];
    // Reading rows back through the driver would be the most expensive part of a claim.
    return action ? [startAttempt(action, at)] : claim.rows.map((row) => actionOf(row, seal));
  };
  return due.flatMap((_, n) => won(done[2 * n], known[n]));
}

async function read(
  { sql: reader, seal }: Pick<StoreContext, "sql" | "seal">,
  id: string,
  revision: number,
): Promise<Action | null> {
  const [row] = await READ.readRaw(reader, { id, revision });
  return row === undefined ? null : actionOf(row, seal);
}

/** Larger counts are reported as this number. */
const COUNTED_MAX = 100_000;

/** The statuses that are not final. Each has a partial index, so no other rows are read. */
const STATUSES = ["pending", "active", "awaiting_approval"] as const satisfies readonly ActionStatus[];

const KINDS = ["callback", "mail"] as const satisfies readonly NotificationKind[];

/**
 * Steps from the head of each lane to the next by the index of the queues, without reading the rows between: the next
 * key of the host, else the next host of the account, else the next account. A single row-value comparison would use
 * the index for the account only and scan all earlier lanes.
 */
const FIRST_DUE = prepare((arg: Args<"limit">) => {
  return sql<{ readonly due_at: SqlValue }>`WITH RECURSIVE head (id, n) AS (
  SELECT (SELECT id FROM actions WHERE status = 'pending' ORDER BY account_id, host, key_id, due_at LIMIT 1), 1
  UNION ALL
  SELECT coalesce(
    (SELECT b.id FROM actions b WHERE b.status = 'pending' AND b.account_id = actions.account_id AND b.host = actions.host
      AND b.key_id > actions.key_id ORDER BY b.key_id, b.due_at LIMIT 1),
    (SELECT b.id FROM actions b WHERE b.status = 'pending' AND b.account_id = actions.account_id AND b.host > actions.host
      ORDER BY b.host, b.key_id, b.due_at LIMIT 1),
    (SELECT b.id FROM actions b WHERE b.status = 'pending' AND b.account_id > actions.account_id
      ORDER BY b.account_id, b.host, b.key_id, b.due_at LIMIT 1)), n + 1
  FROM head JOIN actions ON actions.id = head.id WHERE n < ${arg.limit})
  SELECT min(actions.due_at) AS due_at FROM head JOIN actions ON actions.id = head.id
  WHERE NOT ${isPaused(actions.accountId, actions.keyId)}`;
});

/** Due time of the earliest pending action; null: none is pending, except paused ones. */
export async function findFirstDue(reader: Sql): Promise<Date | null> {
  const [row] = await FIRST_DUE.read(reader, { limit: DUE_LANES_SCANNED_MAX });
  return typeof row?.due_at === "number" ? new Date(row.due_at) : null;
}

/** Number of actions that are not final, by status. */
export async function countActions(reader: Sql): Promise<Partial<Record<ActionStatus, number>>> {
  const counts = await countEach(
    reader,
    STATUSES.map((status) => [status, `actions WHERE status = '${status}'`]),
  );
  return Object.fromEntries(STATUSES.map((status) => [status, counts.get(status) ?? 0]));
}

/** Number of notifications that are not final, by kind. */
export async function countNotifications(reader: Sql): Promise<Readonly<Record<NotificationKind, number>>> {
  const counts = await countEach(
    reader,
    KINDS.flatMap((kind) =>
      (["pending", "active"] as const).map(
        (status) => [kind, `outbox WHERE status = '${status}' AND kind = '${kind}'`] as const,
      ),
    ),
  );
  return { callback: counts.get("callback") ?? 0, mail: counts.get("mail") ?? 0 };
}

/** Counts the rows of each source, in a turn of the event loop each (5 ms at most), and adds up sources of one name. */
async function countEach(reader: Sql, sources: readonly (readonly [name: string, source: string])[]) {
  const counts = new Map<string, number>();
  for (const [name, source] of sources) {
    const text = `SELECT count(*) AS n FROM (SELECT 1 FROM ${source} LIMIT ?)`;
    const [row] = await reader.read({ sql: text, args: [COUNTED_MAX] });
    counts.set(name, (counts.get(name) ?? 0) + Number(row?.["n"]));
    await nextTurn();
  }
  return counts;
}
