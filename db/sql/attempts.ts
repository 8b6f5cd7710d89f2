import { and, desc, eq } from "drizzle-orm";
import type { KeptResponse } from "../../src/core/attempts.ts";
import { ATTEMPTS_KEPT } from "../../src/core/limits.ts";
import { type Args, prepare, query } from "./query.ts";
import { actions, attempts } from "../libsql/schema.ts";
import { Columns, isJson } from "./rows.ts";
import type { Row, Sql } from "./sql.ts";

const { run, attempt, responseTruncated, responseHeaders, responseBody } = attempts;

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
  return columns.isAltered ? null : response;
}
