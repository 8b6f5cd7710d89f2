import { and, eq, gt, gte, inArray, type SQL, sql } from "drizzle-orm";
import { type Action, lateResultText } from "../../src/core/action.ts";
import type { Change } from "../../src/core/changes.ts";
import { isTooLate } from "../../src/core/timeline.ts";
import { CLOCK_TOLERANCE_MS } from "../../src/core/limits.ts";
import type { NotificationKind } from "../../src/core/notification.ts";
import { type ChangeWrite, RowRefused, type SetBack } from "../../src/core/store.ts";
import { keepResponse } from "./attempts.ts";
import { auditChange } from "./audit.ts";
import type { StoreContext } from "./context.ts";
import { always, isNoRevision, isSafeInteger, largerOf, smallerOf } from "./dialect.ts";
import { sideRows } from "./create.ts";
import { isConstraint } from "./errors.ts";
import { hasBudget, spendBudget } from "./key-days.ts";
import { budgetLock, keyLock, rejectionLock } from "./locks.ts";
import { isFree, isHeldBy, take, windowStart } from "./keys.ts";
import { allOf, type Args, prepare, prepareEach, prepareVariants, query, valuesOf } from "./query.ts";
import { mayRepeatWhere, rejectionRows, repeatArgs, type RepeatName } from "./approvals.ts";
import { RESULT, resultValues, rowTypeOf, scheduledAtOf, STATE } from "./rows.ts";
import { actions, outbox, timeline } from "../libsql/schema.ts";
import type { Lock, Statement } from "./sql.ts";
import type { Writer } from "./writer.ts";

const UPDATED = [...STATE, "scheduledAt"] as const;

type Updated = (typeof UPDATED)[number];
type ResultName = (typeof RESULT)[number];
type GuardName = RepeatName | "id" | "expected" | "retaken" | "windowStart" | "budgetKey" | "budgetDay" | "budgetLimit";

/** What a change must not break: of `repeat`, `retake` and `budget` only what it does, as the others would cost time. */
function isAllowed(guards: string, arg: Args<GuardName>): SQL {
  const isOurs = sql`(${isFree("dedupe", arg.retaken, arg)} or ${isHeldBy("dedupe", arg.retaken, arg)})`;
  return allOf(
    always,
    ...(guards.includes("repeat") ? [mayRepeatWhere(arg)] : []),
    ...(guards.includes("retake") ? [isOurs] : []),
    ...(guards.includes("budget") ? [hasBudget(arg.budgetKey, arg)] : []),
  );
}

const STATE_IN_TEXT = {
  whileNull: ["dueAt", "leaseUntil", "startedAt", "finishedAt", "approvedAt", "approvedBy", "approvedDigest"],
  always: ["status"],
} as const;

const ALL_IN_TEXT = {
  whileNull: [
    ...STATE_IN_TEXT.whileNull,
    "lastError",
    "errorSource",
    "responseCode",
    "responseBody",
    "responseHeaders",
  ],
  always: STATE_IN_TEXT.always,
} as const;

const updateWith = prepareEach((guards: string) => {
  const isExpected = (arg: Args<GuardName>) => and(eq(actions.id, arg.id), isAllowed(guards, arg));
  return {
    state: prepareVariants(STATE_IN_TEXT, (arg: Args<Updated | GuardName>) =>
      query
        .update(actions)
        .set(valuesOf(arg, UPDATED))
        .where(and(eq(actions.revision, arg.expected), isExpected(arg))),
    ),
    all: prepareVariants(ALL_IN_TEXT, (arg: Args<Updated | ResultName | GuardName>) =>
      query
        .update(actions)
        .set(valuesOf<Updated | ResultName>(arg, [...UPDATED, ...RESULT]))
        .where(and(eq(actions.revision, arg.expected), isExpected(arg))),
    ),
    /** Few actions ever have a late result: the others don't write its column. */
    late: prepareVariants(ALL_IN_TEXT, (arg: Args<Updated | ResultName | GuardName | "lateResult">) =>
      query
        .update(actions)
        .set(valuesOf<Updated | ResultName | "lateResult">(arg, [...UPDATED, ...RESULT, "lateResult"]))
        .where(and(eq(actions.revision, arg.expected), isExpected(arg))),
    ),
  };
});

/** Writes a change with its other rows if the action still has the revision it was decided on; returns whether. */
export async function applyChange(db: StoreContext, write: ChangeWrite): Promise<boolean> {
  const { before, after, events } = write.change;
  const isNote = after.revision === before.revision && events.some(isTooLate);
  try {
    return await isWritten(db, write.change, statements(write), locksOf(write));
  } catch (error) {
    // It adds a row of the timeline, and nothing else that could be refused: that one is there already.
    if (error instanceof RowRefused && isNote) {
      db.refused.delete(after.id);
      return true;
    }
    throw error;
  }
}

