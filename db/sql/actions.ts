/**
 * The store of actions: creates and changes, as rows for the commands of `commands/actions.ts`, then reads of single actions and of the event
 * stream. Its other parts: `queue.ts` (what is due), `list.ts` (searches) and `held.ts` (what awaits approval). `rows.ts` reads rows.
 */
import { and, asc, desc, eq, exists, getTableColumns, gt, gte, inArray, like, lt, lte, sql } from "drizzle-orm";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Action, lateResultText } from "../../src/core/action.ts";
import type { AuditEntry } from "../../src/core/audit.ts";
import { type Change, givesBack, mayHaveTooMany, responseToKeep } from "../../src/core/changes.ts";
import type { KeyKind } from "../../src/core/dedupe.ts";
import { atUse, type GrantUse } from "../../src/core/grant.ts";
import {
  ATTEMPTS_KEPT,
  DECIDE_TRIES_MAX,
  EVENT_PAGE_BYTES_MAX,
  EVENT_PAGE_MAX,
  EVENT_SCAN_ROWS_MAX,
  SEARCH_STEP_ROWS,
  TIMELINE_ROWS_MAX,
} from "../../src/core/limits.ts";
import { parseAsk } from "../../src/core/notification-events.ts";
import { mayRepeat, saysWhy } from "../../src/core/rejections.ts";
import type { FilterValues } from "../../src/core/search.ts";
import { startAttempt } from "../../src/core/settle.ts";
import {
  type ActionChange,
  type ActionStore,
  type ChangeWrite,
  type Created,
  type Creation,
  hostOfKey,
  type OutboxRow,
  StoreUnavailable,
} from "../../src/core/store.ts";
import { actionAt, isTooLate, type TimelineEntry, type TimelineEvent } from "../../src/core/timeline.ts";
import {
  ACTIONS,
  type ActionWrite,
  apply,
  AUDIT_ENTRIES,
  CLAIMED,
  createActions,
  EVENTS,
  extendLease,
  HOLDER,
  type KeyName,
  keyWindowStart,
  type NewAction,
  NOTIFICATIONS,
  RESPONSES,
  type SideRows,
  UPDATES,
} from "../commands/actions.ts";
import { findStretchEnd, readPosition } from "../commands/activity.ts";
import { type Values, valuesOf } from "../commands/command.ts";
import { NEWEST_DELETED, readFact } from "../commands/facts.ts";
import { GRANTS, type UsedGrant } from "../commands/grants.ts";
import { countRejections, hasBudgetLeft } from "../commands/key-limits.ts";
import { beyondCounts } from "../commands/rules.ts";
import { actions, attempts, LATE_SUCCESS, timeline } from "../tables.ts";
import type { Reader, Row } from "./dialect.ts";
import { isConstraint } from "./errors.ts";
import { createHeldReads } from "./held.ts";
import { createLists } from "./list.ts";
import { createActionQueue } from "./queue.ts";
import { all, bytesOfAction, eachValue, hasRow, hasValues, prepare, qb } from "./read.ts";
import {
  ACTION_COLUMNS,
  type ActionAccess,
  decidedTexts,
  findActions,
  fitting,
  isJson,
  readable,
  timelineRowType,
  scheduledTime,
  toShownAction,
  storedValues,
  toTimelineEntry,
} from "./rows.ts";

