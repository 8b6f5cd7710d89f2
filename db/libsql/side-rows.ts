import type { Action } from "../../src/domain/action.ts";
import type { Happening } from "../../src/domain/timeline.ts";
import type { OutboxRow } from "../../src/ports/store.ts";
import type { SqlValue, Statement } from "./sql.ts";
import { textOnce } from "./texts.ts";

/**
 * The timeline and outbox rows of a change. They are inserted *before* the row of the action changes and under the same
 * guard, so that a change that lost leaves nothing behind: the other way round a losing reject still wrote its row.
 */
export interface SideRows {
  /** The action as it is after the change. */
  readonly after: Action;
  readonly at: Date;
  readonly happenings: readonly Happening[];
  readonly outbox: readonly OutboxRow[];
}

/** A condition on the row of the action, and its arguments. */
export interface Guard {
  readonly sql: string;
  readonly args: readonly SqlValue[];
}

/** True while the action has the revision that the change was decided on. */
export function unchanged(id: string, revision: number): Guard {
  return { sql: "EXISTS (SELECT 1 FROM actions WHERE id = ? AND revision = ?)", args: [id, revision] };
}

export function sideRows({ after, at, happenings, outbox }: SideRows, guard: Guard): readonly Statement[] {
  return [
    ...happenings.map((happening) => timelineRow(after, at, happening, guard)),
    ...outbox.map((row) => outboxRow(after, at, row, guard)),
  ];
}

const INSERT_TIMELINE = textOnce(
  (guard) => `INSERT INTO timeline (action_id, account_id, at, run, revision, type, status, detail)
    SELECT ?, ?, ?, ?, ?, ?, ?, ? WHERE ${guard}`,
);

function timelineRow(after: Action, at: Date, { type, ...detail }: Happening, guard: Guard): Statement {
  return {
    sql: INSERT_TIMELINE(guard.sql),
    args: [
      after.id,
      after.accountId,
      at.getTime(),
      after.run,
      after.revision,
      type,
      after.status,
      JSON.stringify(detail),
      ...guard.args,
    ],
  };
}

function outboxRow(after: Action, at: Date, { id, owed, payload }: OutboxRow, guard: Guard): Statement {
  return {
    sql: `INSERT INTO outbox
      (id, action_id, account_id, run, revision, kind, event, target, payload, status, attempts, due_at, created_at)
      SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', 0, ?, ? WHERE ${guard.sql}`,
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
      ...guard.args,
    ],
  };
}
