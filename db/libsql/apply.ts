import type { Action } from "../../src/actions/action.ts";
import type { Change } from "../../src/actions/changes.ts";
import { type ChangeWrite, RowRefused, type SetBack } from "../store.ts";
import { auditChange } from "./audit.ts";
import { isConstraint } from "./errors.ts";
import { allOf, eitherOf, type Guard, type Statement, textOnce } from "./sql.ts";
import type { StoreContext } from "./context.ts";
import { free, heldBy, type KeyOf, take } from "./find.ts";
import { mayAsk, rejectionRows } from "./rejections.ts";
import { RESULT_COLUMNS, resultValues, STATE_COLUMNS, stateValues } from "./rows.ts";
import { sideRows } from "./create.ts";
import { CLOCK_TOLERANCE_MS } from "../../src/config/limits.ts";
import type { NotificationKind } from "../../src/delivery/notification.ts";
import type { Writer } from "./writer.ts";

const set = (columns: readonly string[]) => columns.map((column) => `${column} = ?`).join(", ");

const STATE = [...STATE_COLUMNS, "scheduled_at"];

const UPDATE_STATE = textOnce((guard) => `UPDATE actions SET ${set(STATE)} WHERE id = ? AND revision = ? AND ${guard}`);

const UPDATE_ALL = textOnce(
  (guard) => `UPDATE actions SET ${set([...STATE, ...RESULT_COLUMNS])} WHERE id = ? AND revision = ? AND ${guard}`,
);

/** Writes a change with its other rows if the action still has the revision it was decided on; returns whether. */
export async function applyChange(db: StoreContext, write: ChangeWrite): Promise<boolean> {
  return isWritten(db, write.change, statements(write));
}

const NEWEST_REVISION = `SELECT max(revision) AS revision FROM timeline
  WHERE action_id = ? AND typeof(revision) = 'integer' AND revision < ${Number.MAX_SAFE_INTEGER}`;

const FORCE = `UPDATE actions SET ${set([...STATE, ...RESULT_COLUMNS, "retries"])}
  WHERE id = ? AND status = ? AND (revision = ? OR typeof(revision) <> 'integer'
    OR revision NOT BETWEEN 1 AND ${Number.MAX_SAFE_INTEGER})`;

/**
 * Writes the whole state over a row whose own values can't be trusted. The new revision is higher than any in the
 * timeline, since the stored one may have been set back or is not a number.
 */
export async function forceChange(db: StoreContext, { change, at, outbox, audit }: ChangeWrite): Promise<boolean> {
  const { before, events } = change;
  const [newest] = await db.sql.read({ sql: NEWEST_REVISION, args: [before.id] });
  const revision = Math.max(before.revision, Number(newest?.["revision"] ?? 0)) + 1;
  const after = { ...change.after, revision };
  const values = [...stateValues(after), at.getTime(), ...resultValues(after.result), after.retries];
  const forced = { sql: FORCE, args: [...values, before.id, before.status, before.revision] };
  const side = [...sideRows({ after, at, events, outbox }), ...auditChange(audit)];
  const isForced = await isWritten(db, { before, after }, [forced, ...side]);
  if (isForced) db.refused.delete(before.id);
  return isForced;
}

/** Known by the timeline row that only this change can have written. */
export async function isApplied({ sql }: Pick<StoreContext, "sql">, { change, at }: ChangeWrite): Promise<boolean> {
  const { before, events } = change;
  const [first] = events;
  if (first === undefined) return false;
  const { type, ...detail } = first;
  const rows = await sql.read({
    sql: "SELECT 1 FROM timeline WHERE action_id = ? AND revision > ? AND type = ? AND at = ? AND detail = ?",
    args: [before.id, before.revision, type, at.getTime(), JSON.stringify(detail)],
  });
  return rows.length > 0;
}

async function isWritten(
  { writer, recent, refused, heldCounts }: StoreContext,
  { before, after }: Pick<Change, "before" | "after">,
  rows: readonly Statement[],
): Promise<boolean> {
  try {
    const [updated] = await writer.write(rows);
    if (updated?.changes !== 1) return false;
    recent.keep(after);
    heldCounts.changed(before, after);
    return true;
  } catch (cause) {
    if (!isConstraint(cause)) throw cause;
    refused.add(after.id);
    throw new RowRefused(after.id, { cause });
  }
}

function statements({ change, at, outbox, audit, rejection }: ChangeWrite): readonly Statement[] {
  const { before, after, events } = change;
  const side = [
    ...sideRows({ after, at, events, outbox }),
    ...auditChange(audit),
    ...rejectionRows(after, rejection, at),
  ];
  const isAllowed = mayAsk(after, rejection, at);
  const key = retakenKey(before, after);
  if (key === null) return [update(change, at, isAllowed), ...side];
  const isOurs = allOf([isAllowed, eitherOf(free(key, at), heldBy(key, before.id))]);
  return [update(change, at, isOurs), take(key, before), ...side];
}

/** A new run makes its dedupe key name the action again, unless the key names another live action. */
function retakenKey(before: Action, after: Action): KeyOf | null {
  if (after.run === before.run || after.dedupe === null) return null;
  return { accountId: after.accountId, kind: "dedupe", key: after.dedupe };
}

/** An unchanged result is not written again: it may be a quarter of a megabyte. */
function update({ before, after }: Change, at: Date, guard: Guard): Statement {
  const keepsResult = after.result === before.result;
  const state = [...stateValues(after), at.getTime()];
  const values = keepsResult ? state : [...state, ...resultValues(after.result)];
  return {
    sql: (keepsResult ? UPDATE_STATE : UPDATE_ALL)(guard.sql),
    args: [...values, before.id, before.revision, ...guard.args],
  };
}

/**
 * A row that was scheduled in the future was scheduled before the clock was set back. It becomes due earlier by as
 * much, but never before now, and never later than its original delay.
 */
const EARLIER = "due_at = max(?1, min(due_at - ?2, ?1 + due_at - scheduled_at)), scheduled_at = ?1";

const ACTIONS = `UPDATE actions SET ${EARLIER} WHERE status = 'pending' AND id IN
  (SELECT id FROM actions WHERE status = 'pending' AND scheduled_at > ?3 LIMIT ?4)`;

const OUTBOX = `UPDATE outbox SET ${EARLIER} WHERE status = 'pending' AND id IN
  (SELECT id FROM outbox WHERE status = 'pending' AND kind = ?5 AND scheduled_at > ?3 LIMIT ?4)`;

export function rescheduleActions(writer: Writer, setBack: SetBack, limit: number): Promise<number> {
  return written(writer, { sql: ACTIONS, args: argsOf(setBack, limit) });
}

export function rescheduleNotifications(
  writer: Writer,
  kind: NotificationKind,
  setBack: SetBack,
  limit: number,
): Promise<number> {
  return written(writer, { sql: OUTBOX, args: [...argsOf(setBack, limit), kind] });
}

function argsOf({ now, byMs }: SetBack, limit: number): readonly number[] {
  const nowMs = now.getTime();
  // Unknown amount: tolerate a clock that was corrected a little.
  return [nowMs, byMs, nowMs + (byMs === 0 ? CLOCK_TOLERANCE_MS : 0), limit];
}

async function written(writer: Writer, statement: Statement): Promise<number> {
  const [done] = await writer.write([statement]);
  return done?.changes ?? 0;
}
