import { setImmediate as nextTurn } from "node:timers/promises";
import {
  and,
  between,
  count,
  desc,
  eq,
  exists,
  gte,
  isNull,
  lt,
  ne,
  or,
  type Placeholder,
  type SQL,
  sql,
} from "drizzle-orm";
import { unionAll } from "drizzle-orm/sqlite-core";
import { type Action, ACTION_STATUSES } from "../../src/core/action.ts";
import { codeRange, idPrefixIn, type MetadataFilter } from "../../src/core/search.ts";
import { LIST_BYTES_MAX, LIST_SCAN_ROWS_MAX, SEARCH_STEP_ROWS } from "../../src/core/limits.ts";
import { firstActionId } from "../../src/core/ids.ts";
import type { ActionQuery, ActionStore } from "../../src/core/store.ts";
import type { StoreContext } from "./context.ts";
import { AFTER_ALL_IDS, type Dialect } from "./dialect.ts";
import { findRows, idsWithin } from "./find.ts";
import { type Args, type ArgsOf, read } from "./read.ts";
import { type Found, foundOf, foundColumns, needsRefining, needsTexts, refine } from "./refine.ts";
import { shownActionOf } from "./rows.ts";

type Searched = Pick<StoreContext, "sql" | "seal">;

/** These actions in this order, as they are shown. */
export async function actionsOf({ sql: reader, seal }: Searched, ids: readonly string[]): Promise<readonly Action[]> {
  return (await findRows(reader, ids)).map((row) => shownActionOf(row, seal));
}

const CREATED_AT = read({ id: "text" }, ({ db, tables: { actions } }, arg) =>
  db.select({ createdAt: actions.createdAt }).from(actions).where(eq(actions.id, arg.id)),
);

interface SearchStep {
  readonly found: readonly Found[];
  /** The last row that was looked at, where more may follow; null: it was the last one, or enough was found. */
  readonly last: string | null;
}

/**
 * Looks through the rows of one index, newest first, until one more than `query.limit` matches or `rowsMax` rows were
 * looked at. SQLite reads on this thread: each step is short, and others get their turn between two.
 */
