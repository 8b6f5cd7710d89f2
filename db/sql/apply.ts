import { and, eq, gte } from "drizzle-orm";
import { type Action, lateResultText } from "../../src/core/action.ts";
import { mayHaveTooMany, responseToKeep } from "../../src/core/attempts.ts";
import { policyText } from "../../src/core/action-policy.ts";
import type { Change } from "../../src/core/changes.ts";
import { countedText, givesBack } from "../../src/core/rule-count.ts";
import type { Grant } from "../../src/core/grant.ts";
import type { ChangeWrite } from "../../src/core/store.ts";
import { isTooLate } from "../../src/core/timeline.ts";
import * as commands from "../commands/actions.ts";
import { type ActionChange, apply, KEPT_RESPONSE, WRITTEN } from "../commands/actions.ts";
import { GRANT, type NewGrant } from "../commands/grants.ts";
import { valuesOf } from "../commands/lists.ts";
import type { StoreContext } from "./context.ts";
import { auditRow, countedRequest, sideRows, windowStart } from "./create.ts";
import { isConstraint } from "./errors.ts";
import { read } from "./read.ts";
import { resultValues, rowTypeOf, scheduledAtOf } from "./rows.ts";
import type { Writer } from "./writer.ts";

/** Writes a change with its other rows if the action still has the revision it was decided on; returns whether. */
export async function applyChange(db: StoreContext, write: ChangeWrite): Promise<boolean> {
  const { before, after, events } = write.change;
  const isNote = after.revision === before.revision && events.some(isTooLate);
  try {
    if (!(await db.writer.run(apply, actionChange(write)))) return false;
  } catch (error) {
    // It adds a row of the timeline, and nothing else that could be refused: that one is there already.
    if (isNote && isConstraint(error)) return true;
    throw error;
  }
  db.written.keep(after);
  db.heldCounts?.changed(before, after);
  return true;
}

function actionChange({
  change,
  at,
  outbox: notifications,
  audit,
  rejection,
  budget,
  grant,
  counts = [],
}: ChangeWrite): ActionChange {
  const { before, after, events } = change;
  const { id, accountId, keyId, run } = after;
  const response = responseToKeep(change);
  // A new run makes its dedupe key name the action again.
  const retaken = after.run === before.run ? null : after.dedupe;
  return {
    id,
    accountId,
    keyId,
    run,
    at: at.getTime(),
    expected: before.revision,
    ...written(change, at),
    retaken: retaken === null ? null : { key: retaken, createdAt: before.createdAt.getTime() },
    windowStart: windowStart(at).getTime(),
    request: countedRequest(rejection, at),
    budget: budget ?? null,
    response: response === null ? null : valuesOf(KEPT_RESPONSE, { ...response, actionId: id }),
    trims: response !== null && mayHaveTooMany(response),
    audit: audit === undefined ? null : auditRow(audit),
    grant: grant === undefined || grant === null ? null : newGrant(grant),
    counts,
    givesBack: givesBack(change),
    ...sideRows({ after, at, events, outbox: notifications }),
  };
}

/** An unchanged result is not written again: it may be a quarter of a megabyte. Few actions ever have a late one. */
function written({ before, after }: Pick<Change, "before" | "after">, at: Date): Pick<ActionChange, "written" | "row"> {
  const place = [after.id, before.revision];
  const scheduledAt = scheduledAtOf(after, at);
  if (after.policy !== before.policy) {
    const values = { scheduledAt, policy: policyText(after.policy) };
    return { written: "policy", row: [...valuesOf(WRITTEN.policy, values, after), ...place] };
  }
  if (after.counted !== before.counted) {
    const values = { ...resultValues(after.result), scheduledAt, counted: countedText(after.counted) };
    return { written: "run", row: [...valuesOf(WRITTEN.run, values, after), ...place] };
  }
  if (after.result === before.result && after.lateResult === before.lateResult) {
    return { written: "state", row: [...valuesOf(WRITTEN.state, { scheduledAt }, after), ...place] };
  }
  const values = { ...resultValues(after.result), scheduledAt };
  if (after.lateResult === before.lateResult) {
    return { written: "result", row: [...valuesOf(WRITTEN.result, values, after), ...place] };
  }
  const lateResult = lateResultText(after.lateResult);
  return { written: "late", row: [...valuesOf(WRITTEN.late, { ...values, lateResult }, after), ...place] };
}

function newGrant({ vary, max, ...grant }: Grant): NewGrant {
  const row = valuesOf(GRANT, { ...grant, vary: JSON.stringify(vary), max: JSON.stringify(max) });
  return { row, version: crypto.randomUUID() };
}

const APPLIED = read(
  { id: "text", from: "number", type: "text", at: "time", detail: "text" },
  ({ db, tables: { timeline } }, arg) => {
    const isAfter = and(eq(timeline.actionId, arg.id), gte(timeline.revision, arg.from));
    const isEvent = and(eq(timeline.type, arg.type), eq(timeline.at, arg.at), eq(timeline.detail, arg.detail));
    return db.select({ seq: timeline.seq }).from(timeline).where(and(isAfter, isEvent));
  },
);

/** Known by the timeline row that only this change can have written. */
export async function isApplied(db: Pick<StoreContext, "sql">, { change, at }: ChangeWrite): Promise<boolean> {
  const { after, events } = change;
  const [first] = events;
  if (first === undefined) return false;
  const { type: _, ...detail } = first;
  const event = { type: rowTypeOf(first), at, detail: JSON.stringify(detail) };
  return (await APPLIED.get(db.sql, { id: after.id, from: after.revision, ...event })) !== null;
}

/** See `ActionStore.extendLease`. */
export function extendLease(writer: Writer, { id, revision }: Action, leaseUntil: Date): Promise<boolean> {
  return writer.run(commands.extendLease, { id, revision, leaseUntil: leaseUntil.getTime() });
}
