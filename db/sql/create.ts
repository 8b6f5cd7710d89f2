import { sql } from "drizzle-orm";
import type { Action } from "../../src/core/action.ts";
import { startAttempt } from "../../src/core/settle.ts";
import { isTooLate, type TimelineEvent } from "../../src/core/timeline.ts";
import { mayRepeat } from "../../src/core/rejections.ts";
import { DECIDE_TRIES_MAX, HELD_PER_KEY_MAX } from "../../src/core/limits.ts";
import { type Created, type Creation, type OutboxRow, StoreUnavailable } from "../../src/core/store.ts";
import { askOf } from "../../src/core/channel.ts";
import type { StoreContext } from "./context.ts";
import { always, hasHeldRoom, itemsOf, placeIn } from "./dialect.ts";
import { hasBudget, hasBudgetLeft, spendBudget } from "./key-days.ts";
import { bindKey, keyHolder, isFree, keysOf, take, windowStart } from "./keys.ts";
import { countHeld } from "./held-counts.ts";
import { budgetLock, heldLock, keyLock, pauseLocks, rejectionLock } from "./locks.ts";
import { isPaused } from "./pauses.ts";
import {
  allOf,
  type Args,
  bareNames,
  changed,
  insertWhere,
  prepare,
  prepareEach,
  prepareVariants,
  typed,
  valuesOf,
} from "./query.ts";
import { createRejectionStore, mayRepeatWhere, rejectionRows, repeatArgs, type RepeatName } from "./approvals.ts";
import { COLUMNS_BUT_RESULT, rowTypeOf, scheduledAtOf, storedValues } from "./rows.ts";
import { actionMetadata, actions, outbox, timeline } from "../libsql/schema.ts";
import type { Lock, Statement } from "./sql.ts";

const { lateResult: _, ...FIRST_COLUMNS } = COLUMNS_BUT_RESULT;

type ActionColumn = keyof typeof FIRST_COLUMNS | "scheduledAt" | "claimedBy";

// Safe: an object's own keys.
const COLUMNS = [...Object.keys(FIRST_COLUMNS), "scheduledAt", "claimedBy"] as ActionColumn[];

/** Columns that few creates set: the statement of the others has no arguments for them. */
const RARE = ["title", "extras", "expiresAt"] as const satisfies readonly ActionColumn[];

const USUAL = COLUMNS.filter((name) => !RARE.some((rare) => rare === name));

/** The conditions of a create, of which each has only those that it needs: the others would cost a tenth of the insert. */
const CONDITIONS = {
  /** Where other processes create too, memory does not know how many are held. */
  held: (arg: InsertArgs) => hasHeldRoom(arg.accountId, arg.keyId),
  repeat: mayRepeatWhere,
  idempotency: (arg: InsertArgs) => isFree("idempotency", arg.idempotencyKey, arg),
  dedupe: (arg: InsertArgs) => isFree("dedupe", arg.dedupe, arg),
  budget: (arg: InsertArgs) => hasBudget(arg.keyId, arg),
  /** An action that is claimed at create must not be paused. */
  claim: (arg: InsertArgs) => sql`not ${isPaused(arg)}`,
};

type InsertArgs = Args<ActionColumn | RepeatName | "windowStart" | "budgetDay" | "budgetLimit">;

/** What most creates leave out, or what their first state has not, and words of few values. */
const IN_TEXT = {
  whileNull: [
    ...(["dedupe", "idempotencyKey", "callback", "notifyEmail", "sealedHeaders", "body", "claimedBy"] as const),
    ...(["dueAt", "leaseUntil", "startedAt", "finishedAt", "approvedAt", "approvedBy", "approvedDigest"] as const),
  ],
  always: ["status", "method", "onUnknown", "keyRole", "keyHold"],
} as const;

/** `conditions` are names of `CONDITIONS`, and `rare` for a create that sets a rare column. */
const insertWith = prepareEach((conditions: string) =>
  prepareVariants(IN_TEXT, (arg: InsertArgs) => {
    const needed = Object.entries(CONDITIONS).filter(([name]) => conditions.includes(name));
    return insertWhere(
      actions,
      allOf(always, ...needed.map(([, condition]) => condition(arg))),
      valuesOf(arg, conditions.includes("rare") ? COLUMNS : USUAL),
    );
  }),
);

