import type { Action } from "../../src/actions/action.ts";
import { firstActionId } from "../../src/runtime/ids.ts";
import { LIST_BYTES_MAX, LIST_SCAN_ROWS_MAX } from "../../src/config/limits.ts";
import type { ActionPage, ActionQuery, Counted } from "../store.ts";
import type { StoreContext } from "./context.ts";
import { ACTION_COLUMNS, BYTES, idsWithin } from "./find.ts";
import { allOf, ALWAYS, type Guard, type Row, type Sql, type SqlValue } from "./sql.ts";
import { shownActionOf } from "./rows.ts";

/**
 * One page, newest first. The cursor is the last id (keyset), so that inserts neither shift nor repeat anything. One
 * filter uses an index; the others scan at most `LIST_SCAN_ROWS_MAX` rows per page. A page that reaches this bound, or
 * its limit of bytes, says where the next one begins: a hundred actions may be 100 MB, which blocked the event loop for
 * a second.
 */
export async function listActions(
  { sql, seal }: Pick<StoreContext, "sql" | "seal">,
  query: ActionQuery,
): Promise<ActionPage> {
  const scan = scanOf(query);
  const found = await sql.read({
    sql: `SELECT a.id, ${BYTES} AS bytes FROM (${scan.sql}) s CROSS JOIN actions a ON a.id = s.id
      WHERE ${filters(query).sql} LIMIT ?`,
    args: [...scan.args, ...filters(query).args, query.limit + 1],
  });
  const ids = fittingIds(found, query.limit, query.bytesMax);
  const actions = await actionsOf({ sql, seal }, ids);
  return { actions, before: found.length > ids.length ? (ids.at(-1) ?? null) : await lastLookedAt(sql, scan) };
}

/** How many actions `listActions` would find: at most `query.limit`, among the rows that one page scans. */
export async function countMatching({ sql }: Pick<StoreContext, "sql">, query: ActionQuery): Promise<Counted> {
  const scan = scanOf(query);
  const [found] = await sql.read({
    sql: `SELECT count(*) AS count FROM (SELECT 1 FROM (${scan.sql}) s CROSS JOIN actions a ON a.id = s.id
      WHERE ${filters(query).sql} LIMIT ?)`,
    args: [...scan.args, ...filters(query).args, query.limit + 1],
  });
  const count = Number(found?.["count"] ?? 0);
  if (count > query.limit) return { count: query.limit, isMore: true };
  return { count, isMore: (await lastLookedAt(sql, scan)) !== null };
}

/** The last id of a scan that reached its bound; null: it read everything. */
async function lastLookedAt(sql: Sql, scan: Guard): Promise<string | null> {
  const [last] = await sql.read({
    sql: `${scan.sql} OFFSET ?`,
    args: [...scan.args.slice(0, -1), 1, LIST_SCAN_ROWS_MAX - 1],
  });
  return last === undefined ? null : String(last["id"]);
}

/** These actions, newest first. */
export async function actionsOf(
  { sql, seal }: Pick<StoreContext, "sql" | "seal">,
  ids: readonly string[],
): Promise<readonly Action[]> {
  if (ids.length === 0) return [];
  const places = ids.map(() => "?").join(", ");
  const rows = await sql.read({ sql: `SELECT ${ACTION_COLUMNS} FROM actions a WHERE a.id IN (${places})`, args: ids });
  return rows.map((row) => shownActionOf(row, seal)).toSorted((a, b) => (a.id < b.id ? 1 : -1));
}

/** Ids that fit into a page; at least one. */
export function fittingIds(found: readonly Row[], limit: number, bytesMax = LIST_BYTES_MAX): readonly string[] {
  return idsWithin(bytesMax, found.slice(0, limit));
}

/** The ids to scan, newest first, by the most selective index; its last argument is the number of rows. */
function scanOf(query: ActionQuery): Guard {
  const branches = narrowest(query).map((branch) => allOf([within(query), branch]));
  // Each branch is ordered by its index, so that SQLite merges them without sorting.
  const sql = branches.map((branch) => `SELECT id FROM actions WHERE ${branch.sql}`).join(" UNION ALL ");
  return {
    sql: `${sql} ORDER BY id DESC LIMIT ?`,
    args: [...branches.flatMap(({ args }) => args), LIST_SCAN_ROWS_MAX],
  };
}

/** Account, cursor and times: ids begin with their time, so times need no index. */
function within({ accountId, before, createdAfter, createdBefore }: ActionQuery): Guard {
  const bounds = [before, createdBefore === null ? null : firstIdAt(createdBefore.getTime())].filter(
    (id) => id !== null,
  );
  const upper = bounds.toSorted()[0];
  const lower = createdAfter === null ? undefined : firstIdAt(createdAfter.getTime() + 1);
  return {
    sql: `account_id = ?${upper === undefined ? "" : " AND id < ?"}${lower === undefined ? "" : " AND id >= ?"}`,
    args: [accountId, ...(upper === undefined ? [] : [upper]), ...(lower === undefined ? [] : [lower])],
  };
}

/** An id has 48 bits of milliseconds (until the year 10889); a date may be later than that. */
const LAST_MS = 2 ** 48 - 1;

function firstIdAt(ms: number): string {
  return firstActionId(new Date(Math.min(ms, LAST_MS)));
}

/** One condition, or several that exclude each other. */
function narrowest({ dedupe, host, createdBy, statuses }: ActionQuery): readonly Guard[] {
  if (dedupe !== null) return [{ sql: "dedupe = ?", args: [dedupe] }];
  if (host !== null) return [{ sql: "hostname = ?", args: [hostnameOf(host)] }];
  if (statuses.length === 0 || statuses.includes("completed")) {
    // The second term makes SQLite use the partial index.
    return [createdBy === null ? ALWAYS : { sql: "key_id = ? AND key_id <> ''", args: [createdBy] }];
  }
  return [...new Set(statuses)].map((status) =>
    // The extra terms make SQLite use the partial index.
    status === "active"
      ? { sql: "status = 'active'", args: [] }
      : { sql: "status = ? AND status <> 'completed' AND status <> 'active'", args: [status] },
  );
}

function filters({ statuses, method, host, createdBy }: ActionQuery): Guard {
  const terms: string[] = ["1"];
  const args: SqlValue[] = [];
  if (statuses.length > 0) {
    terms.push(`a.status IN (${statuses.map(() => "?").join(", ")})`);
    args.push(...statuses);
  }
  if (method !== null) {
    terms.push("a.method = ?");
    args.push(method);
  }
  if (createdBy !== null) {
    terms.push("a.key_id = ?");
    args.push(createdBy);
  }
  if (host !== null) {
    // A name without a port means any port of it.
    const scheme = SCHEME_OF_PORT.get(portOf(host));
    const isMeant = scheme === undefined ? "" : ` OR (a.host = a.hostname AND a.url LIKE '${scheme}:%')`;
    terms.push(`a.hostname = ? AND (? IN (a.hostname, a.host)${isMeant})`);
    args.push(hostnameOf(host), host);
  }
  return { sql: terms.join(" AND "), args };
}

function hostnameOf(host: string): string {
  return host.replace(/:\d+$/, "");
}

function portOf(host: string): string {
  return /:(\d+)$/.exec(host)?.[1] ?? "";
}

/** A call to the port of its own scheme is stored without it. */
const SCHEME_OF_PORT: ReadonlyMap<string, "http" | "https"> = new Map([
  ["80", "http"],
  ["443", "https"],
]);
