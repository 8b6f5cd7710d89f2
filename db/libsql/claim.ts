import { sql, type SQL } from "drizzle-orm";
import type { LaneHead, LaneName } from "../../src/core/store.ts";
import { type Args, bareNames, prepare } from "../sql/query.ts";
import { type ClaimArgs, headOf, type QueueStatements, type QueueTable } from "../sql/queue.ts";
import type { Sql } from "../sql/sql.ts";

/**
 * The statements of a queue for SQLite. Those of a claim choose the same rows, since they are one transaction. SQLite has
 * no LIMIT that depends on an outer row, so each lane's rows are collected in a JSON array (of rowids and sizes, never of
 * text: `->>` aborts the process on a lone surrogate). Most claims are of one lane, for which a plain LIMIT does in a
 * third of the time.
 */
export function sqliteQueue(table: QueueTable): QueueStatements {
  const { ofLane, ofLanes, next, claimedRows, claimedIds } = preparedFor(table);
  return {
    claim(values, returned) {
      const { started, updateIds, updateRows } = values.laneCount === 1 ? ofLane : ofLanes;
      const update = returned === "rows" ? updateRows : updateIds;
      return [...(started === null ? [] : [started.bind(values)]), update.bind(values), next.bind(values)];
    },
    choose: (values) => ofLane.ids.bind(values),
    claimedBy: (values) => claimedRows.bind(values),
    claimedWith: (values) => claimedIds.bind(values),
    lanes: (reader, after, limit) => findLanes(reader, table, after, limit),
  };
}

function preparedFor(table: QueueTable) {
  const { bytes, set } = table;
  const [name, active] = [sql.raw(table.name), sql.raw(table.active)];
  const columns = sql`${bareNames(...Object.values(table.columns))}, ${bytes} AS bytes`;
  // `broken` returns the rows that can't be claimed.
  const isClaimable = ({ refused, now }: Args<"refused" | "now">) => sql`typeof(due_at) = 'integer'
    AND typeof(${sql.raw(table.fence)}) = 'integer' AND typeof(id) = 'text' AND ${table.isLive(sql`${now}`)}
    AND id NOT IN (SELECT value FROM json_each(${refused}))`;
  const isOfLane = (arg: Args<"refused" | "now">) => sql`${sql.raw(table.pending)} AND account_id = lane.value ->> 0
    AND host = lane.value ->> 1 AND key_id = lane.value ->> 2 AND ${isClaimable(arg)}`;
  const isChosenOfLane = (arg: ClaimArgs) => sql`rowid IN (SELECT number FROM (
    SELECT number, sum(bytes) OVER turns AS total, max(bytes) OVER turns AS largest, row_number() OVER turns AS turn FROM (
      SELECT rowid AS number, due_at, ${bytes} AS bytes FROM ${name} WHERE ${sql.raw(table.pending)}
        AND account_id = ${arg.accountId} AND host = ${arg.host} AND key_id = ${arg.keyId} AND due_at <= ${arg.now}
        AND ${isClaimable(arg)} ORDER BY due_at, rowid LIMIT ${arg.limit})
    WINDOW turns AS (ORDER BY due_at, number)
  ) WHERE largest <= ${arg.largest} AND (total <= ${arg.bytesMax} OR turn = 1))
  AND NOT ${table.isPaused(arg)}`;
  const isOpen = sql`NOT ${table.isPaused({ accountId: sql`(lane.value ->> 0)`, host: sql`(lane.value ->> 1)`, keyId: sql`(lane.value ->> 2)` })}`;
  const isChosen = (arg: ClaimArgs) => sql`rowid IN (SELECT number FROM (
    SELECT number, sum(bytes) OVER turns AS total, row_number() OVER turns AS turn FROM (
      SELECT lane.key AS lane, row.key AS place, row.value ->> 0 AS number, row.value ->> 1 AS bytes,
        max(row.value ->> 1) OVER (PARTITION BY lane.key ORDER BY row.key) AS largest
      FROM json_each(${arg.lanes}) lane, json_each((SELECT json_group_array(json_array(number, bytes)) FROM (
        SELECT rowid AS number, ${bytes} AS bytes FROM ${name}
        WHERE ${isOfLane(arg)} AND due_at <= ${arg.now} ORDER BY due_at, rowid LIMIT ${arg.limit}))) row
      WHERE row.key < lane.value ->> 3 AND ${isOpen}
    ) WHERE largest <= ${arg.largest} WINDOW turns AS (ORDER BY place, lane)
  ) WHERE total <= ${arg.bytesMax} OR turn = 1)`;
  const statements = (chosen: (arg: ClaimArgs) => SQL) => {
    const update = (returned: SQL) =>
      prepare((arg: ClaimArgs) => sql`UPDATE ${name} SET ${set(arg)} WHERE ${chosen(arg)} RETURNING ${returned}`);
    return {
      started: table.isTold ? prepare((arg: ClaimArgs) => sql`${startedRows(arg)} ${chosen(arg)}`) : null,
      updateRows: update(columns),
      updateIds: update(sql`id, ${sql.raw(table.fence)} AS fence`),
      ids: prepare((arg: ClaimArgs) => sql`SELECT id FROM ${name} WHERE ${chosen(arg)}`),
    };
  };
  const claimedWhere = sql`SELECT ${columns} FROM ${name} WHERE ${active}`;
  return {
    ofLane: statements(isChosenOfLane),
    ofLanes: statements(isChosen),
    next: prepare(
      (
        arg: Args<"lanes" | "refused" | "now">,
      ) => sql`SELECT head.account_id, head.host, head.key_id, head.due_at, ${bytes} AS bytes
        FROM json_each(${arg.lanes}) lane JOIN ${name} head
          ON head.rowid = (SELECT rowid FROM ${name} WHERE ${isOfLane(arg)} ORDER BY due_at, rowid LIMIT 1)
        WHERE ${isOpen}`,
    ),
    claimedRows: prepare(
      (arg: Args<"accountIds" | "leaseUntil" | "by">) => sql`${claimedWhere} AND claimed_by = ${arg.by}
        AND account_id IN (SELECT value FROM json_each(${arg.accountIds})) AND lease_until = ${arg.leaseUntil}`,
    ),
    claimedIds: prepare(
      (arg: Args<"ids" | "leaseUntil">) => sql`${claimedWhere}
        AND id IN (SELECT value FROM json_each(${arg.ids})) AND lease_until = ${arg.leaseUntil}`,
    ),
  };
}