/**
 * Inserts an action unless one of its keys names a live one, or its key has too many held actions. The condition is
 * part of the statement, so of a hundred racing creates, in one commit or in many, the first inserts and the others
 * read its row. An idempotency key whose create matched by `dedupe` is stored in the same commit, so that its repeat
 * finds the same action even after that has failed.
 */
export async function createAction(db: StoreContext, creation: Creation): Promise<Created> {
  const { action, claim, rejection } = creation;
  const { writer, heldCounts, written } = db;
  const bound = bindKey(action, action.createdAt);
  const bindings = bound === null ? [] : [bound];
  let isBound = false;
  const locks = locksOf(creation);
  const write = async (rows: readonly Statement[]) => {
    const done = await writer.write([...rows, ...bindings], locks);
    isBound = bound !== null && done.at(-1)?.changes === 1;
    return done[0]?.changes === 1;
  };
  for (let tries = 0; tries < DECIDE_TRIES_MAX; tries += 1) {
    // If nothing was inserted although the keys are free, the action is paused now.
    const claimed = claim === null || tries > 0 ? null : startAttempt(action, claim);
    const insert = () => write(statements(db, creation, claimed));
    const isCounted = action.status === "awaiting_approval" && heldCounts !== null;
    const isInserted = isCounted ? await heldCounts.insert(action, insert) : await insert();
    if (isInserted === true) {
      if (claimed === null) written.keep(action);
      return { kind: "created", claimed };
    }
    // Too many are held; the repeat of an older create must still match, and be remembered.
    if (isInserted === null && bound !== null) await write([]);
    for (const key of keysOf(action)) {
      const holder = await keyHolder(db, key, action.createdAt);
      if (holder !== null) return { kind: "matched", by: isBound ? "dedupe" : key.kind, action: holder };
    }
    if (isInserted === null) return { kind: "too_many_held" };
    if (rejection !== null && rejection !== undefined) {
      const { digest, reason } = rejection;
      const rejections = await createRejectionStore(db).count({ ...action, digest }, action.createdAt);
      if (!mayRepeat(rejections, reason)) return { kind: "rejected_before", rejections };
    }
    if (creation.budget !== undefined) {
      const hasLeft = await hasBudgetLeft(db.sql, { keyId: action.keyId, ...creation.budget });
      if (!hasLeft) return { kind: "budget_spent" };
    }
    if (heldCounts === null && action.status === "awaiting_approval" && (await isFull(db, action))) {
      return { kind: "too_many_held" };
    }
    // It is paused, or the matching action failed between the two reads and its key is free again.
  }
  throw new StoreUnavailable("The keys of this create change hands too fast.");
}

/** What the conditions of a create look at. */
function locksOf({ action, claim, rejection, budget }: Creation): readonly Lock[] {
  const { accountId, keyId } = action;
  return [
    ...keysOf(action).map(({ kind, key }) => keyLock(accountId, kind, key)),
    ...(action.status === "awaiting_approval" ? [heldLock(accountId, keyId)] : []),
    ...(rejection === null || rejection === undefined ? [] : [rejectionLock(accountId, keyId)]),
    ...(budget === undefined ? [] : [budgetLock(keyId)]),
    ...(claim === null ? [] : pauseLocks([accountId])),
  ];
}

async function isFull({ sql: reader }: StoreContext, { accountId, keyId }: Action): Promise<boolean> {
  return (await countHeld(reader, accountId, keyId)) >= HELD_PER_KEY_MAX;
}