function statements({
  change,
  at,
  outbox: notifications,
  audit,
  rejection,
  budget,
}: ChangeWrite): readonly Statement[] {
  const { before, after, events } = change;
  const retaken = retakenKey(before, after);
  const repeat = repeatArgs(rejection, at);
  const { keep, trim } = keepResponse(change);
  const guards = [
    repeat.digest === null ? "" : "repeat",
    retaken === null ? "" : "retake",
    budget === undefined ? "" : "budget",
  ];
  const update = updateWith(guards.join(" "));
  const values = {
    ...after,
    ...repeat,
    scheduledAt: scheduledAtOf(after, at),
    expected: before.revision,
    retaken,
    windowStart: windowStart(at),
    budgetKey: budget?.keyId ?? null,
    budgetDay: budget?.day ?? null,
    budgetLimit: budget?.limit ?? null,
  };
  const updated = () => {
    const result = resultValues(after.result);
    if (after.lateResult !== before.lateResult) {
      return update.late.bind({ ...values, ...result, lateResult: lateResultText(after.lateResult) });
    }
    // An unchanged result is not written again: it may be a quarter of a megabyte.
    return after.result === before.result ? update.state.bind(values) : update.all.bind({ ...values, ...result });
  };
  return [
    updated(),
    ...(budget === undefined ? [] : [spendBudget(budget)]),
    ...(retaken === null ? [] : [take({ accountId: after.accountId, kind: "dedupe", key: retaken }, before)]),
    ...sideRows({ after, at, events, outbox: notifications }),
    ...keep,
    ...auditChange(audit),
    ...rejectionRows(after, rejection, at),
    ...trim,
  ];
}

/** What the conditions of a change look at. */
function locksOf({ change: { before, after }, rejection, budget }: ChangeWrite): readonly Lock[] {
  const { accountId, keyId } = after;
  const retaken = retakenKey(before, after);
  return [
    ...(retaken === null ? [] : [keyLock(accountId, "dedupe", retaken)]),
    ...(rejection === null || rejection === undefined ? [] : [rejectionLock(accountId, keyId)]),
    ...(budget === undefined ? [] : [budgetLock(budget.keyId)]),
  ];
}

/** A new run makes its dedupe key name the action again, unless the key names another live action. */
function retakenKey(before: Action, after: Action): string | null {
  return after.run === before.run ? null : after.dedupe;
}

const NEWEST_REVISION = prepare((arg: Args<"id">) =>
  query
    .select({ revision: sql<number | null>`max(${timeline.revision})`.as("revision") })
    .from(timeline)
    .where(sql`${timeline.actionId} = ${arg.id} and ${isSafeInteger(timeline.revision)}`),
);

type Forced = Updated | ResultName | "retries" | "lateResult";

const FORCE = prepare((arg: Args<Forced | "id" | "expected" | "expectedStatus">) => {
  const { revision } = actions;
  const isExpected = sql`(${revision} = ${arg.expected} or ${isNoRevision(revision)})`;
  return query
    .update(actions)
    .set(valuesOf<Forced>(arg, [...UPDATED, ...RESULT, "retries", "lateResult"]))
    .where(and(eq(actions.id, arg.id), eq(actions.status, arg.expectedStatus), isExpected));
});

/**
 * Writes the whole state over a row whose own values can't be trusted. The new revision is higher than any in the
 * timeline, since the stored one may have been set back or is not a number.
 */
export async function forceChange(db: StoreContext, write: ChangeWrite): Promise<boolean> {
  const { change, at, outbox: notifications, audit } = write;
  const { before, events } = change;
  const [newest] = await NEWEST_REVISION.read(db.sql, { id: before.id });
  const after = { ...change.after, revision: Math.max(before.revision, newest?.revision ?? 0) + 1 };
  const expected = { id: before.id, expected: before.revision, expectedStatus: before.status };
  const forced = FORCE.bind({
    ...after,
    ...resultValues(after.result),
    lateResult: lateResultText(after.lateResult),
    scheduledAt: scheduledAtOf(after, at),
    ...expected,
  });
  const { keep } = keepResponse({ ...change, after });
  const side = [...sideRows({ after, at, events, outbox: notifications }), ...keep, ...auditChange(audit)];
  const isForced = await isWritten(db, { before, after }, [forced, ...side]);
  if (isForced) db.refused.delete(before.id);
  return isForced;
}

