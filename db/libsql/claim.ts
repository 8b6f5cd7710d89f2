import { sql, type SQL } from "drizzle-orm";
import type { LaneHead, LaneName } from "../store.ts";
import { type Args, bareNames, prepare } from "../sql/query.ts";
import { type ClaimArgs, headOf, type QueueStatements, type QueueTable } from "../sql/queue.ts";
import type { Sql } from "../sql/sql.ts";

/**
 * The statements of a queue for SQLite. Those of a claim choose the same rows, since they are one transaction. SQLite has
 * no LIMIT that depends on an outer row, so each lane's rows are collected in a JSON array (of rowids and sizes, never of
 * text: `->>` aborts the process on a lone surrogate). Most claims are of one lane, for which a plain LIMIT does in a
 * third of the time.
 */
type ClaimArgs = Args<
  | ("lanes" | "accountId" | "host" | "keyId" | "limit")
  | ("now" | "bytesMax" | "largest" | "refused" | "leaseUntil" | "by")
>;

/** A table of rows that wait in lanes, as SQL. */
export interface QueueTable {
  readonly name: "actions" | "outbox";
  /** The condition of the partial index of pending rows, and of that of active ones. */
  readonly pending: string;
  readonly active: string;
  /** The counter that is part of the fencing token. */
  readonly fence: "revision" | "attempts";
  /** Memory that an attempt of a row takes. It reads lengths only, which SQLite keeps before the values. */
  readonly bytes: string;
  /** What a row is read from. */
  readonly columns: Readonly<Record<string, Column>>;
  /** Holds while nothing of the account and key may be claimed. */
  readonly isPaused: (accountId: SQLWrapper, keyId: SQLWrapper) => SQL;
  readonly set: (arg: ClaimArgs) => SQL;
  /** A row of the timeline for each row that is claimed: the rest of the statement is a condition on the row. */
  readonly started: ((arg: ClaimArgs) => SQL) | null;
}

const ACTIONS: QueueTable = {
  ...PENDING_ACTIONS,
  active: "status = 'active'",
  fence: "revision",
  bytes: "ifnull(octet_length(body), 0) + ifnull(octet_length(sealed_headers), 0)",
  columns: COLUMNS_BUT_RESULT,
  isPaused,
  set: ({
    leaseUntil,
    by,
    now,
  }) => sql`status = 'active', revision = revision + 1, attempts = attempts + 1, due_at = NULL,
    lease_until = ${leaseUntil}, claimed_by = ${by}, started_at = coalesce(started_at, ${now})`,
  started: ({ now }) => sql`INSERT INTO timeline (action_id, account_id, at, run, revision, type, status, detail)
    SELECT id, account_id, ${now}, run, revision + 1, 'started', 'active', '{}' FROM actions WHERE`,
};

export function createActionQueue(db: StoreContext): Queue<Action> {
  const { seal, written } = db;
  const claimedFrom: ClaimedFrom<Action> = (id, revision, at) => {
    const action = written.take(id, revision - 1);
    return action === null ? null : startAttempt(action, at);
  };
  return {
    ...createQueue(ACTIONS, db, (row) => actionOf(row, seal), claimedFrom),
    orphans: (leaseBefore, limit, after) => findOrphans(db, leaseBefore, limit, after),
    broken: (limit, after) => findBroken(db, limit, after),
    reschedule: (setBack, limit) => rescheduleActions(db.writer, setBack, limit),
  };
}

/** A row as this claim leaves it, if memory has it; null: read it. `revision` is the one of after the claim. */
type ClaimedFrom<T> = (id: string, revision: number, at: Claimed) => T | null;

