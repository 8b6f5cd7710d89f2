import { and, gte } from "drizzle-orm";
import { type Action, lateResultText } from "../../src/core/action.ts";
import type { AuditEntry } from "../../src/core/audit.ts";
import { atUse, type GrantUse } from "../../src/core/grant.ts";
import type { KeyKind } from "../../src/core/dedupe.ts";
import { DECIDE_TRIES_MAX } from "../../src/core/limits.ts";
import { startAttempt } from "../../src/core/settle.ts";
import {
  type ChangeWrite,
  type Created,
  type Creation,
  type OutboxRow,
  StoreUnavailable,
} from "../../src/core/store.ts";
import { isTooLate, type TimelineEvent } from "../../src/core/timeline.ts";
import { mayHaveTooMany, responseToKeep, type Change, givesBack } from "../../src/core/changes.ts";
import {
  ACTIONS,
  type ActionWrite,
  apply,
  AUDIT_ENTRIES,
  CLAIMED,
  createActions,
  EVENTS,
  type KeyName,
  type NewAction,
  NOTIFICATIONS,
  RESPONSES,
  type SideRows,
  UPDATES,
} from "../commands/actions.ts";
import { GRANTS, type UsedGrant } from "../commands/grants.ts";
import { type Values, valuesOf } from "../commands/lists.ts";
import { countRejections } from "../commands/key-limits.ts";
import { mayRepeat, saysWhy } from "../../src/core/rejections.ts";
import { findHolder } from "./find.ts";
import { hasRow, hasValues } from "./read.ts";
import { rowTypeOf, decidedTexts, scheduledAtOf, storedValues, type ActionAccess } from "./rows.ts";
import { isConstraint } from "./errors.ts";
import { askOf } from "../../src/core/notification-events.ts";
import { timeline } from "../tables.ts";

/** Creates an action, or returns the one that already has one of its keys. */
export async function createAction(db: ActionAccess, creation: Creation): Promise<Created> {
  const { action } = creation;
  const { writer, written } = db;
  const one = newAction(db, creation);
  for (let tries = 0; tries < DECIDE_TRIES_MAX; tries += 1) {
    const outcome = await writer.run(createActions, one);
    if (outcome.kind === "rejected_before") {
      const rejections = await countRejections(db.reader, { ...action, ...outcome.request }, action.createdAt);
      // Somebody has approved the request meanwhile, so create it after all.
      if (mayRepeat(rejections, saysWhy(outcome.request.reason))) continue;
      return { kind: "rejected_before", rejections };
    }
    if (outcome.kind === "created") {
      const { isClaimed, uses } = outcome;
      const calls = Number(creation.grant?.audit.detail["calls"]);
      const policy = uses === null || action.policy === null ? action.policy : atUse(action.policy, uses, calls);
      const stored = policy === action.policy ? action : { ...action, policy };
      const claimed = isClaimed && creation.claim !== null ? startAttempt(stored, creation.claim) : null;
      if (claimed === null) written.keep(stored);
      return { kind: "created", claimed, ...(uses !== null && { policy }) };
    }
    if (outcome.kind !== "matched") return outcome;
    const { by, id } = outcome;
    const holder = await findHolder(db, id);
    if (holder === "unreadable") return { kind: "unreadable", by, id };
    if (holder !== null) return { kind: "matched", by, action: holder };
    // The holder was deleted meanwhile, so the keys are free.
  }
  throw new StoreUnavailable("The keys of this create change hands too fast.");
}

/** The arguments of `createActions`. If the create has a claim, they also have the claimed state; a pause may prevent the claim. */
function newAction({ seal }: Pick<ActionAccess, "seal">, creation: Creation): NewAction {
  const { action, claim, budget, counts = [], beyond = null } = creation;
  const { id, accountId, keyId, host, createdAt: at } = action;
  const { metadata } = action.extras;
  const claimed = claim === null ? null : startAttempt(action, claim);
  const isOnce = beyond?.count.asksOnce === true;
  const { asks = [], others = [] } = Object.groupBy(creation.outbox, ({ message }) =>
    askOf(message.event) === null ? "others" : "asks",
  );
  const stored = { ...storedValues(action, seal), scheduledAt: scheduledAtOf(action, at), claimedBy: null };
  return {
    id,
    accountId,
    keyId,
    host,
    at: at.getTime(),
    row: valuesOf(ACTIONS.columns, stored, action),
    claim:
      claimed === null
        ? null
        : {
            values: valuesOf(CLAIMED, { claimedBy: claim?.by ?? "" }, claimed),
            event: eventRow(claimed, claimed.startedAt ?? at, { type: "started" }),
          },
    keys: keysOf(action),
    metadata: Object.entries(metadata ?? {}).map(([name, value]) => [id, accountId, name, value]),
    ...sideRows(action, at, creation.events, isOnce ? others : creation.outbox),
    firstNotifications: isOnce ? asks.map((row) => notificationRow(action, at, row)) : [],
    request: creation.rejection ?? null,
    budget: budget === undefined ? null : { keyId, ...budget },
    isHeld: action.status === "awaiting_approval",
    isRefused: creation.isRefused === true,
    rulesVersion: creation.rulesVersion,
    grant: creation.grant === undefined || creation.grant === null ? null : usedGrant(creation.grant),
    counts,
    beyond: beyond === null ? null : { count: beyond.count, audit: auditRow(beyond.audit) },
  };
}