/** A row of the timeline for each action that is claimed: the rest of the statement is a condition on the row. */
function startedRows({ now }: ClaimArgs): SQL {
  return sql`INSERT INTO timeline (action_id, account_id, at, run, revision, type, status, detail)
    SELECT id, account_id, ${now}, run, revision + 1, 'started', 'active', '{}' FROM actions WHERE`;
}

/**
 * The head of each lane: up to three looks into the index of the queues, for the next key of the host, else the next host
 * of the account, else the next account. A single row-value comparison would begin at the rows of the lane before and read
 * all of them: with a million of them, the event loop stands still for a second.
 */
async function findLanes(
  reader: Sql,
  { name, pending }: QueueTable,
  after: LaneName | null,
  limit: number,
): Promise<readonly LaneHead[]> {
  const first = (condition: string, order: string) =>
    `(SELECT rowid FROM ${name} WHERE ${pending} AND ${condition} ORDER BY ${order} LIMIT 1)`;
  const text = `SELECT account_id, host, key_id, due_at FROM ${name} WHERE rowid = coalesce(
    ${first("account_id = ?1 AND host = ?2 AND key_id > ?3", "key_id, due_at")},
    ${first("account_id = ?1 AND host > ?2", "host, key_id, due_at")},
    ${first("account_id > ?1", "account_id, host, key_id, due_at")})`;
  const heads: LaneHead[] = [];
  let last = after;
  while (heads.length < limit) {
    const [row] = await reader.read({ sql: text, args: [last?.accountId ?? "", last?.host ?? "", last?.keyId ?? ""] });
    if (row === undefined) break;
    const head = headOf(row);
    heads.push(head);
    last = head;
  }
  return heads;
}
