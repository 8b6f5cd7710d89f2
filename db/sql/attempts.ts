import { and, desc, eq, sql } from "drizzle-orm";
import { type KeptResponse, mayHaveTooMany, responseToKeep } from "../../src/core/attempts.ts";
import type { Change } from "../../src/core/changes.ts";
import { ATTEMPTS_KEPT } from "../../src/core/limits.ts";
import { changed, type Args, insertWhere, prepare, query, valuesOf } from "./query.ts";
import { actions, attempts } from "../libsql/schema.ts";
import { Columns, isJson } from "./rows.ts";
import type { Row, Sql, Statement } from "./sql.ts";

const { run, attempt, responseTruncated, responseHeaders, responseBody } = attempts;

const RESPONSE = ["responseTruncated", "responseHeaders", "responseBody"] as const;

const ATTEMPT = ["actionId", "run", "attempt", ...RESPONSE] as const;

/** A row that is there already is of a manual change: it is replaced. */
const KEEP = prepare((arg: Args<(typeof ATTEMPT)[number]>) =>
  insertWhere(attempts, changed, valuesOf(arg, ATTEMPT)).onConflictDoUpdate({
    target: [attempts.actionId, attempts.run, attempts.attempt],
    set: valuesOf(arg, RESPONSE),
  }),
);

/** Leaves the row that was just written and the newest others: PostgreSQL does not see that row yet. */
const TRIM = prepare((arg: Args<"actionId" | "run" | "attempt">) => {
  const { actionId } = attempts;
  const isOther = sql`(${run} <> ${arg.run} or ${attempt} <> ${arg.attempt})`;
  const isKept = sql`(${run}, ${attempt}) >= (select run, attempt from ${attempts}
    where ${actionId} = ${arg.actionId} and ${isOther} order by run desc, attempt desc
    limit 1 offset ${ATTEMPTS_KEPT - 2})`;
  return query
    .delete(attempts)
    .where(sql`${actionId} = ${arg.actionId} and ${isOther} and not ${isKept} and ${changed}`);
});

/** What a change does to the responses that are kept. */
interface Keeping {
  /** Directly follows a statement that wrote for the change. */
  readonly keep: readonly Statement[];
  /** Comes last, since it seldom deletes a row. */
  readonly trim: readonly Statement[];
}

export function keepResponse(change: Omit<Change, "events">): Keeping {
  const kept = responseToKeep(change);
  if (kept === null) return NOTHING_KEPT;
  const row = { ...kept, actionId: change.after.id };
  return { keep: [KEEP.bind(row)], trim: mayHaveTooMany(kept) ? [TRIM.bind(row)] : [] };
}

const NOTHING_KEPT: Keeping = { keep: [], trim: [] };

const FIND = prepare((arg: Args<"id" | "accountId">) =>
  query
    .select({ run, attempt, responseTruncated, responseHeaders, responseBody })
    .from(attempts)
    .innerJoin(actions, and(eq(actions.id, attempts.actionId), eq(actions.accountId, arg.accountId)))
    .where(eq(attempts.actionId, arg.id))
    .orderBy(desc(run), desc(attempt))
    .limit(ATTEMPTS_KEPT),
);

/** See `ActionStore.responses`. */
export async function findResponses(reader: Sql, accountId: string, id: string): Promise<readonly KeptResponse[]> {
  return (await FIND.readRaw(reader, { id, accountId })).flatMap((row) => responseOf(row) ?? []);
}

/** Null: it was altered and can't be read. */
function responseOf(row: Row): KeptResponse | null {
  const columns = new Columns(row);
  const body = columns.textOrNull(responseBody);
  const response = {
    run: columns.count(run, 1),
    attempt: columns.count(attempt, 1),
    responseTruncated: columns.flag(responseTruncated, true),
    responseHeaders: columns.textOrNull(responseHeaders),
    responseBody: isJson(body) ? body : JSON.stringify(body),
  };
  return columns.isBroken ? null : response;
}