function auditRow({ detail, ...entry }: AuditEntry): Values {
  return valuesOf(AUDIT_ENTRIES.columns, { ...entry, detail: JSON.stringify(detail) });
}

function usedGrant({ id, audit }: GrantUse): UsedGrant {
  const { detail, ...entry } = audit;
  return { id, at: entry.at.getTime(), audit: valuesOf(AUDIT_ENTRIES.columns.slice(0, -1), entry), detail };
}

function keysOf({ idempotencyKey, dedupe }: Action): readonly KeyName[] {
  const keys: { readonly kind: KeyKind; readonly key: string | null }[] = [
    { kind: "idempotency", key: idempotencyKey },
    { kind: "dedupe", key: dedupe },
  ];
  return keys.flatMap(({ kind, key }) => (key === null ? [] : { kind, key }));
}

/** Timeline rows and notifications of a change. `after`: the action after it. */
function sideRows(after: Action, at: Date, events: readonly TimelineEvent[], outbox: readonly OutboxRow[]): SideRows {
  return {
    events: events.map((event) => eventRow(after, at, event)),
    notifications: outbox.map((row) => notificationRow(after, at, row)),
  };
}

/** A timeline row. A late result may not change the revision, so its attempt tells its row apart from others of the revision. */
function eventRow(after: Action, at: Date, event: TimelineEvent): Values {
  const { type: _type, ...detail } = event;
  const isLate = event.type === "attempt" && isTooLate(event);
  const run = isLate ? (event.run ?? after.run) : after.run;
  const subject = isLate ? `${run}:${event.attempt}` : "";
  const own = { actionId: after.id, at, run, type: rowTypeOf(event), subject, detail: JSON.stringify(detail) };
  return valuesOf(EVENTS.columns, own, after);
}

function notificationRow(action: Action, at: Date, { id, message, host, payload, dueAt = at }: OutboxRow): Values {
  // A message to a channel is rendered when it is sent.
  const kept = askOf(message.event) === null ? payload : null;
  const due = { status: "pending", attempts: 0, dueAt, scheduledAt: at, createdAt: at };
  return valuesOf(NOTIFICATIONS.columns, { id, ...message, host, actionId: action.id, payload: kept, ...due }, action);
}

/** Writes a change if the action still has the revision on which it was decided. Returns whether it did. */
export async function applyChange(db: ActionAccess, write: ChangeWrite): Promise<boolean> {
  const { before, after, events } = write.change;
  const isNote = after.revision === before.revision && events.some(isTooLate);
  try {
    if (!(await db.writer.run(apply, actionChange(write)))) return false;
  } catch (error) {
    // Only the timeline row of a late result can be refused, because it was written before.
    if (isNote && isConstraint(error)) return true;
    throw error;
  }
  db.written.keep(after);
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
  decider = null,
}: ChangeWrite): ActionWrite {
  const { before, after, events } = change;
  const { id, accountId, keyId, run } = after;
  const response = responseToKeep(change);
  // A new run takes the dedupe key again.
  const retaken = after.run === before.run ? null : after.dedupe;
  return {
    id,
    accountId,
    keyId,
    run,
    at: at.getTime(),
    expected: before.revision,
    ...writtenRow(change, at),
    retaken: retaken === null ? null : { key: retaken, createdAt: before.createdAt.getTime() },
    request: rejection ?? null,
    budget: budget ?? null,
    response: response === null ? null : valuesOf(RESPONSES.columns, { ...response, actionId: id }),
    trims: response !== null && mayHaveTooMany(response),
    audit: audit === undefined ? null : auditRow(audit),
    grant:
      grant === undefined || grant === null
        ? null
        : valuesOf(GRANTS.columns, { ...grant, vary: JSON.stringify(grant.vary), max: JSON.stringify(grant.max) }),
    counts,
    decider:
      decider?.of === "link"
        ? { of: "link", decision: decider.decision, endsAt: decider.expiresAt.getTime() }
        : decider,
    givesBack: givesBack(change),
    ...sideRows(after, at, events, notifications),
  };
}

/** The columns to write, without what the change left alone: a result may be a quarter of a megabyte, late results are rare. */
function writtenRow(
  { before, after }: Pick<Change, "before" | "after">,
  at: Date,
): Pick<ActionWrite, "written" | "row"> {
  const isSame = (name: keyof Action) => after[name] === before[name];
  const isOfState = isSame("lateResult") && isSame("policy") && isSame("counted");
  const least = isSame("result") ? "state" : "result";
  const written = isOfState ? least : "all";
  const lateResult = lateResultText(after.lateResult);
  const values = { ...after.result, ...decidedTexts(after), lateResult, scheduledAt: scheduledAtOf(after, at) };
  return { written, row: [...valuesOf(UPDATES[written].set, values, after), after.id, before.revision] };
}

/** Whether a change was written. Looks for its timeline row, which only this change can have written. */
export async function isApplied(
  { reader }: Pick<ActionAccess, "reader">,
  { change, at }: ChangeWrite,
): Promise<boolean> {
  const { after, events } = change;
  const [first] = events;
  if (first === undefined) return false;
  const { type: _, ...detail } = first;
  const event = { actionId: after.id, type: rowTypeOf(first), at, detail: JSON.stringify(detail) };
  const isEvent = and(hasValues(timeline, event), gte(timeline.revision, after.revision));
  return hasRow(reader, timeline, isEvent);
}
