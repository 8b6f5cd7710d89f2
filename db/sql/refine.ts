import { setImmediate as nextTurn } from "node:timers/promises";
import { and, type Column, desc, eq, exists, like, sql } from "drizzle-orm";
import { LATE_SUCCESS } from "../tables.ts";
import { OUTCOMES, type OutcomeKind } from "../../src/core/outcome.ts";
import {
  holdsText,
  idPrefixIn,
  matchesCode,
  matchesPlace,
  matchesResult,
  pathOf,
  type Search,
} from "../../src/core/search.ts";
import { SEARCH_NEAR_BYTES, SEARCH_STEP_BYTES, SEARCH_STEP_ROWS } from "../../src/core/limits.ts";
import { NO_EXTRAS } from "../../src/core/extras.ts";
import { parseExtras } from "../../src/core/extras-schema.ts";
import type { Tables } from "../commands/command.ts";
import { bytesOfAction } from "./dialect.ts";
import { read, type Reader } from "./read.ts";
import { Columns } from "./rows.ts";
import type { ActionQuery, ActionStore } from "../../src/core/store.ts";
import { tables } from "../libsql/schema.ts";
import type { Row } from "./sql.ts";

const { actions: ACTIONS } = tables;

/** The columns of a row that a search reads: only short ones, which stand before the long ones. */
export function foundColumns(actions: Tables["actions"], hasTexts: boolean) {
  const { id, run, url, host, responseCode, errorSource, lastError } = actions;
  const bytes = bytesOfAction(actions);
  // Title and extras stand behind the long columns: here only where those are short.
  const near = (column: Column) => sql`case when ${bytes} <= ${SEARCH_NEAR_BYTES} then ${column} end`.as(column.name);
  const texts = hasTexts ? { title: near(actions.title), extras: near(actions.extras) } : {};
  return { id, bytes: bytes.as("bytes"), run, url, host, responseCode, errorSource, lastError, ...texts };
}

export interface Found {
  readonly id: string;
  readonly bytes: number;
  readonly run: number;
  readonly url: string;
  readonly host: string;
  readonly responseCode: number | null;
  readonly errorSource: "target" | "dispatch" | null;
  readonly lastError: string | null;
  /** Null also where they were not read; `needsTexts`. */
  readonly title: string | null;
  readonly extras: string | null;
}

/** Never throws: a row may have been altered in the database. */
export function foundOf(row: Row): Found {
  const columns = new Columns(row);
  const { response_code: code, error_source: source } = row;
  return {
    id: columns.text(ACTIONS.id),
    bytes: columns.count({ name: "bytes" }, 0),
    run: columns.count(ACTIONS.run, 1),
    url: columns.text(ACTIONS.url),
    host: columns.text(ACTIONS.host),
    responseCode: typeof code === "number" ? code : null,
    errorSource: source === "target" || source === "dispatch" ? source : null,
    lastError: columns.textOrNull(ACTIONS.lastError),
    title: typeof row["title"] === "string" ? row["title"] : null,
    extras: typeof row["extras"] === "string" ? row["extras"] : null,
  };
}

/** Whether a search looks into titles or reasons. */
export function needsTexts({ q, title, reason }: Search): boolean {
  return (q !== null && idPrefixIn(q) === null) || title !== null || reason !== null;
}

/** Whether SQL alone can't tell if a row matches. */
export function needsRefining(search: Search): boolean {
  const { responseCodes, outcome, error, path } = search;
  const isInSql = responseCodes.length <= 1 && (error === null || error === "target");
  return needsTexts(search) || path !== null || outcome !== null || !isInSql;
}

/** Those of the rows that match, in their order. Texts are compared here: case in SQL is that of ASCII in SQLite. */
export async function refine(
  reader: Reader,
  { search, seenAs = null }: Pick<ActionQuery, "search" | "seenAs">,
  rows: readonly Found[],
): Promise<readonly Found[]> {
  if (!needsRefining(search)) return rows;
  const { q, path, outcome } = search;
  // Masked only where the text itself matches: masking ten thousand texts would take seconds.
  const isBoth = (text: string, mask: "url" | "text", matches: (seen: string) => boolean) =>
    matches(text) && (seenAs === null || matches(seenAs[mask](text)));
  const isAt = (row: Found) => path === null || isBoth(row.url, "url", (url) => pathOf(url).startsWith(path));
  const near = rows.filter((row) => matchesResult(search, row) && isAt(row));
  const isElsewhere = (row: Found) =>
    q !== null &&
    !matchesCode(q, row.responseCode) &&
    !isBoth(row.url, "url", (url) => matchesPlace(q, { ...row, url }));
  const holds = (text: string | null, searched: string) =>
    text !== null && isBoth(text, "text", (seen) => holdsText(seen, searched));
  const found = await withTexts(reader, search, near, isElsewhere, holds);
  return outcome === null ? found : withOutcome(reader, outcome, found);
}

/** Of long rows. Those without both cost little: whether a column is null stands at the start of a row. */
const TEXTS = read({ ids: "list" }, ({ db, tables: { actions }, isOneOf }, arg) =>
  db
    .select({ id: actions.id, title: actions.title, extras: actions.extras })
    .from(actions)
    .where(and(isOneOf(actions.id, arg.ids), sql`(${actions.title} is not null or ${actions.extras} is not null)`)),
);

