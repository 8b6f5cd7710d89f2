import { and, desc, eq, gte, lt, type SQL, sql } from "drizzle-orm";
import { unionAll } from "drizzle-orm/sqlite-core";
import type { Action } from "../../src/actions/action.ts";
import { LIST_BYTES_MAX, LIST_SCAN_ROWS_MAX } from "../../src/config/limits.ts";
import { firstActionId } from "../../src/runtime/ids.ts";
import type { ActionRows, ActionQuery, Counted } from "../store.ts";
import type { StoreContext } from "./context.ts";
import { isAbsent, isNoList, isOneOf } from "./dialect.ts";
import { BYTES, findRows, idsWithin } from "./find.ts";
import { allOf, type Args, prepare, prepareEach, query } from "./query.ts";
import { shownActionOf } from "./rows.ts";
import { actions } from "../libsql/schema.ts";
import type { Sql } from "./sql.ts";

type Reader = Pick<StoreContext, "sql" | "seal">;

/**
 * One page, newest first. The cursor is the last id (keyset), so that inserts neither shift nor repeat anything. One
 * filter uses an index; the others scan at most `LIST_SCAN_ROWS_MAX` rows per page. A page that reaches this bound, or
 * its limit of bytes, says where the next one begins: a hundred actions may be 100 MB, which blocked the event loop for
 * a second.
 */
export async function listActions(db: Reader, search: ActionQuery): Promise<ActionRows> {
  const values = { ...valuesOfSearch(search), limit: search.limit + 1 };
  const found = await scanBy(indexFor(search)).page.read(db.sql, values);
  const ids = idsWithin(search.bytesMax ?? LIST_BYTES_MAX, found.slice(0, search.limit));
  const actionsFound = await actionsOf(db, ids);
  const isCut = found.length > ids.length;
  return { actions: actionsFound, before: isCut ? (ids.at(-1) ?? null) : await lastScanned(db.sql, search) };
}

/** How many actions `listActions` would find: at most `query.limit`, among the rows that one page scans. */
export async function countMatching(db: Pick<StoreContext, "sql">, search: ActionQuery): Promise<Counted> {
  const values = { ...valuesOfSearch(search), limit: search.limit + 1 };
  const [{ count } = { count: 0 }] = await scanBy(indexFor(search)).count.read(db.sql, values);
  if (count > search.limit) return { count: search.limit, isMore: true };
  return { count, isMore: (await lastScanned(db.sql, search)) !== null };
}

/** The last id of a scan that reached its bound; null: it read everything. */
async function lastScanned(reader: Sql, search: ActionQuery): Promise<string | null> {
  const [last] = await scanBy(indexFor(search)).last.read(reader, valuesOfSearch(search));
  return last?.id ?? null;
}

/** These actions in this order, as they are shown. */
export async function actionsOf({ sql: reader, seal }: Reader, ids: readonly string[]): Promise<readonly Action[]> {
  return (await findRows(reader, ids)).map((row) => shownActionOf(row, seal));
}

/** The index that a scan reads: of several conditions the most selective one, or the statuses, one after another. */
type ScanIndex = "dedupe" | "host" | "key" | "account" | `status ${string}`;

function indexFor({ dedupe, host, createdBy, statuses }: ActionQuery): ScanIndex {
  if (dedupe !== null) return "dedupe";
  if (host !== null) return "host";
  if (statuses.length > 0 && !statuses.includes("completed")) return `status ${[...new Set(statuses)].join(" ")}`;
  return createdBy === null ? "account" : "key";
}

type ScanName = "accountId" | "from" | "before" | "dedupe" | "hostname" | "createdBy";

