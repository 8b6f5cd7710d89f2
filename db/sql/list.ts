import { setImmediate as nextTurn } from "node:timers/promises";
import { and, desc, eq, exists, gte, lt, type Placeholder, type SQL, sql } from "drizzle-orm";
import { unionAll } from "drizzle-orm/sqlite-core";
import type { Action } from "../../src/core/action.ts";
import { codeRange, idPrefixIn, type MetadataFilter } from "../../src/core/search.ts";
import { LIST_BYTES_MAX, LIST_SCAN_ROWS_MAX, SEARCH_STEP_ROWS } from "../../src/core/limits.ts";
import { firstActionId } from "../../src/core/ids.ts";
import type { ActionRows, ActionQuery, CountedRows, MatchedActions } from "../../src/core/store.ts";
import type { StoreContext } from "./context.ts";
import { isAbsent, isNoList, isOneOf } from "./dialect.ts";
import { findRows, idsWithin } from "./find.ts";
import { allOf, type Args, prepare, prepareEach, query, onlyPostgres } from "./query.ts";
import { type Found, foundOf, FOUND, FOUND_WITH_TEXTS, needsRefining, needsTexts, refine } from "./refine.ts";
import { Columns, shownActionOf } from "./rows.ts";
import { actionMetadata, actions } from "../libsql/schema.ts";
import type { Sql } from "./sql.ts";

type Reader = Pick<StoreContext, "sql" | "seal">;

/**
 * One page, newest first. The cursor is the last id (keyset), so that no page repeats an action or skips one that matches
 * all the time. Nodes don't commit in the order of their ids: what is inserted meanwhile may come up on a later page. One
 * filter uses an index; for the others it looks at `LIST_SCAN_ROWS_MAX` rows at most, in steps. A page that reaches this
 * bound, or its limit of bytes, says where the next one begins: a hundred actions may be 100 MB, which blocked the event
 * loop for a second.
 */
export async function listActions(db: Reader, search: ActionQuery): Promise<ActionRows> {
  const found: Found[] = [];
  let last: string | null = null;
  for await (const step of stepsOf(db, search, LIST_SCAN_ROWS_MAX)) {
    found.push(...step.found);
    ({ last } = step);
  }
  const ids = idsWithin(search.bytesMax ?? LIST_BYTES_MAX, found.slice(0, search.limit));
  const actionsFound = await actionsOf(db, ids);
  if (found.length > ids.length) return { actions: actionsFound, before: ids.at(-1) ?? null, searchedUntil: null };
  return { actions: actionsFound, before: last, searchedUntil: await createdAtOf(db.sql, last) };
}

/** How many actions `listActions` would find: at most `query.limit`, among so many rows. */
export async function countMatching(db: Reader, search: ActionQuery, rowsMax: number): Promise<CountedRows> {
  const index = indexFor(search);
  if (search.limit < rowsMax && isOnlyBy(index, search)) return countEntries(db, search, index);
  let count = 0;
  let last: string | null = null;
  for await (const step of stepsOf(db, search, rowsMax)) {
    count += step.found.length;
    ({ last } = step);
  }
  if (count > search.limit) return { count: search.limit, isMore: true, searchedUntil: null };
  return { count, isMore: last !== null, searchedUntil: await createdAtOf(db.sql, last) };
}

/** The entries of the index are the answer: no row has to be looked at. */
async function countEntries(
  { sql: reader }: Reader,
  search: ActionQuery,
  index: `status ${string}`,
): Promise<CountedRows> {
  const { entries } = scanBy(`plain: ${index}`);
  const [row] = await entries.read(reader, { ...valuesOfSearch(search), rows: search.limit + 1 });
  const found = row?.count ?? 0;
  return { count: Math.min(found, search.limit), isMore: found > search.limit, searchedUntil: null };
}