/**
 * The rows whose title and reason match, and of those that the free text has to be looked for in, whose title has it.
 * `holds`: whether a text holds another one for whoever searches.
 */
async function withTexts(
  reader: Reader,
  { q, title, reason }: Search,
  rows: readonly Found[],
  isElsewhere: (row: Found) => boolean,
  holds: (text: string | null, searched: string) => boolean,
): Promise<readonly Found[]> {
  const asked = rows.filter(
    (row) => row.bytes > SEARCH_NEAR_BYTES && (title !== null || reason !== null || isElsewhere(row)),
  );
  const texts = new Map<string, Row>();
  for (const some of chunksOf(asked)) {
    for (const row of await TEXTS.raw(reader, { ids: some.map(({ id }) => id) })) texts.set(String(row["id"]), row);
    if (some.length < asked.length) await nextTurn();
  }
  return rows.filter((row) => {
    const columns = new Columns(texts.get(row.id) ?? { title: row.title, extras: row.extras });
    const own = columns.textOrNull(ACTIONS.title);
    if (title !== null && !holds(own, title)) return false;
    if (reason !== null && !holds(columns.parsed(ACTIONS.extras, parseExtras, NO_EXTRAS).reason ?? null, reason))
      return false;
    return q === null || !isElsewhere(row) || holds(own, q);
  });
}

/** In pieces whose long columns are passed in a moment. */
function chunksOf(rows: readonly Found[]): readonly (readonly Found[])[] {
  const chunks: Found[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const row of rows) {
    bytes += row.bytes;
    if (bytes > SEARCH_STEP_BYTES) {
      chunks.push([]);
      bytes = row.bytes;
    }
    chunks.at(-1)?.push(row);
  }
  return chunks;
}

/** The newest attempt of each of some actions. */
const LAST_ATTEMPT = read({ ids: "list" }, ({ db, tables: { timeline }, itemsOf }, arg) => {
  const isOfAction = and(sql`${timeline.actionId} = j.value`, eq(timeline.type, "attempt"));
  const last = db.select({ detail: timeline.detail }).from(timeline).where(isOfAction);
  const detail = sql`${last.orderBy(desc(timeline.revision)).limit(1)}`;
  return sql<{ readonly id: string; readonly detail: string | null }>`select j.value as id, ${detail} as detail
    from ${itemsOf(arg.ids)}`;
});

/** Where the row doesn't tell: no whole answer came, and the timeline says how far it got. */
async function withOutcome(reader: Reader, outcome: OutcomeKind, rows: readonly Found[]): Promise<readonly Found[]> {
  const isAnswered = (row: Found) => row.errorSource !== "dispatch" && row.responseCode !== null;
  const ids = rows.filter((row) => row.errorSource === "dispatch").map(({ id }) => id);
  const last = ids.length === 0 ? [] : await LAST_ATTEMPT.all(reader, { ids });
  const outcomes = new Map(last.map(({ id, detail }) => [id, outcomeIn(detail)]));
  return rows.filter((row) => (isAnswered(row) ? "answered" : outcomes.get(row.id)) === outcome);
}

/** Null: it was altered and can't be read. */
function outcomeIn(detail: unknown): OutcomeKind | null {
  try {
    const value: unknown = JSON.parse(String(detail));
    const named = typeof value === "object" && value !== null && "outcome" in value ? value.outcome : null;
    return OUTCOMES.find((outcome) => outcome === named) ?? null;
  } catch {
    return null;
  }
}

/** A detail is JSON of our own: its quotes can't be part of a text in it. */
const UNKNOWN = read({ ids: "list" }, ({ db, tables: { timeline }, itemsOf }, arg) => {
  const isUnknown = like(timeline.detail, '%"outcome":"unknown"%');
  const attempt = db
    .select({ seq: timeline.seq })
    .from(timeline)
    .where(and(sql`${timeline.actionId} = j.value`, eq(timeline.type, "attempt"), isUnknown));
  return sql<{ readonly id: string }>`select j.value as id from ${itemsOf(arg.ids)} where ${exists(attempt)}`;
});

const LATE_SUCCESSES = read({ ids: "list" }, ({ db, tables: { actions }, isOneOf }, arg) =>
  db
    .select({ id: actions.id })
    .from(actions)
    .where(and(isOneOf(actions.id, arg.ids), like(actions.lateResult, LATE_SUCCESS))),
);

/** SQLite reads on this thread: others get their turn between two steps. */
async function inSteps(
  ids: readonly string[],
  find: (ids: readonly string[]) => Promise<readonly { readonly id: string }[]>,
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (let at = 0; at < ids.length; at += SEARCH_STEP_ROWS) {
    if (at > 0) await nextTurn();
    for (const { id } of await find(ids.slice(at, at + SEARCH_STEP_ROWS))) found.add(id);
  }
  return found;
}

/** Which of some actions had such a result. See `ActionStore`. */
export function createResultFinds(reader: Reader): Pick<ActionStore, "withUnknown" | "withLateSuccess"> {
  return {
    withUnknown: (ids) => inSteps(ids, (some) => UNKNOWN.all(reader, { ids: some })),
    withLateSuccess: (ids) => inSteps(ids, (some) => LATE_SUCCESSES.all(reader, { ids: some })),
  };
}