/** The statements of a list, prepared once for each index. */
const scanBy = prepareEach((index: ScanIndex) => {
  /** Each branch is ordered by its index, so that SQLite merges them without sorting. */
  const scan = (arg: Args<ScanName>) => {
    const [first, second, ...more] = branchesOf(index, arg).map((condition) =>
      query
        .select({ id: actions.id })
        .from(actions)
        .where(
          and(eq(actions.accountId, arg.accountId), gte(actions.id, arg.from), lt(actions.id, arg.before), condition),
        ),
    );
    if (first === undefined) throw new Error("A list has at least one condition.");
    return second === undefined
      ? first.orderBy(desc(actions.id))
      : unionAll(first, second, ...more).orderBy(desc(actions.id));
  };
  const page = (arg: Args<ScanName | FilterName | "limit">) => {
    const scanned = scan(arg).limit(LIST_SCAN_ROWS_MAX).as("s");
    const found = query.select({ id: actions.id, bytes: BYTES }).from(scanned).crossJoin(actions);
    return found.where(and(eq(actions.id, scanned.id), filters(arg))).limit(arg.limit);
  };
  return {
    page: prepare(page),
    count: prepare((arg: Args<ScanName | FilterName | "limit">) =>
      query.select({ count: sql<number>`count(*)`.as("count") }).from(page(arg).as("found")),
    ),
    last: prepare((arg: Args<ScanName>) =>
      scan(arg)
        .limit(1)
        .offset(LIST_SCAN_ROWS_MAX - 1),
    ),
  };
});

/** One condition, or several that exclude each other. The terms that seem needless make SQLite use a partial index. */
function branchesOf(index: ScanIndex, arg: Args<ScanName>): readonly (SQL | undefined)[] {
  const { dedupe, hostname, keyId, status } = actions;
  if (index === "dedupe") return [eq(dedupe, arg.dedupe)];
  if (index === "host") return [eq(hostname, arg.hostname)];
  if (index === "key") return [sql`${keyId} = ${arg.createdBy} and ${keyId} <> ''`];
  if (index === "account") return [undefined];
  return index
    .split(" ")
    .slice(1)
    .map((one) =>
      one === "active"
        ? eq(status, one)
        : sql`${status} = ${one} and ${status} <> 'completed' and ${status} <> 'active'`,
    );
}

type FilterName = "statuses" | "method" | "createdBy" | "hostname" | "host" | "scheme";

/** Each filter holds for everything when its argument is null. */
function filters(arg: Args<FilterName>): SQL {
  const { status, method, keyId, hostname, host, url } = actions;
  // A name without a port means any port of it. A call to the port of its own scheme is stored without it.
  const isHost = sql`${arg.host} in (${hostname}, ${host}) or (${host} = ${hostname} and ${url} like ${arg.scheme} || ':%')`;
  return allOf(
    sql`(${isNoList(arg.statuses)} or ${isOneOf(status, arg.statuses)})`,
    sql`(${isAbsent(arg.method, method)} or ${method} = ${arg.method})`,
    sql`(${isAbsent(arg.createdBy, keyId)} or ${keyId} = ${arg.createdBy})`,
    sql`(${isAbsent(arg.host, host)} or (${hostname} = ${arg.hostname} and (${isHost})))`,
  );
}

function valuesOfSearch(search: ActionQuery) {
  const { accountId, statuses, method, dedupe, createdBy, createdAfter, createdBefore, before, host } = search;
  const ends = [before, createdBefore === null ? null : firstIdAt(createdBefore.getTime())];
  return {
    accountId,
    method,
    dedupe,
    createdBy,
    host,
    statuses: statuses.length === 0 ? null : JSON.stringify(statuses),
    hostname: host === null ? null : host.replace(/:\d+$/, ""),
    scheme: host === null ? null : (SCHEME_OF_PORT.get(/:(\d+)$/.exec(host)?.[1] ?? "") ?? null),
    // Ids begin with their time, so times need no index.
    from: createdAfter === null ? "" : firstIdAt(createdAfter.getTime() + 1),
    before: ends.filter((id) => id !== null).toSorted()[0] ?? AFTER_ALL_IDS,
  };
}

const AFTER_ALL_IDS = "\u{10ffff}";

/** An id has 48 bits of milliseconds (until the year 10889); a date may be later than that. */
const LAST_MS = 2 ** 48 - 1;

function firstIdAt(ms: number): string {
  return firstActionId(new Date(Math.min(ms, LAST_MS)));
}

const SCHEME_OF_PORT: ReadonlyMap<string, "http" | "https"> = new Map([
  ["80", "http"],
  ["443", "https"],
]);
