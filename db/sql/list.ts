/** Searches of an account's actions, newest first: SQL decides what it can, in short steps over one index, and the rest is decided here. */
import {
  and,
  between,
  type Column,
  count,
  desc,
  eq,
  exists,
  gte,
  isNotNull,
  lt,
  or,
  type Placeholder,
  type SQL,
  sql,
} from "drizzle-orm";
import { unionAll } from "drizzle-orm/sqlite-core";
import { ACTION_STATUSES } from "../../src/core/action.ts";
import { parseExtras } from "../../src/core/extras-schema.ts";
import { firstActionId } from "../../src/core/ids.ts";
import {
  LIST_BYTES_MAX,
  LIST_SCAN_ROWS_MAX,
  SEARCH_MASKED_CHARS,
  SEARCH_NEAR_BYTES,
  SEARCH_STEP_BYTES,
  SEARCH_STEP_ROWS,
} from "../../src/core/limits.ts";
import type { OutcomeKind } from "../../src/core/outcome.ts";
import {
  codeRange,
  holdsText,
  idPrefixIn,
  matchesCode,
  matchesPlace,
  matchesResult,
  type MetadataFilter,
  urlPath,
  type Search,
  SEARCHED_TEXTS,
  type ActionQuery,
} from "../../src/core/search.ts";
import type { ActionStore } from "../../src/core/store.ts";
import { actionMetadata, actions, timeline } from "../tables.ts";
import type { Dialect, Reader, Row } from "./dialect.ts";
import { AFTER_ALL_IDS, all, bytesOfAction, get, membersIn, qb, repeatable } from "./read.ts";
import { type ActionAccess, findActions, fitting, only, readable, rowReader, shareTurn } from "./rows.ts";

interface SearchStep {
  readonly found: readonly Found[];
  /** The last row that was read, if there may be more to find; else null. */
  readonly last: string | null;
}

/** Runs a part of a search in a turn of its account. Only what runs before the first `await` counts, so it reads once at most. */
type InTurn = <Result>(work: () => Result) => Promise<Result>;

/**
 * Reads rows by one index, newest first, until one more than `query.limit` match or `rowsMax` were read. Reads in short steps, which
 * share turns of the event loop with those of other searches.
 */
async function* searchSteps(reader: Reader, query: ActionQuery, rowsMax: number): AsyncGenerator<SearchStep> {
  // A caller who may not see a value must not find it out by searching.
  const { seenAs = null } = query;
  const isHidden = ({ name, value }: MetadataFilter) => value !== null && seenAs?.showsMetadata(name, value) === false;
  const isDedupeHidden = query.dedupe !== null && seenAs !== null && seenAs.text(query.dedupe) !== query.dedupe;
  if (isDedupeHidden || query.search.metadata.some(isHidden)) return;
  let { before } = timeRange(query);
  const page = repeatable(reader, pageQuery(reader.dialect, query), true);
  const inTurn: InTurn = (work) => shareTurn(query.accountId, work);
  const isRefined = needsRefining(query.search);
  let left = query.limit + 1;
  for (let looked = 0; looked < rowsMax && left > 0;) {
    const rows = Math.min(SEARCH_STEP_ROWS, rowsMax - looked);
    // Some candidates may be left out below.
    const from = { before, rows, limit: isRefined ? rows : left };
    const stretch = await inTurn(() => page(from));
    const end = stretch.find(({ is_end: isEnd }) => isEnd === 1);
    const candidates = stretch.filter(({ matches }) => matches === 1);
    const found = await refine(reader, query, readable(candidates, toFound), inTurn);
    left -= found.length;
    // If an unreadable row took the place of a match, the end was cut off.
    const next = end ?? (stretch.length === from.limit ? stretch.at(-1) : undefined);
    const last = left > 0 && next !== undefined ? String(next["id"]) : null;
    yield { found, last };
    if (last === null) return;
    looked += rows;
    before = last;
  }
}

/**
 * The rows of a step that match as far as SQL can tell, and always the last row of a full step, where the next step begins. It
 * is one statement, since between two, other writes could move the last row, and a row would be skipped or come twice.
 */
