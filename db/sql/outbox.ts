import { and, desc, eq, inArray, isNotNull, isNull, ne, sql, type SQL } from "drizzle-orm";
import { MAIL_WINDOW_MS, MAILS_PER_ACCOUNT_MAX, MAILS_PER_RECIPIENT_MAX } from "../../src/core/limits.ts";
import type { Notification, NotificationChange, NotificationKind } from "../../src/core/notification.ts";
import type { OutboxStore, Queue } from "../../src/core/store.ts";
import { rescheduleNotifications } from "./apply.ts";
import { findBrokenNotifications } from "./broken.ts";
import { countNotifications, createQueue, type QueueTable } from "./queue.ts";
import { Refused, type StoreContext } from "./context.ts";
import { always, bytesOf, countOf, isAbsent, isBeforeOrAny } from "./dialect.ts";
import { ENTRY_COLUMNS, entryOf, NOTIFICATION_COLUMNS, notificationOf } from "./outbox-rows.ts";
import { mailLocks } from "./locks.ts";
import { isStopped } from "./pauses.ts";
import { type Args, bareNames, changed, prepare, query } from "./query.ts";
import { Columns, creatorIn } from "./rows.ts";
import { actions, apiKeys, outbox, timeline } from "../libsql/schema.ts";
import type { Lock, Sql, Statement } from "./sql.ts";

/** Callbacks, mails and messages. A row's attempts, with its lease, are the fencing token. */
export function createOutboxStore(db: Pick<StoreContext, "sql" | "writer" | "queueStatements">): OutboxStore {
  const { sql: reader, writer } = db;
  const queue = (kind: NotificationKind): Queue<Notification> => ({
    ...createQueue(tableOf(kind), { ...db, refused: new Refused() }, notificationOf),
    async orphans(leaseBefore, limit, after) {
      const from = { leaseUntil: after?.leaseUntil ?? Number.MIN_SAFE_INTEGER, id: after?.id ?? "" };
      return (await ORPHANS.readRaw(reader, { kind, leaseBefore, limit, ...from })).map(notificationOf);
    },
    broken: (limit, after) => findBrokenNotifications({ sql: reader, writer }, kind, { limit, after }),
    reschedule: (setBack, limit) => rescheduleNotifications(writer, kind, setBack, limit),
  });
  /** Whether the first statement wrote a row. */
  const isWritten = async (statements: readonly Statement[], locks: readonly Lock[] = []) =>
    (await writer.write(statements, locks))[0]?.changes === 1;
  return {
    callbacks: queue("callback"),
    mails: queue("mail"),
    messages: queue("message"),
    async payload(id) {
      const [row] = await PAYLOAD.readRaw(reader, { id });
      const payload = row?.[outbox.payload.name];
      return typeof payload === "string" ? payload : null;
    },
    async creatorOf(id) {
      const [row] = await CREATOR.readRaw(reader, { id });
      if (row === undefined) return null;
      const columns = new Columns(row);
      return { ...creatorIn(columns), isLimited: columns.flag(IS_LIMITED, true) };
    },
    permitMail({ id, attempts, host, accountId }, at) {
      const since = at.getTime() - MAIL_WINDOW_MS;
      return isWritten([PERMIT.bind({ id, attempts, host, accountId, at, since })], mailLocks(host, accountId));
    },
    settle: (change, at) => isWritten(settle(change, at)),
    isSettled: (change, at) => isSettled(reader, change, at),
    force: (change, at) => isWritten(force(change, at)),
    async list(accountId, before, limit) {
      return (await LIST.readRaw(reader, { accountId, before, limit })).map(entryOf);
    },
    waiting: () => countNotifications(reader),
  };
}

const PAYLOAD = prepare((arg: Args<"id">) =>
  query.select({ payload: outbox.payload }).from(outbox).where(eq(outbox.id, arg.id)),
);

const IS_LIMITED = { name: "is_limited" };