const APPLIED = prepare((arg: Args<"id" | "from" | "type" | "at" | "detail">) => {
  const isAfter = and(eq(timeline.actionId, arg.id), gte(timeline.revision, arg.from));
  const isEvent = and(eq(timeline.type, arg.type), eq(timeline.at, arg.at), eq(timeline.detail, arg.detail));
  return query.select({ seq: timeline.seq }).from(timeline).where(and(isAfter, isEvent));
});

/** Known by the timeline row that only this change can have written. */
export async function isApplied(db: Pick<StoreContext, "sql">, { change, at }: ChangeWrite): Promise<boolean> {
  const { after, events } = change;
  const [first] = events;
  if (first === undefined) return false;
  const { type: _, ...detail } = first;
  const event = { type: rowTypeOf(first), at, detail: JSON.stringify(detail) };
  return (await APPLIED.read(db.sql, { id: after.id, from: after.revision, ...event })).length > 0;
}

async function isWritten(
  { writer, refused, heldCounts, written }: StoreContext,
  { before, after }: Pick<Change, "before" | "after">,
  rows: readonly Statement[],
  locks: readonly Lock[] = [],
): Promise<boolean> {
  try {
    const [updated] = await writer.write(rows, locks);
    if (updated?.changes !== 1) return false;
    written.keep(after);
    heldCounts?.changed(before, after);
    return true;
  } catch (cause) {
    if (!isConstraint(cause)) throw cause;
    refused.add(after.id);
    throw new RowRefused(after.id, { cause });
  }
}

const EXTEND = prepare((arg: Args<"id" | "revision" | "leaseUntil">) =>
  query
    .update(actions)
    .set({ leaseUntil: sql`${arg.leaseUntil}` })
    .where(and(eq(actions.id, arg.id), eq(actions.revision, arg.revision), eq(actions.status, "active"))),
);

/** See `ActionStore.extendLease`. */
export async function extendLease(writer: Writer, { id, revision }: Action, leaseUntil: Date): Promise<boolean> {
  return (await countWritten(writer, EXTEND.bind({ id, revision, leaseUntil }))) === 1;
}

type RescheduleName = "now" | "by" | "after" | "limit";

/**
 * A row that was scheduled in the future was scheduled before the clock was set back. It becomes due earlier by as
 * much, but never before now, and never later than its original delay.
 */
function earlier(
  { dueAt, scheduledAt }: Pick<typeof actions | typeof outbox, "dueAt" | "scheduledAt">,
  arg: Args<RescheduleName>,
) {
  const delayed = sql`${arg.now} + ${dueAt} - ${scheduledAt}`;
  return {
    dueAt: largerOf(sql`${arg.now}`, smallerOf(sql`${dueAt} - ${arg.by}`, delayed)),
    scheduledAt: sql`${arg.now}`,
  };
}

const RESCHEDULE = prepare((arg: Args<RescheduleName>) => {
  const late = query.select({ id: actions.id }).from(actions);
  const ids = late.where(and(eq(actions.status, "pending"), gt(actions.scheduledAt, arg.after))).limit(arg.limit);
  return query
    .update(actions)
    .set(earlier(actions, arg))
    .where(and(eq(actions.status, "pending"), inArray(actions.id, ids)));
});

const RESCHEDULE_OUTBOX = prepare((arg: Args<RescheduleName | "kind">) => {
  const isPending = eq(outbox.status, "pending");
  const late = query.select({ id: outbox.id }).from(outbox);
  const ids = late.where(and(isPending, eq(outbox.kind, arg.kind), gt(outbox.scheduledAt, arg.after))).limit(arg.limit);
  return query
    .update(outbox)
    .set(earlier(outbox, arg))
    .where(and(isPending, inArray(outbox.id, ids)));
});

export function rescheduleActions(writer: Writer, setBack: SetBack, limit: number): Promise<number> {
  return countWritten(writer, RESCHEDULE.bind({ ...setBackArgs(setBack), limit }));
}

export function rescheduleNotifications(
  writer: Writer,
  kind: NotificationKind,
  setBack: SetBack,
  limit: number,
): Promise<number> {
  return countWritten(writer, RESCHEDULE_OUTBOX.bind({ ...setBackArgs(setBack), limit, kind }));
}

function setBackArgs({ now, byMs }: SetBack) {
  // Unknown amount: tolerate a clock that was corrected a little.
  return { now, by: byMs, after: now.getTime() + (byMs === 0 ? CLOCK_TOLERANCE_MS : 0) };
}

async function countWritten(writer: Writer, statement: Statement): Promise<number> {
  const [done] = await writer.write([statement]);
  return done?.changes ?? 0;
}