function pageQuery(dialect: Dialect, query: ActionQuery) {
  const [before, rows] = [sql.placeholder("before"), sql.placeholder("rows")];
  const scanned = qb.$with("s", { id: actions.id }).as(scanQuery(dialect, query, before).limit(rows).getSQL());
  const end = sql`(select case when count(*) = ${rows} then min(${scanned.id}) end from ${scanned})`;
  const isEnd = sql`${scanned.id} = ${end}`;
  const matches = filters(dialect, query) ?? sql`true`;
  const ends = {
    isEnd: sql`case when ${isEnd} then 1 else 0 end`.as("is_end"),
    // Other rows are selected only if they match.
    matches: sql`case when ${isEnd} then case when ${matches} then 1 else 0 end else 1 end`.as("matches"),
  };
  return qb
    .with(scanned)
    .select({ ...foundColumns(needsTexts(query.search)), ...ends })
    .from(scanned)
    .crossJoin(actions)
    .where(and(eq(actions.id, scanned.id), or(isEnd, matches)))
    .orderBy(desc(scanned.id))
    .limit(sql.placeholder("limit"));
}

/** Selects ids by the index of the most selective condition, or of each status. */
function scanQuery(dialect: Dialect, query: ActionQuery, before: string | Placeholder) {
  const { isOneOf } = dialect;
  const { id, dedupe, hostname, keyId } = actions;
  const { accountId, search, createdBy, host } = query;
  const { from } = timeRange(query);
  const scan = (condition: SQL | undefined) =>
    qb
      .select({ id })
      .from(actions)
      .where(and(eq(actions.accountId, accountId), gte(id, from), lt(id, before), condition));
  if (search.ids.length > 0) return scan(isOneOf(id, search.ids)).orderBy(desc(id));
  if (query.dedupe !== null) return scan(eq(dedupe, query.dedupe)).orderBy(desc(id));
  const exact = search.metadata.find(({ value }) => value !== null);
  if (exact !== undefined) {
    // The rows of one value are in the order of ids, and so of creation.
    const { actionId, name, value } = actionMetadata;
    const isValue = and(eq(actionMetadata.accountId, accountId), eq(name, exact.name), eq(value, exact.value ?? ""));
    return qb
      .select({ id: sql`${actionId}`.as("id") })
      .from(actionMetadata)
      .where(and(isValue, gte(actionId, from), lt(actionId, before)))
      .orderBy(desc(actionId));
  }
  if (host !== null) return scan(eq(hostname, hostnameOf(host))).orderBy(desc(id));
  if (isByStatus(query)) {
    // Each branch is in the order of its index, so SQLite merges them without sorting.
    const [first, second, ...more] = ACTION_STATUSES.filter((one) => query.statuses.includes(one)).map((one) =>
      scan(hasStatus(one)),
    );
    if (first !== undefined) return (second === undefined ? first : unionAll(first, second, ...more)).orderBy(desc(id));
  }
  // Repeats the condition of the partial index.
  return scan(createdBy === null ? undefined : and(eq(keyId, createdBy), sql`${keyId} <> ''`)).orderBy(desc(id));
}

/** Whether a list is read by the index of statuses. */
function isByStatus({ dedupe, host, statuses, search }: ActionQuery): boolean {
  const isByOther = search.ids.length > 0 || dedupe !== null || host !== null;
  const isByMetadata = search.metadata.some(({ value }) => value !== null);
  return !isByOther && !isByMetadata && statuses.length > 0 && !statuses.includes("completed");
}

/** The status as a literal, with the condition of the partial index, without which SQLite would not use it. */
function hasStatus(one: ActionQuery["statuses"][number]): SQL {
  const { status } = actions;
  const is = sql`${status} = ${sql.raw(`'${one}'`)}`;
  return one === "active" ? is : sql`${is} and ${status} <> 'completed' and ${status} <> 'active'`;
}

/** Whether a list filters only by statuses and times, so that the index of statuses has the answer. */
function isOnlyByStatus(query: ActionQuery): boolean {
  const { method, createdBy } = query;
  const { responseCodes, error, metadata, q } = query.search;
  const isPlain = method === null && createdBy === null && responseCodes.length === 0 && error === null;
  return isByStatus(query) && isPlain && metadata.length === 0 && q === null && !needsRefining(query.search);
}