const CREATOR = prepare((arg: Args<"id">) => {
  const { id, accountId, hosts, methods, dailyActions, expiresAt } = apiKeys;
  const hasNone = and(isNotNull(id), isNull(hosts), isNull(methods), isNull(dailyActions), isNull(expiresAt));
  const isLimited = sql<number>`case when ${actions.keyId} = '' or (${hasNone}) then 0 else 1 end`.as(IS_LIMITED.name);
  const creators = query.select({ role: actions.keyRole, hold: actions.keyHold, isLimited }).from(outbox);
  const withAction = creators.innerJoin(actions, eq(actions.id, outbox.actionId));
  const isKey = and(eq(id, actions.keyId), eq(accountId, actions.accountId));
  return withAction.leftJoin(apiKeys, isKey).where(eq(outbox.id, arg.id));
});

const LIST = prepare((arg: Args<"accountId" | "before" | "limit">) => {
  const isBefore = isBeforeOrAny(outbox.id, arg.before);
  const listed = query
    .select(ENTRY_COLUMNS)
    .from(outbox)
    .where(and(eq(outbox.accountId, arg.accountId), isBefore));
  return listed.orderBy(desc(outbox.id)).limit(arg.limit);
});

const ORPHANS = prepare((arg: Args<"kind" | "leaseUntil" | "id" | "leaseBefore" | "limit">) => {
  const isAfter = sql`(${outbox.leaseUntil}, ${outbox.id}) > (${arg.leaseUntil}, ${arg.id})`;
  const isOver = sql`(${isAbsent(arg.leaseBefore, outbox.leaseUntil)} or ${outbox.leaseUntil} < ${arg.leaseBefore})`;
  const orphans = query.select(NOTIFICATION_COLUMNS).from(outbox);
  return orphans
    .where(and(eq(outbox.status, "active"), eq(outbox.kind, arg.kind), isAfter, isOver))
    .orderBy(outbox.leaseUntil, outbox.id)
    .limit(arg.limit);
});

function tableOf(kind: NotificationKind): QueueTable {
  return {
    name: "outbox",
    pending: `status = 'pending' AND kind = '${kind}'`,
    active: `status = 'active' AND kind = '${kind}'`,
    fence: "attempts",
    bytes: bytesOf(sql`payload`),
    columns: NOTIFICATION_COLUMNS,
    // Only the stop of an account applies: other pauses don't hold back callbacks and mails.
    isPaused: ({ accountId }) => isStopped(accountId),
    isLive: () => always,
    set: ({ leaseUntil, by }) =>
      sql`status = 'active', attempts = attempts + 1, due_at = NULL, lease_until = ${leaseUntil}, claimed_by = ${by}`,
    isTold: false,
  };
}

/**
 * The lease distinguishes claims with the same number of attempts, since a returned claim does not count. A delivered
 * callback needs its body no more, which may be a megabyte.
 */
const SETTLE = prepare(
  (arg: Args<"id" | "expected" | "lease" | "status" | "attempts" | "dueAt" | "lastError" | "at">) => {
    const isClaim = and(
      eq(outbox.attempts, arg.expected),
      eq(outbox.leaseUntil, arg.lease),
      eq(outbox.status, "active"),
    );
    return query
      .update(outbox)
      .set({
        status: sql`${arg.status}`,
        attempts: sql`${arg.attempts}`,
        dueAt: sql`${arg.dueAt}`,
        scheduledAt: sql`${arg.at}`,
        leaseUntil: null,
        lastError: sql`${arg.lastError}`,
        payload: sql`case ${arg.status} when 'delivered' then null else ${outbox.payload} end`,
      })
      .where(and(eq(outbox.id, arg.id), isClaim));
  },
);

type EventName = "id" | "at" | "type" | "subject" | "detail";

/** A row of the timeline, with the run and revision of the notification or of the action. The builder wants every column. */
const tell = (source: typeof outbox | typeof actions) =>
  prepare((arg: Args<EventName>) => {
    const { actionId, accountId, at, run, revision, type, subject, status, detail } = timeline;
    const columns = bareNames(actionId, accountId, at, run, revision, type, subject, status, detail);
    return sql`insert into ${timeline} (${columns})
      select ${outbox.actionId}, ${source.accountId}, ${arg.at}, ${source.run}, ${source.revision}, ${arg.type},
        ${arg.subject}, ${actions.status}, ${arg.detail}
      from ${outbox} join ${actions} on ${actions.id} = ${outbox.actionId} where ${outbox.id} = ${arg.id} and ${changed}`;
  });