/** The part of a queue that is the same for actions and notifications. */
export function createQueue<T>(
  table: QueueTable,
  { sql: reader, writer, refused }: Pick<StoreContext, "sql" | "writer" | "refused">,
  parse: (row: Row) => T,
  claimedFrom: ClaimedFrom<T> | null = null,
): Pick<Queue<T>, "lanes" | "claimDue" | "claimed"> {
  const { ofLane, ofLanes, next, claimedRows, claimedIds } = statementsOf(table);

  const claimedRow = (row: Row): ClaimedRow<T> => ({ row: parse(row), largeBytes: largeBytesIn(row) });
  const readClaimed = (ids: readonly SqlValue[], { leaseUntil }: Claimed) =>
    ids.length === 0 ? [] : claimedIds.readRaw(reader, { ids: JSON.stringify(ids), leaseUntil });
  /** The rows of these ids and revisions, in their order. */
  const rowsOf = async (won: readonly Row[], at: Claimed): Promise<readonly ClaimedRow<T>[]> => {
    const known = won.map(({ id, fence }) => claimedFrom?.(String(id), Number(fence), at) ?? null);
    const missing = won.flatMap(({ id = null }, n) => (known[n] === null ? [id] : []));
    const read = new Map((await readClaimed(missing, at)).map((row) => [row["id"], claimedRow(row)]));
    return won.flatMap(({ id }, n) => {
      const row = known[n] ?? null;
      return row === null ? (read.get(id) ?? []) : { row, largeBytes: 0 };
    });
  };

  const claimOnce = async (claim: Claim) => {
    const args = argsOf(claim, refused);
    const { started, updateIds, updateRows } = claim.lanes.length === 1 ? ofLane : ofLanes;
    // Results of writes cross threads as JSON: large rows are read afterwards instead, and those that memory has are not.
    const update = claim.takesLarge || claimedFrom !== null ? updateIds : updateRows;
    const done = await writer.write([
      ...(started === null ? [] : [started.bind(args)]),
      update.bind(args),
      next.bind(args),
    ]);
    const [updated, heads] = done.slice(-2);
    const won = updated?.rows ?? [];
    return {
      rows: update === updateRows ? won.map(claimedRow) : await rowsOf(won, claim.at),
      next: (heads?.rows ?? []).map((row) => ({ ...headOf(row), isLarge: largeBytesIn(row) > 0 })),
    };
  };

  const claimDue: Queue<T>["claimDue"] = async (claim) => {
    try {
      return await claimOnce(claim);
    } catch (error) {
      if (!isConstraint(error)) throw error;
      // One of the rows was altered: claim in smaller parts until it is alone.
      const [lane] = claim.lanes;
      if (claim.lanes.length > 1 || lane === undefined) {
        const parts = await Promise.all(claim.lanes.map((one) => claimDue({ ...claim, lanes: [one] })));
        return { rows: parts.flatMap((part) => part.rows), next: parts.flatMap((part) => part.next) };
      }
      if (lane.limit > 1) return claimDue({ ...claim, lanes: [{ ...lane, limit: Math.ceil(lane.limit / 2) }] });
      const [head] = await ofLane.ids.readRaw(reader, argsOf(claim, refused));
      if (head === undefined || !refused.add(String(head["id"]))) throw error;
      return claimDue(claim);
    }
  };

  return {
    lanes: (after, limit) => findLanes(reader, table, after, limit),
    claimDue,
    async claimed(accountIds, { leaseUntil, by = "" }) {
      const rows = await claimedRows.readRaw(reader, { accountIds: JSON.stringify(accountIds), leaseUntil, by });
      return rows.map(parse);
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
  const isClaimable = ({ refused }: Args<"refused">) => sql`typeof(due_at) = 'integer'
    AND typeof(${sql.raw(table.fence)}) = 'integer' AND typeof(id) = 'text'
    AND id NOT IN (SELECT value FROM json_each(${refused}))`;
  const isOfLane = (arg: Args<"refused">) => sql`${sql.raw(table.pending)} AND account_id = lane.value ->> 0
    AND host = lane.value ->> 1 AND key_id = lane.value ->> 2 AND ${isClaimable(arg)}`;
  const isChosenOfLane = (arg: ClaimArgs) => sql`rowid IN (SELECT number FROM (
    SELECT number, sum(bytes) OVER turns AS total, max(bytes) OVER turns AS largest, row_number() OVER turns AS turn FROM (
      SELECT rowid AS number, due_at, ${bytes} AS bytes FROM ${name} WHERE ${sql.raw(table.pending)}
        AND account_id = ${arg.accountId} AND host = ${arg.host} AND key_id = ${arg.keyId} AND due_at <= ${arg.now}
        AND ${isClaimable(arg)} ORDER BY due_at, rowid LIMIT ${arg.limit})
    WINDOW turns AS (ORDER BY due_at, number)
  ) WHERE largest <= ${arg.largest} AND (total <= ${arg.bytesMax} OR turn = 1))
  AND NOT ${table.isPaused(sql`${arg.accountId}`, sql`${arg.keyId}`)}`;
  const isOpen = sql`NOT ${table.isPaused(sql`(lane.value ->> 0)`, sql`(lane.value ->> 2)`)}`;
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
      started: table.isTold ? prepare((arg: ClaimArgs) => sql`${started(arg)} ${chosen(arg)}`) : null,
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
        arg: Args<"lanes" | "refused">,
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

function argsOf({ lanes, bytesMax, takesLarge, at }: Claim, refused: Refused) {
  const rows = lanes.map(({ accountId, host, keyId, limit }) => [accountId, host.toWellFormed(), keyId, limit]);
  const [[accountId = "", host = "", keyId = ""] = []] = rows;
  return {
    lanes: JSON.stringify(rows),
    accountId,
    host,
    keyId,
    limit: Math.max(0, ...lanes.map((lane) => lane.limit)),
    bytesMax,
    largest: takesLarge ? Number.MAX_SAFE_INTEGER : SMALL_ROW_BYTES_MAX,
    refused: refused.json,
    now: at.now,
    leaseUntil: at.leaseUntil,
    by: at.by ?? "",
  };
}

/** The head of each lane: one index lookup per lane, without reading the rows behind it. */
async function findLanes(
  reader: Sql,
  { name, pending }: QueueTable,
  after: LaneName | null,
  limit: number,
): Promise<readonly LaneHead[]> {
  const text = `SELECT account_id, host, key_id, due_at FROM ${name}
    WHERE ${pending} AND (account_id, host, key_id) > (?, ?, ?)
    ORDER BY account_id, host, key_id, due_at LIMIT 1`;
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