/** An action that is claimed at create is inserted in its claimed state; its timeline has both events. */
function statements(
  { seal, heldCounts }: Pick<StoreContext, "seal" | "heldCounts">,
  creation: Creation,
  claimed: Action | null,
): readonly Statement[] {
  const { action, events, outbox: notifications, claim, rejection, budget } = creation;
  const at = action.createdAt;
  const repeat = repeatArgs(rejection, at);
  const conditions = [
    repeat.digest === null ? "" : "repeat",
    ...keysOf(action).map(({ kind }) => kind),
    budget === undefined ? "" : "budget",
    claimed === null ? "" : "claim",
    action.status === "awaiting_approval" && heldCounts === null ? "held" : "",
  ];
  const values = storedValues(action, seal);
  const { metadata } = action.extras;
  if (action.title !== null || values.extras !== null || action.expiresAt !== null) conditions.push("rare");
  const insert = insertWith(conditions.join(" ")).bind({
    ...(claimed ?? action),
    ...values,
    ...repeat,
    scheduledAt: scheduledAtOf(action, at),
    claimedBy: claimed === null ? null : (claim?.by ?? ""),
    windowStart: windowStart(at),
    budgetDay: budget?.day ?? null,
    budgetLimit: budget?.limit ?? null,
  });
  const spent = budget === undefined ? [] : [spendBudget({ keyId: action.keyId, ...budget })];
  const rows = sideRows({ after: action, at, events, outbox: notifications, claimed });
  return [
    insert,
    ...spent,
    ...(metadata === undefined ? [] : [metadataRows(action, metadata)]),
    ...keysOf(action).map((key) => take(key, action)),
    ...rows,
    ...rejectionRows(action, rejection, at),
  ];
}

const DESCRIBE = prepare((arg: Args<"id" | "accountId" | "pairs">) => {
  const { actionId, accountId, name, value } = actionMetadata;
  return sql`insert into ${actionMetadata} (${bareNames(actionId, accountId, name, value)})
    select ${typed(arg.id, actionId)}, ${typed(arg.accountId, accountId)}, ${placeIn(0)}, ${placeIn(1)}
    from ${itemsOf(arg.pairs)} where ${changed}`;
});

function metadataRows({ id, accountId }: Action, metadata: Readonly<Record<string, string>>): Statement {
  return DESCRIBE.bind({ id, accountId, pairs: JSON.stringify(Object.entries(metadata)) });
}

/** The timeline and outbox rows of a change. */
interface SideRows {
  /** The action as it is after the change. */
  readonly after: Action;
  readonly at: Date;
  readonly events: readonly TimelineEvent[];
  readonly outbox: readonly OutboxRow[];
  /** The action as a claim in the same commit leaves it: its first two changes are one commit. */
  readonly claimed?: Action | null;
}

/** The statements that must directly follow the one that writes the action's row: they write only where it did. */
export function sideRows({ after, at, events, outbox: notifications, claimed = null }: SideRows): readonly Statement[] {
  const [first] = events;
  if (first?.type === "attempt" && isTooLate(first)) {
    return [lateRow(after, at, first), ...notifications.map((row) => outboxRow(after, at, row))];
  }
  const changes = events.map((event) => eventValues(after, at, event));
  if (claimed !== null) changes.push(eventValues(claimed, claimed.startedAt ?? at, { type: "started" }));
  const asks = notifications.filter(({ message }) => askOf(message.event) !== null);
  const others = asks.length === 0 ? notifications : notifications.filter((row) => !asks.includes(row));
  return [
    ...timelineRows(changes),
    ...others.map((row) => outboxRow(after, at, row)),
    ...(asks.length === 0 ? [] : [askRows(after, at, asks)]),
  ];
}

const EVENT = ["actionId", "accountId", "at", "run", "revision", "type", "status", "detail"] as const;

type EventValues = ReturnType<typeof eventValues>;

function eventValues({ id, accountId, run, revision, status }: Action, at: Date, event: TimelineEvent) {
  const { type: _type, ...detail } = event;
  const values = { actionId: id, accountId, at, run, revision, status, detail: JSON.stringify(detail) };
  return { ...values, type: rowTypeOf(event) };
}

const LATE_EVENT = prepare((arg: Args<(typeof EVENT)[number] | "subject">) =>
  insertWhere(timeline, changed, valuesOf(arg, [...EVENT, "subject"])),
);

/** It may add nothing to the revision, so its attempt tells it from the others of that revision. */
function lateRow(after: Action, at: Date, event: Extract<TimelineEvent, { readonly type: "attempt" }>): Statement {
  const run = event.run ?? after.run;
  return LATE_EVENT.bind({ ...eventValues(after, at, event), run, subject: `${run}:${event.attempt}` });
}

