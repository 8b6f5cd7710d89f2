import type { Action } from "../../src/domain/action.ts";
import type { TimelineEvent } from "../../src/domain/timeline.ts";
import type { OutboxRow } from "../../src/ports/store.ts";
import { CHANGED } from "./guard.ts";
import type { SqlValue, Statement } from "./sql.ts";

/** The timeline and outbox rows of a change. */
export interface SideRows {
  /** The action as it is after the change. */
  readonly after: Action;
  readonly at: Date;
  readonly events: readonly TimelineEvent[];
  readonly outbox: readonly OutboxRow[];
}

/** The statements that must follow, at once, the one that writes the row of the action: they write only where it did. */
export function sideRows({ after, at, events, outbox }: SideRows): readonly Statement[] {
  const told = timelineRows(events.map((event) => ({ after, at, event })));
  return outbox.length === 0 ? told : [...told, ...outbox.map((row) => outboxRow(after, at, row))];
}

/** The same for an action that is claimed as it is created: its first two changes are one commit. */
export function claimedSideRows(created: SideRows, claimed: Action): readonly Statement[] {
  const { after, at, events, outbox } = created;
  const told = timelineRows([
    ...events.map((event) => ({ after, at, event })),
    { after: claimed, at: claimed.startedAt ?? at, event: { type: "started" } },
  ]);
  return [...told, ...outbox.map((row) => outboxRow(after, at, row))];
}

interface Told {
  readonly after: Action;
  readonly at: Date;
  readonly event: TimelineEvent;
}

const TIMELINE = "INSERT INTO timeline (action_id, account_id, at, run, revision, type, status, detail)";
const TIMELINE_ROW = `SELECT ?, ?, ?, ?, ?, ?, ?, ? WHERE ${CHANGED.sql}`;
const ONE_ROW = `${TIMELINE} ${TIMELINE_ROW}`;
const TWO_ROWS = `${ONE_ROW} UNION ALL ${TIMELINE_ROW}`;

/** No commit tells more than two things; `changes()` is the same for both rows, since they are one statement. */
function timelineRows(told: readonly Told[]): readonly Statement[] {
  if (told.length === 0) return [];
  if (told.length > 2) throw new Error("A change tells two things at most.");
  const args = told.flatMap(({ after, at, event: { type, ...detail } }): readonly SqlValue[] => [
    after.id,
    after.accountId,
    at.getTime(),
    after.run,
    after.revision,
    type,
    after.status,
    JSON.stringify(detail),
  ]);
  return [{ sql: told.length === 1 ? ONE_ROW : TWO_ROWS, args }];
}

const OUTBOX_ROW = `INSERT INTO outbox
  (id, action_id, account_id, run, revision, kind, event, target, host, payload, due_at, scheduled_at, created_at,
    key_id, status, attempts)
  SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', 0 WHERE ${CHANGED.sql}`;

function outboxRow(after: Action, at: Date, { id, message, host, payload }: OutboxRow): Statement {
  return {
    sql: OUTBOX_ROW,
    args: [
      id,
      after.id,
      after.accountId,
      after.run,
      after.revision,
      message.kind,
      message.event,
      message.target,
      host,
      payload,
      at.getTime(),
      at.getTime(),
      at.getTime(),
      after.keyId,
    ],
  };
}
