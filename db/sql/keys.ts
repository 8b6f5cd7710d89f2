import { and, eq, exists, gt, like, lte, ne, notExists, or, type Placeholder, sql, type SQL } from "drizzle-orm";
import { type Action, LATE_SUCCESS } from "../../src/core/action.ts";
import type { KeyKind } from "../../src/core/dedupe.ts";
import { DEDUPE_WINDOW_MS } from "../../src/core/limits.ts";
import type { StoreContext } from "./context.ts";
import { isOneOfPlaces, place } from "./dialect.ts";
import { pruneDays } from "./key-days.ts";
import { type Args, changed, insertWhere, bareNames, prepare, query, valuesOf } from "./query.ts";
import { ACTION_COLUMNS, shownActionOf } from "./rows.ts";
import { actionKeys, actions } from "../libsql/schema.ts";
import type { Statement } from "./sql.ts";
import type { Writer } from "./writer.ts";

/** An idempotency or dedupe key. */
interface KeyOf {
  readonly accountId: string;
  readonly kind: KeyKind;
  readonly key: string;
}

/** The keys that an action was created with. */
export function keysOf({ accountId, idempotencyKey, dedupe }: Action): readonly KeyOf[] {
  const keys: KeyOf[] = [];
  if (idempotencyKey !== null) keys.push({ accountId, kind: "idempotency", key: idempotencyKey });
  if (dedupe !== null) keys.push({ accountId, kind: "dedupe", key: dedupe });
  return keys;
}

/** The start of the window in which a key bareNames its action, exclusive. */
export function windowStart(now: Date): Date {
  return new Date(now.getTime() - DEDUPE_WINDOW_MS);
}

type KeyArgs = Args<"accountId" | "windowStart">;

/** Holds for the row of `actionKeys`, joined with its action, by which the key bareNames a live action. */
function isKey(kind: KeyKind | Placeholder, key: Placeholder, { accountId, windowStart: start }: KeyArgs) {
  return and(
    eq(actionKeys.accountId, accountId),
    eq(actionKeys.kind, kind),
    eq(actionKeys.key, key),
    gt(actionKeys.createdAt, start),
    // `src/core/dedupe.ts` has the same rule for one action.
    or(eq(actionKeys.kind, "idempotency"), ne(actions.status, "failed"), like(actions.lateResult, LATE_SUCCESS)),
  );
}

/** Holds while the key bareNames no live action; a key that is null bareNames none. */
export function isFree(kind: KeyKind, key: Placeholder, arg: KeyArgs): SQL {
  const holder = query
    .select({ id: actions.id })
    .from(actionKeys)
    .innerJoin(actions, eq(actions.id, actionKeys.actionId));
  return notExists(holder.where(isKey(kind, key, arg)));
}

/** Holds while the key bareNames this action. */
export function isHeldBy(kind: KeyKind, key: Placeholder, arg: Args<"accountId" | "id">): SQL {
  const own = [eq(actionKeys.accountId, arg.accountId), eq(actionKeys.kind, kind), eq(actionKeys.key, key)];
  return exists(
    query
      .select({ id: actionKeys.actionId })
      .from(actionKeys)
      .where(and(...own, eq(actionKeys.actionId, arg.id))),
  );
}

const FIND = prepare((arg: Args<"accountId" | "kind" | "key" | "windowStart">) =>
  query
    .select(ACTION_COLUMNS)
    .from(actionKeys)
    .innerJoin(actions, eq(actions.id, actionKeys.actionId))
    .where(isKey(arg.kind, arg.key, arg)),
);

/** The live action that a key bareNames. */
export async function keyHolder(
  { sql: reader, seal }: Pick<StoreContext, "sql" | "seal">,
  key: KeyOf,
  now: Date,
): Promise<Action | null> {
  const [row] = await FIND.readRaw(reader, { ...key, windowStart: windowStart(now) });
  return row === undefined ? null : shownActionOf(row, seal);
}

const excluded = (column: typeof actionKeys.actionId | typeof actionKeys.createdAt) =>
  sql`excluded.${bareNames(column)}`;

/** The key's older action is no longer live. */
const REPLACE = {
  target: [actionKeys.accountId, actionKeys.kind, actionKeys.key],
  set: { actionId: excluded(actionKeys.actionId), createdAt: excluded(actionKeys.createdAt) },
};

const TAKE = prepare((arg: Args<"accountId" | "kind" | "key" | "id" | "createdAt">) =>
  insertWhere(actionKeys, changed, {
    ...valuesOf(arg, ["accountId", "kind", "key", "createdAt"]),
    actionId: arg.id,
  }).onConflictDoUpdate(REPLACE),
);

/** Makes the key name the action, where the statement before wrote the action's row. */
export function take(key: KeyOf, { id, createdAt }: Action): Statement {
  return TAKE.bind({ ...key, id, createdAt });
}

const BIND = prepare((arg: Args<"accountId" | "idempotencyKey" | "dedupe" | "now" | "windowStart">) =>
  query
    .insert(actionKeys)
    .select(
      query
        .select({
          accountId: actionKeys.accountId,
          kind: sql<KeyKind>`'idempotency'`.as("kind"),
          key: sql<string>`${arg.idempotencyKey}`.as("key"),
          actionId: actionKeys.actionId,
          createdAt: sql<Date>`${arg.now}`.as("created_at"),
        })
        .from(actionKeys)
        .innerJoin(actions, eq(actions.id, actionKeys.actionId))
        .where(and(isKey("dedupe", arg.dedupe, arg), isFree("idempotency", arg.idempotencyKey, arg))),
    )
    .onConflictDoUpdate(REPLACE),
);

/**
 * Makes the idempotency key of a create name the live action that its dedupe key bareNames, for 24 h from now. Writes
 * nothing while the idempotency key bareNames a live action. Null for a create without both keys.
 */
export function bindKey({ accountId, idempotencyKey, dedupe }: Action, now: Date): Statement | null {
  if (idempotencyKey === null || dedupe === null) return null;
  return BIND.bind({ accountId, idempotencyKey, dedupe, now, windowStart: windowStart(now) });
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