/** The conditions that SQL can decide; undefined: none. */
function filters({ isOneOf }: Dialect, query: ActionQuery): SQL | undefined {
  const { id, status, method, dedupe, keyId, hostname, host, url, responseCode, errorSource } = actions;
  const { responseCodes, outcome, error, metadata } = query.search;
  const range = codeRange(responseCodes);
  const isDispatch = outcome === "not_sent" || outcome === "unknown" || (error !== null && error !== "target");
  return and(
    query.statuses.length === 0 ? undefined : isOneOf(status, query.statuses),
    query.method === null ? undefined : eq(method, query.method),
    query.dedupe === null ? undefined : eq(dedupe, query.dedupe),
    query.createdBy === null ? undefined : eq(keyId, query.createdBy),
    query.host === null ? undefined : isHost(query.host),
    range === null ? undefined : between(responseCode, range.from, range.to),
    isDispatch ? eq(errorSource, "dispatch") : undefined,
    error === "target" ? eq(errorSource, error) : undefined,
    ...metadata.map(hasMetadata),
  );

  /** Whether the host matches. A name without a port means any port. The default port of a scheme is not stored. */
  function isHost(asked: string) {
    const scheme = SCHEME_OF_PORT.get(/:(\d+)$/.exec(asked)?.[1] ?? "");
    // Stored as it was written, so perhaps in capitals: `like` ignores case in SQLite, but not in PostgreSQL.
    const isScheme = sql`lower(substr(${url}, 1, ${`${scheme}:`.length})) = ${`${scheme}:`}`;
    const isOfScheme = scheme === undefined ? undefined : and(eq(host, hostname), isScheme);
    return and(eq(hostname, hostnameOf(asked)), or(eq(hostname, asked), eq(host, asked), isOfScheme));
  }

  function hasMetadata({ name, value }: MetadataFilter) {
    const isValue = value === null ? undefined : eq(actionMetadata.value, value);
    const isOfAction = and(eq(actionMetadata.actionId, id), eq(actionMetadata.name, name), isValue);
    return exists(qb.select({ id: actionMetadata.actionId }).from(actionMetadata).where(isOfAction));
  }
}

function hostnameOf(host: string): string {
  return host.replace(/:\d+$/, "");
}

const SCHEME_OF_PORT: ReadonlyMap<string, "http" | "https"> = new Map([
  ["80", "http"],
  ["443", "https"],
]);

/** The first id that a search reads, and the id that it ends before. Ids begin with their time, so times need no index. */
function timeRange({ createdAfter, createdBefore, before, search }: ActionQuery) {
  const prefix = idPrefixIn(search.q);
  const starts = [createdAfter === null ? "" : firstIdAt(createdAfter.getTime() + 1), prefix ?? ""];
  const ends = [
    before,
    createdBefore === null ? null : firstIdAt(createdBefore.getTime()),
    prefix === null ? null : prefix + AFTER_ALL_IDS,
  ];
  return {
    from: starts.toSorted()[1] ?? "",
    before: ends.filter((id) => id !== null).toSorted()[0] ?? AFTER_ALL_IDS,
  };
}

/** The latest time that an id can hold: its 48 bits for milliseconds end in the year 10889. */
const LAST_MS = 2 ** 48 - 1;

function firstIdAt(ms: number): string {
  return firstActionId(new Date(Math.min(ms, LAST_MS)));
}

/** What a search reads of a row: the columns before the long ones, since reading past those is slow. */
function foundColumns(hasTexts: boolean) {
  const { id, run, url, host, responseCode, errorSource, lastError } = actions;
  const bytes = bytesOfAction();
  // Title and extras come after the long columns, so they are read here only if those are short.
  const near = (column: Column) => sql`case when ${bytes} <= ${SEARCH_NEAR_BYTES} then ${column} end`.as(column.name);
  const texts = hasTexts ? { title: near(actions.title), extras: near(actions.extras) } : {};
  return { id, bytes: bytes.as("bytes"), run, url, host, responseCode, errorSource, lastError, ...texts };
}

const readFound = rowReader(
  only(actions, ["id", "run", "url", "host", "responseCode", "errorSource", "lastError", "title", "extras"]),
);

/** Title and extras are also null if they were not read; see `foundColumns`. */
type Found = ReturnType<typeof toFound>;

function toFound(row: Row) {
  return { ...readFound(row), bytes: Number(row["bytes"]) };
}