/** What the actions are that match, at most `query.limit`, without their bodies, newest first. */
export async function findMatching(db: Reader, search: ActionQuery, rowsMax: number): Promise<MatchedActions> {
  const found: Found[] = [];
  let last: string | null = null;
  for await (const step of stepsOf(db, search, rowsMax)) {
    found.push(...step.found);
    ({ last } = step);
  }
  const matched = found
    .slice(0, search.limit)
    .map(({ id, run, host, responseCode }) => ({ id, run, host, responseCode }));
  return { actions: matched, isMore: last !== null || found.length > search.limit };
}

/** These actions in this order, as they are shown. */
export async function actionsOf({ sql: reader, seal }: Reader, ids: readonly string[]): Promise<readonly Action[]> {
  return (await findRows(reader, ids)).map((row) => shownActionOf(row, seal));
}

const CREATED_AT = prepare((arg: Args<"id">) =>
  query.select({ createdAt: actions.createdAt }).from(actions).where(eq(actions.id, arg.id)),
);

/** Where a search stopped; null: it did not stop early. */
async function createdAtOf(reader: Sql, id: string | null): Promise<Date | null> {
  if (id === null) return null;
  const [row] = await CREATED_AT.readRaw(reader, { id });
  return row === undefined ? null : new Columns(row).timeOrNull(actions.createdAt);
}

interface SearchStep {
  readonly found: readonly Found[];
  /** The last row that was looked at, where more may follow; null: it was the last one, or enough was found. */
  readonly last: string | null;
}

/**
 * Looks through the rows of one index, newest first, until one more than `query.limit` matches or `rowsMax` rows were
 * looked at. SQLite reads on this thread: each step is short, and others get their turn between two.
 */
async function* stepsOf(db: Reader, search: ActionQuery, rowsMax: number): AsyncGenerator<SearchStep> {
  // A masked value can't be confirmed either.
  if (search.search.metadata.some((one) => isHidden(one, search))) return;
  const statements = scanBy(`${needsTexts(search.search) ? "texts" : "plain"}: ${indexFor(search)}`);
  const values = valuesOfSearch(search);
  const isRefined = needsRefining(search.search);
  let left = search.limit + 1;
  for (let looked = 0; looked < rowsMax && left > 0;) {
    if (looked > 0) await nextTurn();
    const rows = Math.min(SEARCH_STEP_ROWS, rowsMax - looked);
    // What is decided in code needs every candidate.
    const read = await statements.page.readRaw(db.sql, { ...values, rows, limit: isRefined ? rows : left });
    const candidates = read.filter(({ matches }) => matches === 1).map(foundOf);
    const end = read.find(({ is_end: isEnd }) => isEnd === 1);
    const found = await refine(db.sql, search, candidates);
    left -= found.length;
    const last = left > 0 && end !== undefined ? foundOf(end).id : null;
    yield { found, last };
    if (last === null) return;
    looked += rows;
    values.before = last;
  }
}

function isHidden({ name, value }: MetadataFilter, { seenAs = null }: ActionQuery): boolean {
  return seenAs !== null && value !== null && !seenAs.showsMetadata(name, value);
}

/** The index that a scan reads: of several conditions the most selective one, or the statuses, one after another. */
type ScanIndex = "ids" | "dedupe" | "metadata" | "host" | "key" | "account" | `status ${string}`;

function indexFor({ dedupe, host, createdBy, statuses, search }: ActionQuery): ScanIndex {
  if (search.ids.length > 0) return "ids";
  if (dedupe !== null) return "dedupe";
  if (search.metadata.some(({ value }) => value !== null)) return "metadata";
  if (host !== null) return "host";
  if (statuses.length > 0 && !statuses.includes("completed")) return `status ${[...new Set(statuses)].join(" ")}`;
  return createdBy === null ? "account" : "key";
}

/** Whether the index alone says what matches: by status and times, without any other condition. */
function isOnlyBy(index: ScanIndex, search: ActionQuery): index is `status ${string}` {
  const {
    method,
    createdBy,
    search: { responseCodes, error, metadata, q },
  } = search;
  const isPlain = method === null && createdBy === null && responseCodes.length === 0 && error === null;
  return index.startsWith("status ") && isPlain && metadata.length === 0 && q === null && !needsRefining(search.search);
}