async function* stepsOf(db: Searched, search: ActionQuery, rowsMax: number): AsyncGenerator<SearchStep> {
  // A masked value can't be confirmed either.
  if (search.search.metadata.some((one) => isHidden(one, search))) return;
  const statements = scanBy(indexFor(search), needsTexts(search.search));
  const values = valuesOfSearch(search);
  let { before } = values;
  const isRefined = needsRefining(search.search);
  let left = search.limit + 1;
  for (let looked = 0; looked < rowsMax && left > 0;) {
    if (looked > 0) await nextTurn();
    const rows = Math.min(SEARCH_STEP_ROWS, rowsMax - looked);
    // What is decided in code needs every candidate.
    const stretch = await statements.page.raw(db.sql, { ...values, before, rows, limit: isRefined ? rows : left });
    const candidates = stretch.filter(({ matches }) => matches === 1).map(foundOf);
    const end = stretch.find(({ is_end: isEnd }) => isEnd === 1);
    const found = await refine(db.sql, search, candidates);
    left -= found.length;
    const last = left > 0 && end !== undefined ? foundOf(end).id : null;
    yield { found, last };
    if (last === null) return;
    looked += rows;
    before = last;
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
  const { method, createdBy } = search;
  const { responseCodes, error, metadata, q } = search.search;
  const isPlain = method === null && createdBy === null && responseCodes.length === 0 && error === null;
  return index.startsWith("status ") && isPlain && metadata.length === 0 && q === null && !needsRefining(search.search);
}

const SEARCH = {
  accountId: "text",
  ids: "list",
  from: "text",
  before: "text",
  dedupe: "text?",
  statuses: "list?",
  method: "text?",
  createdBy: "text?",
  hostname: "text?",
  host: "text?",
  scheme: "text?",
  codeFrom: "number?",
  codeTo: "number?",
  errorSource: "text?",
  // Metadata conditions, in `METADATA_FILTERS_MAX` places: scalars, since a name or value is foreign text.
  name0: "text?",
  value0: "text?",
  name1: "text?",
  value1: "text?",
  name2: "text?",
  value2: "text?",
  name3: "text?",
  value3: "text?",
} as const;

type SearchArgs = Args<keyof typeof SEARCH>;

/** The reads of a list by an index. */
const readsBy = (index: ScanIndex, hasTexts: boolean) => ({
  /**
   * The rows of a step that match as far as SQL can tell, and the last row of a full step in any case: where the next one
   * goes on. A statement of its own would find another last row when others have written in between, and the next step
   * would repeat or skip rows.
   */
  page: read({ ...SEARCH, rows: "number", limit: "number" }, (dialect, arg) => {
    const { db, tables } = dialect;
    const { actions } = tables;
    const scanned = db.$with("s", { id: actions.id }).as(scanOf(index, dialect, arg).limit(arg.rows).getSQL());
    const end = sql`(select case when count(*) = ${arg.rows} then min(${scanned.id}) end from ${scanned})`;
    const isEnd = sql`${scanned.id} = ${end}`;
    const asNumber = (condition: SQL | undefined) => sql`case when ${condition} then 1 else 0 end`;
    const ends = {
      isEnd: asNumber(isEnd).as("is_end"),
      // The others match, or are not read.
      matches: sql`case when ${isEnd} then ${asNumber(filters(dialect, arg))} else 1 end`.as("matches"),
    };
    return db
      .with(scanned)
      .select({ ...foundColumns(actions, hasTexts), ...ends })
      .from(scanned)
      .crossJoin(actions)
      .where(and(eq(actions.id, scanned.id), or(isEnd, filters(dialect, arg))))
      .orderBy(desc(scanned.id))
      .limit(arg.limit);
  }),
  /** How many rows there are, so many at most. */
  entries: read({ ...SEARCH, rows: "number" }, (dialect, arg) => {
    const scanned = scanOf(index, dialect, arg).limit(arg.rows).as("s");
    return dialect.db.select({ count: count().as("count") }).from(scanned);
  }),
});

/** There is one for each index and set of statuses that was asked for. */
const READS = new Map<string, ReturnType<typeof readsBy>>();

function scanBy(index: ScanIndex, hasTexts: boolean): ReturnType<typeof readsBy> {
  const name = `${index} ${hasTexts}`;
  const reads = READS.get(name) ?? readsBy(index, hasTexts);
  READS.set(name, reads);
  return reads;
}

/** The ids of an index. Each branch is ordered by it, so that SQLite merges them without sorting. */
function scanOf(index: ScanIndex, dialect: Dialect, arg: SearchArgs) {
  if (index === "metadata") return scanMetadata(dialect, arg);
  const { db, tables } = dialect;
  const { actions } = tables;
  const { accountId, id } = actions;
  const [first, ...others] = branchesOf(index, dialect, arg).map((condition) =>
    db
      .select({ id })
      .from(actions)
      .where(and(eq(accountId, arg.accountId), gte(id, arg.from), lt(id, arg.before), condition)),
  );
  if (first === undefined) throw new Error("A list has at least one condition.");
  const [second, ...more] = others;
  return (second === undefined ? first : unionAll(first, second, ...more)).orderBy(desc(id));
}

/** Ids begin with their time, so the rows of one value are in the order of creation. */
function scanMetadata({ db, tables: { actionMetadata } }: Dialect, arg: SearchArgs) {
  const { accountId, name, value, actionId } = actionMetadata;
  const isValue = and(eq(accountId, arg.accountId), eq(name, arg.name0), eq(value, arg.value0));
  return db
    .select({ id: sql`${actionId}`.as("id") })
    .from(actionMetadata)
    .where(and(isValue, gte(actionId, arg.from), lt(actionId, arg.before)))
    .orderBy(desc(actionId));
}

/** One condition, or several that exclude each other. The terms that seem needless make SQLite use a partial index. */
function branchesOf(index: ScanIndex, { tables: { actions }, isOneOf }: Dialect, arg: SearchArgs) {
  const { id, dedupe, hostname, keyId, status } = actions;
  if (index === "ids") return [isOneOf(id, arg.ids)];
  if (index === "dedupe") return [eq(dedupe, arg.dedupe)];
  if (index === "host") return [eq(hostname, arg.hostname)];
  if (index === "key") return [and(eq(keyId, arg.createdBy), ne(keyId, ""))];
  if (index === "account") return [undefined];
  const statuses = index.split(" ");
  return ACTION_STATUSES.filter((one) => statuses.includes(one)).map((one) =>
    one === "active" ? eq(status, one) : and(eq(status, one), ne(status, "completed"), ne(status, "active")),
  );
}

/** Each filter holds for everything when its argument is null. */
function filters(dialect: Dialect, arg: SearchArgs): SQL | undefined {
  const { status, method, keyId, hostname, host, url, responseCode, errorSource } = dialect.tables.actions;
  // A name without a port means any port of it. A call to the port of its own scheme is stored without it.
  const isHost = sql`(${arg.host} in (${hostname}, ${host}) or (${host} = ${hostname} and ${url} like ${arg.scheme} || ':%'))`;
  return and(
    or(isNull(arg.statuses), dialect.isOneOf(status, arg.statuses)),
    or(isNull(arg.method), eq(method, arg.method)),
    or(isNull(arg.createdBy), eq(keyId, arg.createdBy)),
    or(isNull(arg.host), and(eq(hostname, arg.hostname), isHost)),
    or(isNull(arg.codeFrom), between(responseCode, arg.codeFrom, arg.codeTo)),
    or(isNull(arg.errorSource), eq(errorSource, arg.errorSource)),
    ...PLACES.map((at) => hasMetadata(dialect, arg[`name${at}`], arg[`value${at}`])),
  );
}

function hasMetadata({ db, tables: { actions, actionMetadata } }: Dialect, name: Placeholder, value: Placeholder) {
  const isValue = or(isNull(value), eq(actionMetadata.value, value));
  const found = db
    .select({ id: actionMetadata.actionId })
    .from(actionMetadata)
    .where(and(eq(actionMetadata.actionId, actions.id), eq(actionMetadata.name, name), isValue));
  return or(isNull(name), exists(found));
}

const PLACES = [0, 1, 2, 3] as const;

type MetadataName = `${"name" | "value"}${(typeof PLACES)[number]}`;

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

function valuesOfSearch(search: ActionQuery): ArgsOf<typeof SEARCH> {
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
    statuses: statuses.length === 0 ? null : statuses,
    ids,
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

/** An id has 48 bits of milliseconds (until the year 10889); a date may be later than that. */
const LAST_MS = 2 ** 48 - 1;

function firstIdAt(ms: number): string {
  return firstActionId(new Date(Math.min(ms, LAST_MS)));
}

const SCHEME_OF_PORT: ReadonlyMap<string, "http" | "https"> = new Map([
  ["80", "http"],
  ["443", "https"],
]);

/** Lists and counts by a search. See `ActionStore`. */
export function createLists(db: Searched): Pick<ActionStore, "list" | "count" | "matching"> {
  /** Where a search stopped; null: it did not stop early. */
  const createdAtOf = async (id: string | null) => {
    const row = id === null ? null : await CREATED_AT.get(db.sql, { id });
    return row?.createdAt ?? null;
  };
  /** All that matches, and the last row that was looked at where more may follow. */
  const search = async (query: ActionQuery, rowsMax: number) => {
    const found: Found[] = [];
    let last: string | null = null;
    for await (const step of stepsOf(db, query, rowsMax)) {
      found.push(...step.found);
      ({ last } = step);
    }
    return { found, last };
  };
  return {
    /**
     * One page, newest first. The cursor is the last id (keyset), so that no page repeats an action or skips one that matches
     * all the time. Nodes don't commit in the order of their ids: what is inserted meanwhile may come up on a later page. One
     * filter uses an index; for the others it looks at `LIST_SCAN_ROWS_MAX` rows at most, in steps. A page that reaches this
     * bound, or its limit of bytes, says where the next one begins: a hundred actions may be 100 MB, which blocked the event
     * loop for a second.
     */
    async list(query) {
      const { found, last } = await search(query, LIST_SCAN_ROWS_MAX);
      const ids = idsWithin(query.bytesMax ?? LIST_BYTES_MAX, found.slice(0, query.limit));
      const actions = await actionsOf(db, ids);
      if (found.length > ids.length) return { actions, before: ids.at(-1) ?? null, searchedUntil: null };
      return { actions, before: last, searchedUntil: await createdAtOf(last) };
    },

    async count(query, rowsMax) {
      const { limit } = query;
      const index = indexFor(query);
      if (limit < rowsMax && isOnlyBy(index, query)) {
        // The entries of the index are the answer: no row has to be looked at.
        const { entries } = scanBy(index, false);
        const found = (await entries.get(db.sql, { ...valuesOfSearch(query), rows: limit + 1 }))?.count ?? 0;
        return { count: Math.min(found, limit), isMore: found > limit, searchedUntil: null };
      }
      const { found, last } = await search(query, rowsMax);
      if (found.length > limit) return { count: limit, isMore: true, searchedUntil: null };
      return { count: found.length, isMore: last !== null, searchedUntil: await createdAtOf(last) };
    },

    async matching(query, rowsMax) {
      const { found, last } = await search(query, rowsMax);
      const matched = found.slice(0, query.limit);
      return {
        actions: matched.map(({ id, run, host, responseCode }) => ({ id, run, host, responseCode })),
        isMore: last !== null || found.length > query.limit,
      };
    },
  };
}