/** Whether a search looks at texts of the requester. */
function needsTexts(search: Search): boolean {
  const { q } = search;
  return (q !== null && idPrefixIn(q) === null) || SEARCHED_TEXTS.some((name) => search[name] !== null);
}

/** Whether SQL alone can't decide what matches. */
function needsRefining(search: Search): boolean {
  const { responseCodes, outcome, error, path } = search;
  const isInSql = responseCodes.length <= 1 && (error === null || error === "target");
  return needsTexts(search) || path !== null || outcome !== null || !isInSql;
}

/** The matching rows, in their order. Texts are compared here, since SQLite ignores case only in ASCII. */
async function refine(
  reader: Reader,
  { search, seenAs = null }: Pick<ActionQuery, "search" | "seenAs">,
  rows: readonly Found[],
  inTurn: InTurn,
): Promise<readonly Found[]> {
  if (!needsRefining(search)) return rows;
  const { q, path, outcome } = search;
  const asked = SEARCHED_TEXTS.filter((name) => search[name] !== null);
  const isBoth = bothMatch(seenAs);
  const isAt = (row: Found) => path === null || isBoth(row.url, "url", (url) => urlPath(url).startsWith(path));
  const isElsewhere = (row: Found) =>
    q !== null &&
    !matchesCode(q, row.responseCode) &&
    !isBoth(row.url, "url", (url) => matchesPlace(q, { ...row, url }));
  const holds = (text: string | null | undefined, searched: string) =>
    typeof text === "string" && isBoth(text, "text", (seen) => holdsText(seen, searched));
  const near = await inTurn(() => rows.filter((row) => matchesResult(search, row) && isAt(row)));
  const isLong = (row: Found) => row.bytes > SEARCH_NEAR_BYTES;
  const texts = await readTexts(
    reader,
    near.filter((row) => isLong(row) && (asked.length > 0 || isElsewhere(row))),
    inTurn,
  );
  const isFound = (row: Found) => {
    const own = texts.get(row.id) ?? row;
    if (!asked.every((name) => holds(textIn(own, name), search[name] ?? ""))) return false;
    return q === null || !isElsewhere(row) || holds(own.title, q);
  };
  const found = await inTurn(() => near.filter(isFound));
  return outcome === null ? found : inTurn(() => withOutcome(reader, outcome, found));
}

type Masks = "url" | "text";

/**
 * Tells whether a text matches as it was written and as the caller sees it. Beyond `SEARCH_MASKED_CHARS` it masks only what matches,
 * since masking ten thousand long texts takes seconds. Up to that it masks whatever it is given: otherwise the time of a search would
 * tell whether a hidden value matches, and so the value, letter by letter.
 */
function bothMatch(seenAs: ActionQuery["seenAs"]) {
  const known = { url: new Map<string, string>(), text: new Map<string, string>() };
  let charsLeft = SEARCH_MASKED_CHARS;
  return (text: string, mask: Masks, matches: (seen: string) => boolean): boolean => {
    if (seenAs === null || seenAs === undefined) return matches(text);
    const before = known[mask].get(text);
    if (before === undefined && text.length > charsLeft) return matches(text) && matches(seenAs[mask](text));
    const seen = before ?? seenAs[mask](text);
    if (before === undefined) charsLeft -= text.length;
    known[mask].set(text, seen);
    return matches(text) && matches(seen);
  };
}

function textIn({ title, extras }: Pick<Found, "title" | "extras">, name: (typeof SEARCHED_TEXTS)[number]) {
  if (name === "title") return title;
  return extras === null ? null : parseExtras(extras)?.[name];
}

/** Titles and extras of long rows, read in pieces. A row with neither costs little, since its header says what is null. */
async function readTexts(reader: Reader, rows: readonly Found[], inTurn: InTurn) {
  const { isOneOf } = reader.dialect;
  const { id, title, extras } = actions;
  const texts = new Map<string, Pick<Found, "title" | "extras">>();
  for (let left = rows; left.length > 0;) {
    const some = fitting(SEARCH_STEP_BYTES, left);
    left = left.slice(some.length);
    const isOneOfThese = isOneOf(
      id,
      some.map((row) => row.id),
    );
    const found = qb.select({ id, title, extras }).from(actions);
    const hasText = or(isNotNull(title), isNotNull(extras));
    const read = () => all(reader, found.where(and(isOneOfThese, hasText)));
    for (const row of await inTurn(read)) texts.set(row.id, row);
  }
  return texts;
}