type ScanName = "accountId" | "ids" | "from" | "before" | "dedupe" | "hostname" | "createdBy" | "name0" | "value0";

/** The statements of a list, prepared once for each index. */
const scanBy = prepareEach((variant: `${"texts" | "plain"}: ${ScanIndex}`) => {
  // Safe: it is what stands behind the colon.
  const index = variant.slice(variant.indexOf(" ") + 1) as ScanIndex;
  const columns = variant.startsWith("texts") ? FOUND_WITH_TEXTS : FOUND;

  /** Each branch is ordered by its index, so that SQLite merges them without sorting. */
  const scanOf = (arg: Args<ScanName>) => {
    if (index === "metadata") return scanMetadata(arg);
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
  return {
    /**
     * The rows of a step that match as far as SQL can tell, and the last row of a full step in any case: where the next one
     * goes on. A statement of its own would find another last row when others have written in between, and the next step
     * would repeat or skip rows.
     */
    page: prepare((arg: Args<ScanName | FilterName | "rows" | "limit">) => {
      const scanned = query.$with("s", { id: actions.id }).as(scanOf(arg).limit(arg.rows).getSQL());
      const end = sql`(select case when count(*) = ${arg.rows} then min(${scanned.id}) end from ${scanned})`;
      const isEnd = sql`${scanned.id} = ${end}`;
      const asNumber = (condition: SQL) => sql`case when ${condition} then 1 else 0 end`;
      const ends = {
        isEnd: asNumber(isEnd).as("is_end"),
        // The others match, or are not read.
        matches: sql`case when ${isEnd} then ${asNumber(filters(arg))} else 1 end`.as("matches"),
      };
      const found = query
        .with(scanned)
        .select({ ...columns, ...ends })
        .from(scanned)
        .crossJoin(actions);
      // PostgreSQL may join in another order; SQLite keeps the order of the scan.
      const matching = found.where(and(eq(actions.id, scanned.id), sql`(${isEnd} or ${filters(arg)})`));
      const order = onlyPostgres(desc(scanned.id));
      return (order === undefined ? matching : matching.orderBy(order)).limit(arg.limit);
    }),
    /** How many rows there are, so many at most. */
    entries: prepare((arg: Args<ScanName | "rows">) => {
      const scanned = scanOf(arg).limit(arg.rows).as("s");
      return query.select({ count: sql<number>`count(*)`.as("count") }).from(scanned);
    }),
  };
});

/** Ids begin with their time, so the rows of one value are in the order of creation. */
function scanMetadata(arg: Args<ScanName>) {
  const { accountId, name, value, actionId } = actionMetadata;
  return query
    .select({ id: sql`${actionId}`.as(actions.id.name) })
    .from(actionMetadata)
    .where(
      and(
        eq(accountId, arg.accountId),
        eq(name, arg.name0),
        eq(value, arg.value0),
        gte(actionId, arg.from),
        lt(actionId, arg.before),
      ),
    )
    .orderBy(desc(actionId));
}

/** One condition, or several that exclude each other. The terms that seem needless make SQLite use a partial index. */
function branchesOf(index: Exclude<ScanIndex, "metadata">, arg: Args<ScanName>): readonly (SQL | undefined)[] {
  const { id, dedupe, hostname, keyId, status } = actions;
  if (index === "ids") return [isOneOf(id, arg.ids)];
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

type FilterName =
  | "statuses"
  | "method"
  | "createdBy"
  | "hostname"
  | "host"
  | "scheme"
  | "codeFrom"
  | "codeTo"
  | "errorSource"
  | MetadataName;

/** Metadata conditions, in `METADATA_FILTERS_MAX` places: scalars, since a name or value is foreign text. */
type MetadataName = `name${Place}` | `value${Place}`;

type Place = (typeof PLACES)[number];

const PLACES = [0, 1, 2, 3] as const;

/** Each filter holds for everything when its argument is null. */
function filters(arg: Args<FilterName>): SQL {
  const { status, method, keyId, hostname, host, url, responseCode, errorSource } = actions;
  // A name without a port means any port of it. A call to the port of its own scheme is stored without it.
  const isHost = sql`${arg.host} in (${hostname}, ${host}) or (${host} = ${hostname} and ${url} like ${arg.scheme} || ':%')`;
  return allOf(
    sql`(${isNoList(arg.statuses)} or ${isOneOf(status, arg.statuses)})`,
    sql`(${isAbsent(arg.method, method)} or ${method} = ${arg.method})`,
    sql`(${isAbsent(arg.createdBy, keyId)} or ${keyId} = ${arg.createdBy})`,
    sql`(${isAbsent(arg.host, host)} or (${hostname} = ${arg.hostname} and (${isHost})))`,
    sql`(${isAbsent(arg.codeFrom, responseCode)} or ${responseCode} between ${arg.codeFrom} and ${arg.codeTo})`,
    sql`(${isAbsent(arg.errorSource, errorSource)} or ${errorSource} = ${arg.errorSource})`,
    ...PLACES.map((at) => hasMetadata(arg[`name${at}`], arg[`value${at}`])),
  );
}

function hasMetadata(name: Placeholder, value: Placeholder): SQL {
  const isValue = sql`(${isAbsent(value, actionMetadata.value)} or ${actionMetadata.value} = ${value})`;
  const found = query
    .select({ id: actionMetadata.actionId })
    .from(actionMetadata)
    .where(and(sql`${actionMetadata.actionId} = ${actions.id}`, eq(actionMetadata.name, name), isValue));
  return sql`(${isAbsent(name, actionMetadata.name)} or ${exists(found)})`;
}

/** Exact values first: the first one is looked up by its index. */
function metadataValues(metadata: readonly MetadataFilter[]): Readonly<Record<MetadataName, string | null>> {
  const sorted = metadata.toSorted((one, other) => Number(one.value === null) - Number(other.value === null));
  const pairs = PLACES.flatMap((at) => [
    [`name${at}`, sorted[at]?.name ?? null],
    [`value${at}`, sorted[at]?.value ?? null],
  ]);
  // Safe: every place has both.
  return Object.fromEntries(pairs) as Record<MetadataName, string | null>;
}

function valuesOfSearch(search: ActionQuery) {
  const { accountId, statuses, method, dedupe, createdBy, createdAfter, createdBefore, before, host } = search;
  const { ids, q, responseCodes, outcome, error } = search.search;
  const prefix = idPrefixIn(q);
  const ends = [
    before,
    createdBefore === null ? null : firstIdAt(createdBefore.getTime()),
    prefix === null ? null : prefix + AFTER_ALL_IDS,
  ];
  const range = codeRange(responseCodes);
  const isDispatch = outcome === "not_sent" || outcome === "unknown" || (error !== null && error !== "target");
  return {
    accountId,
    method,
    dedupe,
    createdBy,
    host,
    statuses: statuses.length === 0 ? null : JSON.stringify(statuses),
    ids: JSON.stringify(ids),
    hostname: host === null ? null : host.replace(/:\d+$/, ""),
    scheme: host === null ? null : (SCHEME_OF_PORT.get(/:(\d+)$/.exec(host)?.[1] ?? "") ?? null),
    // Ids begin with their time, so times need no index.
    from: [createdAfter === null ? "" : firstIdAt(createdAfter.getTime() + 1), prefix ?? ""].toSorted()[1] ?? "",
    before: ends.filter((id) => id !== null).toSorted()[0] ?? AFTER_ALL_IDS,
    codeFrom: range?.from ?? null,
    codeTo: range?.to ?? null,
    errorSource: isDispatch ? "dispatch" : error,
    ...metadataValues(search.search.metadata),
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