const TELL = tell(outbox);

const TELL_FORCED = tell(actions);

function settle(
  { before, status, attempts, dueAt, lastError, event }: NotificationChange,
  at: Date,
): readonly Statement[] {
  const { id } = before;
  const claim = { id, expected: before.attempts, lease: before.leaseUntil };
  const update = SETTLE.bind({ ...claim, status, attempts, dueAt, lastError, at });
  if (event === null) return [update];
  const { type: _, ...detail } = event;
  const type = before.message.kind;
  return [update, TELL.bind({ id, at, type, subject: subjectOf(before), detail: JSON.stringify(detail) })];
}

/** Identifies the claim that a timeline row belongs to. */
function subjectOf({ id, attempts, leaseUntil }: Notification): string {
  return `${id} ${attempts} ${leaseUntil?.getTime() ?? ""}`;
}

const HAS_STATUS = prepare((arg: Args<"id" | "status" | "at">) => {
  const isStatus = and(eq(outbox.status, arg.status), eq(outbox.scheduledAt, arg.at));
  return query
    .select({ id: outbox.id })
    .from(outbox)
    .where(and(eq(outbox.id, arg.id), isStatus));
});

const HAS_EVENT = prepare((arg: Args<"actionId" | "subject" | "at">) => {
  const isEvent = and(eq(timeline.subject, arg.subject), eq(timeline.at, arg.at));
  return query
    .select({ seq: timeline.seq })
    .from(timeline)
    .where(and(eq(timeline.actionId, arg.actionId), isEvent));
});

/** Known by the timeline row that only this result can have written, or, without one, by the row itself. */
async function isSettled(reader: Sql, { before, status, event }: NotificationChange, at: Date): Promise<boolean> {
  const { id, actionId } = before;
  const found = await (event === null
    ? HAS_STATUS.read(reader, { id, status, at })
    : HAS_EVENT.read(reader, { actionId, subject: subjectOf(before), at }));
  return found.length > 0;
}

/** Replaces all numbers by legal ones. */
const FORCE = prepare((arg: Args<"id" | "status" | "attempts" | "lastError" | "at">) =>
  query
    .update(outbox)
    .set({
      status: sql`${arg.status}`,
      attempts: sql`${arg.attempts}`,
      dueAt: null,
      scheduledAt: sql`${arg.at}`,
      leaseUntil: null,
      lastError: sql`${arg.lastError}`,
    })
    .where(and(eq(outbox.id, arg.id), inArray(outbox.status, ["pending", "active"]))),
);

function force({ before, status, attempts, lastError, event }: NotificationChange, at: Date): readonly Statement[] {
  const { id } = before;
  const update = FORCE.bind({ id, status, attempts, lastError, at });
  if (event === null) return [update];
  const { type, ...detail } = event;
  const subject = `${id} set aside ${at.getTime()}`;
  return [update, TELL_FORCED.bind({ id, at, type, subject, detail: JSON.stringify(detail) })];
}

type PermitName = "id" | "attempts" | "host" | "accountId" | "at" | "since";

/** Holds while fewer other mails of the last hour have this recipient or account. */
function isBelow(limit: number, isSame: SQL, { id, since }: Args<PermitName>): SQL {
  const others = query.select({ id: outbox.id }).from(outbox);
  const sent = others.where(and(eq(outbox.kind, "mail"), isSame, sql`${outbox.sentAt} > ${since}`, ne(outbox.id, id)));
  return sql`${countOf(sent.limit(limit))} < ${limit}`;
}

/**
 * The mails of the last hour are counted in the statement that adds this one, so racing mails can't exceed the limit.
 */
const PERMIT = prepare((arg: Args<PermitName>) => {
  const isClaim = and(eq(outbox.id, arg.id), eq(outbox.attempts, arg.attempts), eq(outbox.status, "active"));
  const isPermitted = [
    isBelow(MAILS_PER_RECIPIENT_MAX, eq(outbox.host, arg.host), arg),
    isBelow(MAILS_PER_ACCOUNT_MAX, eq(outbox.accountId, arg.accountId), arg),
  ];
  return query
    .update(outbox)
    .set({ sentAt: sql`${arg.at}` })
    .where(and(isClaim, ...isPermitted));
});
