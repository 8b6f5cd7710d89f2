import { and, asc, eq, gt, inArray, lt, lte, max, sql } from "drizzle-orm";
import type { Action } from "../../src/core/action.ts";
import { actionAsOf, type TimelineEntry } from "../../src/core/timeline.ts";
import { EVENT_PAGE_BYTES_MAX, EVENT_PAGE_MAX, EVENT_SCAN_ROWS_MAX, TIMELINE_ROWS_MAX } from "../../src/core/limits.ts";
import type { ActionChange, ChangePage } from "../../src/core/store.ts";
import type { StoreContext } from "./context.ts";
import { bytesOf, isSettled } from "./dialect.ts";
import { findAction } from "./find.ts";
import { type Args, prepare, query } from "./query.ts";
import { timelineEntryOf } from "./rows.ts";
import { actions, timeline } from "../libsql/schema.ts";
import type { Row, Sql } from "./sql.ts";

type Reader = Pick<StoreContext, "sql" | "seal">;

/** Types of the first timeline row of a change: each change has exactly one of them. */
const CHANGES = [
  "created",
  "started",
  "not_started",
  "approved",
  "rejected",
  "cancelled",
  "retried",
  "attempt",
  "late_result",
];

const { seq, at, run, revision, type, status, detail, actionId } = timeline;

/** Bytes of the columns that can be long. */
const bytes = sql`${bytesOf(actions.body)} + ${bytesOf(actions.sealedHeaders)} + ${bytesOf(actions.extras)}
  + ${bytesOf(actions.responseBody)} + ${bytesOf(actions.lateResult)}`;

const changesIn = prepare((arg: Args<"after" | "until" | "accountId">) =>
  query
    .select({ seq, actionId, at, run, revision, type, status, detail, bytes: bytes.as("bytes") })
    .from(timeline)
    .crossJoin(actions)
    .where(
      and(
        gt(seq, arg.after),
        lte(seq, arg.until),
        eq(timeline.accountId, arg.accountId),
        inArray(type, CHANGES),
        eq(actions.id, actionId),
      ),
    )
    .orderBy(asc(seq))
    .limit(EVENT_PAGE_MAX),
);

/**
 * The next changes of an account, found by scanning the timeline of all accounts: the one writer numbers rows in commit
 * order, so nothing is ever inserted before a position. An index by account would avoid the scan, which costs 0.09 us
 * per row, but make all writes 7 % slower with one account and 30 % with a hundred.
 */
export async function readChanges(reader: Reader, accountId: string, after: number): Promise<ChangePage> {
  const newest = await readPosition(reader.sql);
  if (newest <= after) return { changes: [], position: after, isLast: true };
  const until = await windowEnd(reader.sql, after, newest);
  const found = await changesIn.readRaw(reader.sql, { after, until, accountId });
  const fitting = pageOf(found);
  const isCut = fitting.length < found.length || found.length === EVENT_PAGE_MAX;
  const position = isCut ? Number(fitting.at(-1)?.["seq"]) : until;
  return { changes: await changesOf(reader, accountId, fitting), position, isLast: position === newest };
}

const newestPosition = prepare(() =>
  query
    .select({ seq: max(seq).as("seq") })
    .from(timeline)
    .where(isSettled(seq)),
);

export async function readPosition(connection: Sql): Promise<number> {
  const [row] = await newestPosition.read(connection, {});
  return row?.seq ?? 0;
}

const positionRow = prepare((arg: Args<"position">) =>
  query.select({ seq }).from(timeline).where(eq(seq, arg.position)),
);

/** 0 always exists; any other position exists while its row does. */
export async function hasPosition(connection: Sql, position: number): Promise<boolean> {
  return position === 0 || (await positionRow.read(connection, { position })).length > 0;
}

const lastScanned = prepare((arg: Args<"after">) =>
  query
    .select({ seq })
    .from(timeline)
    .where(gt(seq, arg.after))
    .orderBy(asc(seq))
    .limit(1)
    .offset(EVENT_SCAN_ROWS_MAX - 1),
);

/** The last row that one page scans. Numbers have gaps, so rows are counted. */
async function windowEnd(connection: Sql, after: number, newest: number): Promise<number> {
  if (newest - after <= EVENT_SCAN_ROWS_MAX) return newest;
  const [last] = await lastScanned.read(connection, { after });
  return last === undefined ? newest : Math.min(newest, last.seq);
}

/** Rows that fit into a page; at least one. */
function pageOf(found: readonly Row[]): readonly Row[] {
  let total = 0;
  const count = found.findIndex((row) => {
    total += Number(row["bytes"]);
    return total > EVENT_PAGE_BYTES_MAX;
  });
  return found.slice(0, count === -1 ? found.length : Math.max(1, count));
}

async function changesOf(reader: Reader, accountId: string, rows: readonly Row[]): Promise<readonly ActionChange[]> {
  const known = new Map<string, Action | null>();
  const runs = new Map<string, readonly TimelineEntry[]>();
  const changes: ActionChange[] = [];
  for (const row of rows) {
    const id = String(row["action_id"]);
    const action = known.get(id) ?? (await findAction(reader, accountId, id));
    known.set(id, action);
    // Null: it was pruned between the two reads.
    if (action !== null) changes.push(await changeOf(reader.sql, action, { row, runs }));
  }
  return changes;
}

interface ChangeRow {
  readonly row: Row;
  /** Complete timelines so far of runs on this page, by action and run. */
  readonly runs: Map<string, readonly TimelineEntry[]>;
}

async function changeOf(connection: Sql, action: Action, { row, runs }: ChangeRow): Promise<ActionChange> {
  const entry = timelineEntryOf(row);
  // An altered row says nothing about the state at that time.
  if (entry === null) return { seq: Number(row["seq"]), at: action.createdAt, action };
  const isLateResult = entry.event.type === "attempt" && entry.event.late === "result";
  const change = { seq: entry.seq, at: entry.at, ...(isLateResult && { isLateResult }) };
  if (Number(row["revision"]) === action.revision) return { ...change, action };
  const key = `${action.id} ${entry.run}`;
  const isFirst = entry.event.type === "created" || entry.event.type === "retried";
  const before = isFirst ? [] : (runs.get(key) ?? (await runBefore(connection, action.id, entry)));
  const entries = [...before, entry];
  runs.set(key, entries);
  return { ...change, action: actionAsOf(action, entries) };
}

const entriesBefore = prepare((arg: Args<"actionId" | "run" | "seq">) =>
  query
    .select({ seq, at, run, type, status, detail })
    .from(timeline)
    .where(and(eq(actionId, arg.actionId), eq(run, arg.run), lt(seq, arg.seq)))
    .orderBy(asc(seq))
    .limit(TIMELINE_ROWS_MAX),
);

/** The run's timeline before the change. */
async function runBefore(connection: Sql, id: string, entry: TimelineEntry): Promise<readonly TimelineEntry[]> {
  const rows = await entriesBefore.readRaw(connection, { actionId: id, run: entry.run, seq: entry.seq });
  return rows.map(timelineEntryOf).filter((earlier) => earlier !== null);
}