/** The rows with this outcome. If there was no complete answer, the newest attempt says how far it got. */
async function withOutcome(reader: Reader, outcome: OutcomeKind, rows: readonly Found[]): Promise<readonly Found[]> {
  const { itemsOf } = reader.dialect;
  const isAnswered = (row: Found) => row.errorSource !== "dispatch" && row.responseCode !== null;
  const ids = rows.filter((row) => row.errorSource === "dispatch").map((row) => row.id);
  const isAttempt = and(sql`${timeline.actionId} = j.value`, eq(timeline.type, "attempt"));
  const attempts = qb.select({ detail: timeline.detail }).from(timeline).where(isAttempt);
  const detail = sql`${attempts.orderBy(desc(timeline.revision)).limit(1)}`;
  const ofEach = sql<{ readonly id: string; readonly detail: string | null }>`select j.value as id, ${detail} as detail
    from ${itemsOf(ids)}`;
  const last = ids.length === 0 ? [] : await all(reader, ofEach);
  const outcomes = new Map(last.map((row) => [row.id, membersIn(row.detail)["outcome"]]));
  return rows.filter((row) => (isAnswered(row) ? "answered" : outcomes.get(row.id)) === outcome);
}

export function createLists(
  reads: Pick<ActionAccess, "reader" | "seal">,
): Pick<ActionStore, "list" | "count" | "matching"> {
  const { reader } = reads;
  /** When the row at which a search stopped early was created; null: it did not stop early. */
  const readCreatedAt = async (last: string | null) => {
    const found = qb.select({ createdAt: actions.createdAt }).from(actions);
    return last === null ? null : ((await get(reader, found.where(eq(actions.id, last))))?.createdAt ?? null);
  };
  /** All matches; and the last row read, if there may be more. */
  const search = async (query: ActionQuery, rowsMax: number) => {
    const found: Found[] = [];
    let last: string | null = null;
    for await (const step of searchSteps(reader, query, rowsMax)) {
      found.push(...step.found);
      ({ last } = step);
    }
    return { found, last };
  };
  return {
    /**
     * One page, newest first. Its cursor is the last id, so that no page repeats an action or skips one that matches
     * throughout; actions that nodes insert meanwhile may be on a later page. One filter uses an index, the others read
     * `LIST_SCAN_ROWS_MAX` rows at most. A page ends early at this bound or at its limit of bytes, and says where the next one
     * begins: a hundred actions may be 100 MB, which blocked the event loop for a second.
     */
    async list(query) {
      const { found, last } = await search(query, LIST_SCAN_ROWS_MAX);
      const ids = fitting(query.bytesMax ?? LIST_BYTES_MAX, found.slice(0, query.limit)).map((row) => row.id);
      const listed = await findActions(reads, query.accountId, ids);
      if (found.length > ids.length) return { actions: listed, before: ids.at(-1) ?? null, searchedUntil: null };
      return { actions: listed, before: last, searchedUntil: await readCreatedAt(last) };
    },

    async count(query, rowsMax) {
      const { limit } = query;
      if (limit < rowsMax && isOnlyByStatus(query)) {
        // Counted in the index alone, without reading rows.
        const { before } = timeRange(query);
        const scanned = scanQuery(reader.dialect, query, before)
          .limit(limit + 1)
          .as("s");
        const found = (await get(reader, qb.select({ count: count().as("count") }).from(scanned)))?.count ?? 0;
        return { count: Math.min(found, limit), isMore: found > limit, searchedUntil: null };
      }
      const { found, last } = await search(query, rowsMax);
      if (found.length > limit) return { count: limit, isMore: true, searchedUntil: null };
      return { count: found.length, isMore: last !== null, searchedUntil: await readCreatedAt(last) };
    },

    async matching(query, rowsMax) {
      const { found, last } = await search(query, rowsMax);
      const matched = found.slice(0, query.limit);
      return {
        actions: matched.map((row) => ({ id: row.id, run: row.run, host: row.host, responseCode: row.responseCode })),
        isMore: last !== null || found.length > query.limit,
      };
    },
  };
}