/** Creates the store of actions. The parts that it spreads have files of their own. */
export function createActionStore(db: ActionAccess): ActionStore {
  const { reader, writer } = db;
  const { isOneOf, itemsOf, placeIn, indexedBy } = reader.dialect;
  return {
    ...createActionQueue(db),
    ...createLists(db),
    ...createHeldReads(db),
    create: (creation) => createAction(db, creation),
    apply: (write) => applyChange(db, write),
    isApplied: (write) => isApplied(reader, write),
    extendLease: ({ id, revision }, leaseUntil) =>
      writer.run(extendLease, { id, revision, leaseUntil: leaseUntil.getTime() }),
    hasBudgetLeft: (budget) => hasBudgetLeft(reader, budget),
    beyondCounts: (counts) => beyondCounts(reader, counts),
    // Selects by id alone: with the account, too, PostgreSQL may read all its actions until it has statistics of the table.
    async find(accountId, id) {
      const found = await FIND_BY_ID.raw(reader, { id });
      const own = found.filter((row) => row["account_id"] === accountId);
      return shown(own, db);
    },
    findById: async (id) => shown(await FIND_BY_ID.raw(reader, { id }), db),
    keyHolder: (accountId, kind, key, now) =>
      HOLDER.get(reader, { accountId, kind, key, windowStart: keyWindowStart(now.getTime()) }),
    async timeline(accountId, id) {
      return readable(await TIMELINE.raw(reader, { actionId: id, accountId }), toTimelineEntry).toReversed();
    },
    // One index look-up for each pair (`j`) of a key and a host.
    async approvedHosts(accountId, asked) {
      const pairs = [...new Set(asked.map(hostOfKey))].map((pair): unknown => JSON.parse(pair));
      const { hostname, keyId, status, approvedAt } = actions;
      const isOfPair = sql`${keyId} = ${placeIn(0)} and ${hostname} = ${placeIn(1)}`;
      const approved = sql<{ readonly pair: string }>`select j.value as pair from ${itemsOf(pairs)} where exists (
        select ${keyId} from ${indexedBy(actions, "actions_approved")} where ${actions.accountId} = ${accountId}
          and ${isOfPair} and ${status} = 'completed' and ${approvedAt} is not null)`;
      return new Set((await all(reader, approved)).map(({ pair }) => pair));
    },
    async responses(accountId, id) {
      const { actionId: _, ...columns } = getTableColumns(attempts);
      const kept = qb
        .select(columns)
        .from(attempts)
        .innerJoin(actions, and(eq(actions.id, attempts.actionId), eq(actions.accountId, accountId)))
        .where(eq(attempts.actionId, id));
      const newest = await all(reader, kept.orderBy(desc(attempts.run), desc(attempts.attempt)).limit(ATTEMPTS_KEPT));
      return newest.filter(({ responseBody }) => isJson(responseBody));
    },
    async filterValues(accountId, limit) {
      const { id, keyId, createdBy } = actions;
      const isOfAccount = eq(actions.accountId, accountId);
      const isOfKey = and(isOfAccount, sql`${keyId} <> ''`);
      // Takes the name from the newest action of each key, since the key itself may be gone.
      const named = qb.select({ createdBy }).from(actions);
      const newest = named.where(and(isOfKey, sql`${keyId} = found.value`)).orderBy(desc(id));
      const creator = sql`found.value as "keyId", ${newest.limit(1)} as "createdBy"`;
      const [hosts, creators] = await Promise.all([
        all(
          reader,
          eachValue<{ readonly host: string }>(actions.hostname, isOfAccount, sql`found.value as host`, limit),
        ),
        all(reader, eachValue<FilterValues["creators"][number]>(keyId, isOfKey, creator, limit)),
      ]);
      return { hosts: hosts.map(({ host }) => host), creators };
    },
    withUnknown(ids) {
      // No text in `detail` can match, since quotes in JSON texts are escaped.
      const isUnknown = and(eq(timeline.type, "attempt"), like(timeline.detail, '%"outcome":"unknown"%'));
      const attempt = qb
        .select({ seq: timeline.seq })
        .from(timeline)
        .where(and(sql`${timeline.actionId} = j.value`, isUnknown));
      return inSteps(ids, (some) =>
        all(reader, sql<{ readonly id: string }>`select j.value as id from ${itemsOf(some)} where ${exists(attempt)}`),
      );
    },
    withLateSuccess: (ids) =>
      inSteps(ids, (some) => {
        const isLate = and(isOneOf(actions.id, some), like(actions.lateResult, LATE_SUCCESS));
        return all(reader, qb.select({ id: actions.id }).from(actions).where(isLate));
      }),
    /**
     * The next changes of an account. Reads the timeline of all accounts, whose positions are in the order of commits. An index
     * by account would save 0.09 us per row, but make all writes 7 % slower with one account and 30 % with a hundred.
     */
    async changes(accountId, after) {
      const newest = await readPosition(reader);
      if (newest <= after) return { changes: [], position: after, isLast: true };
      // Positions have gaps, so count rows to find where the stretch ends.
      const isShort = newest - after <= EVENT_SCAN_ROWS_MAX;
      const last = isShort ? null : await findStretchEnd(reader, after, EVENT_SCAN_ROWS_MAX);
      const until = last === null ? newest : Math.min(newest, last.seq);
      const found = await CHANGES_IN.raw(reader, { after, until, accountId });
      const page = fitting(EVENT_PAGE_BYTES_MAX, found);
      const isCut = page.length < found.length || found.length === EVENT_PAGE_MAX;
      const position = isCut ? Number(page.at(-1)?.["seq"]) : until;
      return { changes: await readChanges(db, accountId, page), position, isLast: position === newest };
    },
    position: () => readPosition(reader),
    // Position 0 always exists; any other exists as long as its row.
    async knowsPosition(position) {
      if (position < Number((await readFact(reader, NEWEST_DELETED)) ?? 0)) return false;
      return position === 0 || (await POSITION.get(reader, { position })) !== null;
    },
  };
}

