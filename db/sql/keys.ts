import { and, eq, gt, like, lte, ne, or, sql } from "drizzle-orm";
import type { Action } from "../../src/core/action.ts";
import type { KeyKind } from "../../src/core/dedupe.ts";
import { LATE_SUCCESS } from "../tables.ts";
import type { StoreContext } from "./context.ts";
import { windowStart } from "./create.ts";
import { isOneOfPlaces, place } from "./dialect.ts";
import { pruneDays } from "./key-days.ts";
import { type Args, prepare, query } from "./query.ts";
import { ACTION_COLUMNS, shownActionOf } from "./rows.ts";
import { actionKeys, actions } from "../libsql/schema.ts";
import type { Writer } from "./writer.ts";

/** An idempotency or dedupe key. */
interface KeyOf {
  readonly accountId: string;
  readonly kind: KeyKind;
  readonly key: string;
}

const FIND = prepare((arg: Args<"accountId" | "kind" | "key" | "windowStart">) =>
  query
    .select(ACTION_COLUMNS)
    .from(actionKeys)
    .innerJoin(actions, eq(actions.id, actionKeys.actionId))
    .where(
      and(
        eq(actionKeys.accountId, arg.accountId),
        eq(actionKeys.kind, arg.kind),
        eq(actionKeys.key, arg.key),
        gt(actionKeys.createdAt, arg.windowStart),
        // The create has the same rule.
        or(eq(actionKeys.kind, "idempotency"), ne(actions.status, "failed"), like(actions.lateResult, LATE_SUCCESS)),
      ),
    ),
);

/** The live action that a key names. */
export async function keyHolder(
  { sql: reader, seal }: Pick<StoreContext, "sql" | "seal">,
  key: KeyOf,
  now: Date,
): Promise<Action | null> {
  const [row] = await FIND.readRaw(reader, { ...key, windowStart: windowStart(now) });
  return row === undefined ? null : shownActionOf(row, seal);
}

/** Rows deleted per pass, so that it never blocks the writer for long. */
const PRUNE_ROWS = 500;

const PRUNE = prepare((arg: Args<"windowStart">) => {
  const at = sql<number>`${actionKeys}.${place}`;
  const old = query.select({ at }).from(actionKeys).where(lte(actionKeys.createdAt, arg.windowStart)).limit(PRUNE_ROWS);
  return query.delete(actionKeys).where(isOneOfPlaces(at, old));
});

/** See `ActionStore.pruneKeys`. */
export async function pruneKeys(writer: Writer, now: Date): Promise<boolean> {
  const [deleted] = await writer.write([PRUNE.bind({ windowStart: windowStart(now) }), pruneDays(now)]);
  return deleted?.changes === PRUNE_ROWS;
}
