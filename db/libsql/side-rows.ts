import type { Action } from "../../src/domain/action.ts";
import type { Happening } from "../../src/domain/timeline.ts";
import type { OutboxRow } from "../../src/ports/store.ts";
import { CHANGED } from "./guard.ts";
import type { SqlValue, Statement } from "./sql.ts";

/** The timeline and outbox rows of a change. */
export interface SideRows {
  /** The action as it is after the change. */
  readonly after: Action;
  readonly at: Date;
  readonly happenings: readonly Happening[];
  readonly outbox: readonly OutboxRow[];
}

/** The statements that must follow, at once, the one that writes the row of the action: they write only where it did. */
export function sideRows({ after, at, happenings, outbox }: SideRows): readonly Statement[] {
  const told = happenings.length === 0 ? [] : [timelineRows(after, at, happenings)];
  return outbox.length === 0 ? told : [...told, ...outbox.map((row) => outboxRow(after, at, row))];
}

const TIMELINE = "INSERT INTO timeline (action_id, account_id, at, run, revision, type, status, detail)";
const TIMELINE_ROW = `SELECT ?, ?, ?, ?, ?, ?, ?, ? WHERE ${CHANGED.sql}`;
const ONE_ROW = `${TIMELINE} ${TIMELINE_ROW}`;
const TWO_ROWS = `${ONE_ROW} UNION ALL ${TIMELINE_ROW}`;

/** No change tells more than two things; `changes()` is the same for both rows, since they are one statement. */
function timelineRows(after: Action, at: Date, happenings: readonly Happening[]): Statement {
  if (happenings.length > 2) throw new Error("A change tells two things at most.");
  const args = happenings.flatMap(({ type, ...detail }): readonly SqlValue[] => [
    after.id,
    after.accountId,
    at.getTime(),
    after.run,
    after.revision,
    type,
    after.status,
    JSON.stringify(detail),
  ]);
  return { sql: happenings.length === 1 ? ONE_ROW : TWO_ROWS, args };
}

const OUTBOX_ROW = `INSERT INTO outbox
  (id, action_id, account_id, run, revision, kind, event, target, payload, status, attempts, due_at, created_at)
  SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', 0, ?, ? WHERE ${CHANGED.sql}`;

function outboxRow(after: Action, at: Date, { id, owed, payload }: OutboxRow): Statement {
  return {
    sql: OUTBOX_ROW,
    args: [
      id,
      after.id,
      after.accountId,
      after.run,
      after.revision,
      owed.kind,
      owed.event,
      owed.target,
      payload,
      at.getTime(),
      at.getTime(),
    ],
  };
}