const ONE_EVENT = prepareVariants({ whileNull: [], always: ["type", "status"] }, (arg: Args<(typeof EVENT)[number]>) =>
  insertWhere(timeline, changed, valuesOf(arg, EVENT)),
);

/** `changes()` is the same for both rows, since they are one statement. */
const TWO_EVENTS = prepareVariants(
  { whileNull: [], always: ["type", "status", "nextType", "nextStatus"] },
  (arg: Args<(typeof EVENT)[number] | "nextAt" | "nextRevision" | "nextType" | "nextStatus" | "nextDetail">) => {
    const first = valuesOf(arg, EVENT);
    const next = { at: arg.nextAt, revision: arg.nextRevision, type: arg.nextType, status: arg.nextStatus };
    return insertWhere(timeline, changed, first, { ...first, ...next, detail: arg.nextDetail });
  },
);

/** A commit has at most two events. */
function timelineRows([first, next, ...more]: readonly EventValues[]): readonly Statement[] {
  if (more.length > 0) throw new Error("A change has at most two events.");
  if (first === undefined) return [];
  if (next === undefined) return [ONE_EVENT.bind(first)];
  const { at: nextAt, revision: nextRevision, type: nextType, status: nextStatus, detail: nextDetail } = next;
  return [TWO_EVENTS.bind({ ...first, nextAt, nextRevision, nextType, nextStatus, nextDetail })];
}

const NOTIFICATION = [
  "id",
  "accountId",
  "run",
  "revision",
  "kind",
  "event",
  "target",
  "host",
  "payload",
  "keyId",
] as const;

const NOTIFY = prepare((arg: Args<(typeof NOTIFICATION)[number] | "actionId" | "at" | "dueAt">) =>
  insertWhere(outbox, changed, {
    ...valuesOf(arg, NOTIFICATION),
    actionId: arg.actionId,
    status: "pending",
    attempts: 0,
    dueAt: arg.dueAt,
    scheduledAt: arg.at,
    createdAt: arg.at,
  }),
);

function outboxRow({ id: actionId, accountId, run, revision, keyId }: Action, at: Date, row: OutboxRow): Statement {
  const { id, message, host, payload, dueAt = at } = row;
  return NOTIFY.bind({ ...message, id, host, payload, actionId, accountId, run, revision, keyId, at, dueAt });
}

type AskName = "actionId" | "accountId" | "run" | "revision" | "keyId" | "at" | "rows";

/** One statement however many channels and addresses there are: a chain of hundreds would be one query of PostgreSQL. */
const NOTIFY_CHANNELS = prepare((arg: Args<AskName>) => {
  const { id, kind, event, target, host, dueAt, actionId, accountId, run, revision, keyId } = outbox;
  const { status, attempts, scheduledAt, createdAt } = outbox;
  const own = [id, kind, event, target, host, dueAt];
  const columns = bareNames(
    ...own,
    actionId,
    accountId,
    run,
    revision,
    keyId,
    status,
    attempts,
    scheduledAt,
    createdAt,
  );
  return sql`insert into ${outbox} (${columns})
    select ${placeIn(0)}, ${placeIn(1)}, ${placeIn(2)}, ${placeIn(3)}, ${placeIn(4)}, ${typed(placeIn(5), dueAt)},
      ${typed(arg.actionId, actionId)}, ${typed(arg.accountId, accountId)}, ${typed(arg.run, run)},
      ${typed(arg.revision, revision)}, ${typed(arg.keyId, keyId)}, 'pending', 0, ${typed(arg.at, scheduledAt)},
      ${typed(arg.at, createdAt)}
    from ${itemsOf(arg.rows)} where ${changed}`;
});

function askRows(action: Action, at: Date, asks: readonly OutboxRow[]): Statement {
  const { id: actionId, accountId, run, revision, keyId } = action;
  const rows = asks.map(({ id, message, host, dueAt = at }) => {
    const { kind, event, target } = message;
    return [id, kind, event, target, host, dueAt.getTime()];
  });
  return NOTIFY_CHANNELS.bind({ actionId, accountId, run, revision, keyId, at, rows: JSON.stringify(rows) });
}
