import { and, eq, gt, like, ne, or } from "drizzle-orm";
import { dayOf } from "../../src/core/key-limits.ts";
import type { Action } from "../../src/core/action.ts";
import type { KeyKind } from "../../src/core/dedupe.ts";
import { LATE_SUCCESS } from "../tables.ts";
import * as commands from "../commands/upkeep.ts";
import type { StoreContext } from "./context.ts";
import { windowStart } from "./create.ts";
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

/** See `ActionStore.pruneKeys`. */
export async function pruneKeys(writer: Writer, now: Date): Promise<boolean> {
  return writer.run(commands.pruneKeys, { windowStart: windowStart(now), beforeDay: dayOf(now) - 1 });
}
