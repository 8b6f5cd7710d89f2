import type { Action } from "../../src/actions/action.ts";
import { startAttempt } from "../../src/actions/settle.ts";
import { DECIDE_TRIES_MAX } from "../../src/config/limits.ts";
import { mayRepeat } from "../../src/approvals/rejections.ts";
import { type Created, type Creation, StoreUnavailable, type OutboxRow } from "../store.ts";
import { holderOf, bind, free, keysOf, take } from "./find.ts";
import { allOf, type Statement, textOnce, CHANGED, type SqlValue } from "./sql.ts";
import type { StoreContext } from "./context.ts";
import { unpaused } from "./pauses.ts";
import { createRejectionStore, mayAsk, rejectionRows } from "./rejections.ts";
import { type HeaderSeal, REQUEST_COLUMNS, requestValues, STATE_COLUMNS, stateValues } from "./rows.ts";
import type { TimelineEvent } from "../../src/actions/timeline.ts";

const COLUMNS = [...REQUEST_COLUMNS, ...STATE_COLUMNS, "scheduled_at"];

const INSERT = textOnce(
  (guard) => `INSERT INTO actions (${COLUMNS.join(", ")}) SELECT ${COLUMNS.map(() => "?").join(", ")} WHERE ${guard}`,
);

/**
 * Inserts an action unless one of its keys names a live one, or its key has too many held actions. The condition is
 * part of the statement, so of a hundred racing creates, in one commit or in many, the first inserts and the others
 * read its row. An idempotency key whose create matched by `dedupe` is stored in the same commit, so that its repeat
 * finds the same action even after that has failed.
 */
export async function createAction(db: StoreContext, creation: Creation): Promise<Created> {
  const { action, claim, rejection } = creation;
  const { sql, writer, seal, recent, heldCounts } = db;
  const bound = bind(action, action.createdAt);
  const bindings = bound === null ? [] : [bound];
  let isBound = false;
  const write = async (written: readonly Statement[]) => {
    const done = await writer.write([...written, ...bindings]);
    isBound = bound !== null && done.at(-1)?.changes === 1;
    return done[0]?.changes === 1;
  };
  for (let tries = 0; tries < DECIDE_TRIES_MAX; tries += 1) {
    // If nothing was inserted although the keys are free, the action is paused now.
    const claimed = claim === null || tries > 0 ? null : startAttempt(action, claim);
    const insert = () => write(statements(creation, claimed, seal));
    const isInserted = action.status === "awaiting_approval" ? await heldCounts.insert(action, insert) : await insert();
    if (isInserted === true) {
      if (claimed === null) recent.keep(action);
      return { kind: "created", claimed };
    }
    // Too many are held; the repeat of an older create must still match, and be remembered.
    if (isInserted === null && bound !== null) await write([]);
    for (const { accountId, kind, key } of keysOf(action)) {
      const holder = await holderOf({ sql, seal }, { accountId, kind, key }, action.createdAt);
      if (holder !== null) return { kind: "matched", by: isBound ? "dedupe" : kind, action: holder };
    }
    if (isInserted === null) return { kind: "too_many_held" };
    if (rejection !== null && rejection !== undefined) {
      const { digest, reason } = rejection;
      const rejections = await createRejectionStore(db).count({ ...action, digest }, action.createdAt);
      if (!mayRepeat(rejections, reason)) return { kind: "rejected_before", rejections };
    }
    // It is paused, or the matching action failed between the two reads and its key is free again.
  }
  throw new StoreUnavailable("The keys of this create change hands too fast.");
}

/** An action that is claimed at create is inserted in its claimed state; its timeline has both events. */
function statements(creation: Creation, claimed: Action | null, seal: HeaderSeal): readonly Statement[] {
  const { action, events, outbox, rejection } = creation;
  const keys = keysOf(action);
  const isFree = keys.map((key) => free(key, action.createdAt));
  const isAllowed = mayAsk(action, rejection, action.createdAt);
  const guard = allOf([isAllowed, ...isFree, ...(claimed === null ? [] : [unpaused(action)])]);
  const insert = {
    sql: INSERT(guard.sql),
    args: [
      ...requestValues(action, seal),
      ...stateValues(claimed ?? action),
      action.createdAt.getTime(),
      ...guard.args,
    ],
  };
  const created = { after: action, at: action.createdAt, events, outbox };
  const side = claimed === null ? sideRows(created) : claimedSideRows(created, claimed);
  return [
    insert,
    ...keys.map((key) => take(key, action)),
    ...side,
    ...rejectionRows(action, rejection, action.createdAt),
  ];
}

/** The timeline and outbox rows of a change. */
interface SideRows {
  /** The action as it is after the change. */
  readonly after: Action;
  readonly at: Date;
  readonly events: readonly TimelineEvent[];
  readonly outbox: readonly OutboxRow[];
}

/** The statements that must directly follow the one that writes the action's row: they write only where it did. */
export function sideRows({ after, at, events, outbox }: SideRows): readonly Statement[] {
  const rows = timelineRows(events.map((event) => ({ after, at, event })));
  return outbox.length === 0 ? rows : [...rows, ...outbox.map((row) => outboxRow(after, at, row))];
}

/** The same for an action that is claimed at create: its first two changes are one commit. */
function claimedSideRows(created: SideRows, claimed: Action): readonly Statement[] {
  const { after, at, events, outbox } = created;
  const rows = timelineRows([
    ...events.map((event) => ({ after, at, event })),
    { after: claimed, at: claimed.startedAt ?? at, event: { type: "started" } },
  ]);
  return [...rows, ...outbox.map((row) => outboxRow(after, at, row))];
}

interface TimelineRow {
  readonly after: Action;
  readonly at: Date;
  readonly event: TimelineEvent;
}

const TIMELINE = "INSERT INTO timeline (action_id, account_id, at, run, revision, type, status, detail)";

const TIMELINE_ROW = `SELECT ?, ?, ?, ?, ?, ?, ?, ? WHERE ${CHANGED.sql}`;

const ONE_ROW = `${TIMELINE} ${TIMELINE_ROW}`;

const TWO_ROWS = `${ONE_ROW} UNION ALL ${TIMELINE_ROW}`;

/** A commit has at most two events. `changes()` is the same for both rows, since they are one statement. */
function timelineRows(rows: readonly TimelineRow[]): readonly Statement[] {
  if (rows.length === 0) return [];
  if (rows.length > 2) throw new Error("A change has at most two events.");
  const args = rows.flatMap(({ after, at, event: { type, ...detail } }): readonly SqlValue[] => [
    after.id,
    after.accountId,
    at.getTime(),
    after.run,
    after.revision,
    type,
    after.status,
    JSON.stringify(detail),
  ]);
  return [{ sql: rows.length === 1 ? ONE_ROW : TWO_ROWS, args }];
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