/** Creates an action, or returns the one that already has one of its keys. */
async function createAction(db: ActionAccess, creation: Creation): Promise<Created> {
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
function newAction({ seal }: ActionAccess, creation: Creation): NewAction {
  const { action, claim, budget, counts = [], beyond = null } = creation;
  const { id, accountId, keyId, host, createdAt: at } = action;
  const { metadata } = action.extras;
  const claimed = claim === null ? null : startAttempt(action, claim);
  const isOnce = beyond?.count.asksOnce === true;
  const { asks = [], others = [] } = Object.groupBy(creation.outbox, ({ message }) =>
    parseAsk(message.event) === null ? "others" : "asks",
  );
  const stored = { ...storedValues(action, seal), scheduledAt: scheduledTime(action, at), claimedBy: null };
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
    keys: actionKeys(action),
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

function actionKeys({ idempotencyKey, dedupe }: Action): readonly KeyName[] {
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
  const own = { actionId: after.id, at, run, type: timelineRowType(event), subject, detail: JSON.stringify(detail) };
  return valuesOf(EVENTS.columns, own, after);
}

function notificationRow(action: Action, at: Date, { id, message, host, payload, dueAt = at }: OutboxRow): Values {
  // A message to a channel is rendered when it is sent.
  const kept = parseAsk(message.event) === null ? payload : null;
  const due = { status: "pending", attempts: 0, dueAt, scheduledAt: at, createdAt: at };
  return valuesOf(NOTIFICATIONS.columns, { id, ...message, host, actionId: action.id, payload: kept, ...due }, action);
}

/** Writes a change if the action still has the revision on which it was decided. Returns whether it did. */
async function applyChange(db: ActionAccess, write: ChangeWrite): Promise<boolean> {
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

function actionChange(write: ChangeWrite): ActionWrite {
  const { change, at, audit, grant = null, decider = null } = write;
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
    request: write.rejection ?? null,
    budget: write.budget ?? null,
    response: response === null ? null : valuesOf(RESPONSES.columns, { ...response, actionId: id }),
    trims: response !== null && mayHaveTooMany(response),
    audit: audit === undefined ? null : auditRow(audit),
    grant:
      grant === null
        ? null
        : valuesOf(GRANTS.columns, { ...grant, vary: JSON.stringify(grant.vary), max: JSON.stringify(grant.max) }),
    counts: write.counts ?? [],
    decider:
      decider?.of === "link"
        ? { of: "link", decision: decider.decision, endsAt: decider.expiresAt.getTime() }
        : decider,
    givesBack: givesBack(change),
    ...sideRows(after, at, events, write.outbox),
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
  const values = { ...after.result, ...decidedTexts(after), lateResult, scheduledAt: scheduledTime(after, at) };
  return { written, row: [...valuesOf(UPDATES[written].set, values, after), after.id, before.revision] };
}

/** Whether a change was written. Looks for its timeline row, which only this change can have written. */
async function isApplied(reader: Reader, { change, at }: ChangeWrite): Promise<boolean> {
  const { after, events } = change;
  const [first] = events;
  if (first === undefined) return false;
  const { type: _, ...detail } = first;
  const event = { actionId: after.id, type: timelineRowType(first), at, detail: JSON.stringify(detail) };
  const isEvent = and(hasValues(timeline, event), gte(timeline.revision, after.revision));
  return hasRow(reader, timeline, isEvent);
}

const FIND_BY_ID = prepare({ id: "text" }, (arg) =>
  qb.select(ACTION_COLUMNS).from(actions).where(eq(actions.id, arg.id)),
);

/** The action of the first row, to show it. Null: there is no row, or it can't be read. */
function shown(rows: readonly Row[], { seal, onUnreadable }: ActionAccess): Action | null {
  return (
    readable(
      rows.slice(0, 1),
      (row) => toShownAction(row, seal),
      (row) => onUnreadable("action", row),
    )[0] ?? null
  );
}

/** The action that has a key. Null: it was deleted meanwhile. */
async function findHolder(db: ActionAccess, id: string): Promise<Action | "unreadable" | null> {
  const rows = await FIND_BY_ID.raw(db.reader, { id });
  return rows.length === 0 ? null : (shown(rows, db) ?? "unreadable");
}

const TIMELINE = prepare({ actionId: "text", accountId: "text" }, (arg) =>
  qb.select().from(timeline).where(hasValues(timeline, arg)).orderBy(desc(timeline.seq)).limit(TIMELINE_ROWS_MAX),
);

/** Finds ids in steps, with a turn of the event loop in between, since SQLite reads on this thread. */
async function inSteps(
  ids: readonly string[],
  find: (ids: readonly string[]) => Promise<readonly { readonly id: string }[]>,
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (let at = 0; at < ids.length; at += SEARCH_STEP_ROWS) {
    if (at > 0) await nextTurn();
    for (const { id } of await find(ids.slice(at, at + SEARCH_STEP_ROWS))) found.add(id);
  }
  return found;
}

/** The types of timeline rows that stand for a change of an action: each change has exactly one such row. */
const CHANGES = [
  "created",
  "started",
  "not_started",
  "approved",
  "rejected",
  "cancelled",
  "retried",
  "attempt",
  "late_result",
];

const CHANGES_IN = prepare({ after: "number", until: "number", accountId: "text" }, (arg) => {
  const { seq, actionId, at, run, revision, type, status, detail } = timeline;
  const isOfStretch = and(gt(seq, arg.after), lte(seq, arg.until), eq(timeline.accountId, arg.accountId));
  return qb
    .select({ seq, actionId, at, run, revision, type, status, detail, bytes: bytesOfAction().as("bytes") })
    .from(timeline)
    .crossJoin(actions)
    .where(and(isOfStretch, inArray(type, CHANGES), eq(actions.id, actionId)))
    .orderBy(asc(seq))
    .limit(EVENT_PAGE_MAX);
});

const POSITION = prepare({ position: "number" }, (arg) =>
  qb.select({ seq: timeline.seq }).from(timeline).where(eq(timeline.seq, arg.position)),
);

async function readChanges(
  db: ActionAccess,
  accountId: string,
  rows: readonly Row[],
): Promise<readonly ActionChange[]> {
  const ids = new Set(rows.map((row) => String(row["action_id"])));
  const byId = new Map((await findActions(db, accountId, [...ids])).map((action) => [action.id, action]));
  const runs = new Map<string, readonly TimelineEntry[]>();
  const changes: ActionChange[] = [];
  for (const row of rows) {
    const action = byId.get(String(row["action_id"]));
    const [entry] = readable([row], toTimelineEntry);
    // The action was pruned between the two reads, or can't be read.
    if (action === undefined || entry === undefined) continue;
    const isLateResult = entry.event.type === "attempt" && entry.event.late === "result";
    const change = { seq: entry.seq, at: entry.at, ...(isLateResult && { isLateResult }) };
    const isNewest = Number(row["revision"]) === action.revision;
    changes.push({ ...change, action: isNewest ? action : await actionThen(db.reader, action, entry, runs) });
  }
  return changes;
}

const ENTRIES_BEFORE = prepare({ actionId: "text", run: "number", seq: "number" }, (arg) => {
  const { actionId, seq, at, run, type, status, detail } = timeline;
  return qb
    .select({ seq, at, run, type, status, detail })
    .from(timeline)
    .where(and(eq(actionId, arg.actionId), eq(run, arg.run), lt(seq, arg.seq)))
    .orderBy(asc(seq))
    .limit(TIMELINE_ROWS_MAX);
});

/** The action as it was after an entry. `runs` keeps the timelines of the runs on this page. */
async function actionThen(
  reader: Reader,
  action: Action,
  entry: TimelineEntry,
  runs: Map<string, readonly TimelineEntry[]>,
): Promise<Action> {
  const key = `${action.id} ${entry.run}`;
  const isFirst = entry.event.type === "created" || entry.event.type === "retried";
  const readBefore = () => ENTRIES_BEFORE.raw(reader, { actionId: action.id, run: entry.run, seq: entry.seq });
  const before = isFirst ? [] : (runs.get(key) ?? readable(await readBefore(), toTimelineEntry));
  const entries = [...before, entry];
  runs.set(key, entries);
  return actionAt(action, entries);
}
