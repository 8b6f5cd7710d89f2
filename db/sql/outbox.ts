import { and, desc, eq, isNotNull, isNull, lt, sql } from "drizzle-orm";
import type { Notification, NotificationChange, NotificationKind } from "../../src/core/notification.ts";
import type { OutboxStore, Queue } from "../../src/core/store.ts";
import type { TimelineEvent } from "../../src/core/timeline.ts";
import * as commands from "../commands/outbox.ts";
import { valuesOf } from "./create.ts";
import * as reschedule from "../commands/reschedule.ts";
import { countNotifications, createQueue } from "./queue.ts";
import type { StoreContext } from "./context.ts";
import { entryOf, notificationColumns, notificationOf } from "./outbox-rows.ts";
import { read, type Reader } from "./read.ts";
import { Columns, creatorIn } from "./rows.ts";

/** Callbacks, mails and messages. A row's attempts, with its lease, are the fencing token. */
export function createOutboxStore(db: Pick<StoreContext, "sql" | "writer">): OutboxStore {
  const { sql: reader, writer } = db;
  const queue = (kind: NotificationKind): Queue<Notification> => ({
    ...createQueue(kind, db, notificationOf),
    async orphans(leaseBefore, limit, after) {
      const from = { leaseUntil: after?.leaseUntil ?? Number.MIN_SAFE_INTEGER, id: after?.id ?? "" };
      return (await ORPHANS.raw(reader, { kind, leaseBefore, limit, ...from })).map(notificationOf);
    },
    reschedule: (setBack, limit) => writer.run(reschedule.notifications, { ...setBack, kind, limit }),
  });
  return {
    callbacks: queue("callback"),
    mails: queue("mail"),
    messages: queue("message"),
    async payload(id) {
      const [row] = await PAYLOAD.raw(reader, { id });
      const payload = row?.["payload"];
      return typeof payload === "string" ? payload : null;
    },
    async creatorOf(id) {
      const [row] = await CREATOR.raw(reader, { id });
      if (row === undefined) return null;
      const columns = new Columns(row);
      return { ...creatorIn(columns), isLimited: columns.flag(IS_LIMITED, true) };
    },
    permitMail: ({ id, attempts, host, accountId }, at) =>
      writer.run(commands.permitMail, { id, attempts, host, accountId, at }),
    settle(change, at) {
      const { before, status, attempts, dueAt, lastError, event } = change;
      return writer.run(commands.settle, {
        id: before.id,
        claim: [before.attempts, before.leaseUntil?.getTime() ?? null],
        row: valuesOf(commands.SETTLED, { status, attempts, dueAt, scheduledAt: at, leaseUntil: null, lastError }),
        isDelivered: status === "delivered",
        event: event === null ? null : eventOf(event, at, before),
      });
    },
    isSettled: (change, at) => isSettled(reader, change, at),
    async list(accountId, before, limit) {
      return (await LIST.raw(reader, { accountId, before: before ?? AFTER_ALL_IDS, limit })).map(entryOf);
    },
    waiting: () => countNotifications(reader),
  };
}

const PAYLOAD = read({ id: "text" }, ({ db, tables: { outbox } }, arg) =>
  db.select({ payload: outbox.payload }).from(outbox).where(eq(outbox.id, arg.id)),
);

/** Later than every id. */
const AFTER_ALL_IDS = "\u{10ffff}";

const IS_LIMITED = { name: "is_limited" };

const CREATOR = read({ id: "text" }, ({ db, tables: { apiKeys, actions, outbox } }, arg) => {
  const { id, accountId, hosts, methods, dailyActions, expiresAt } = apiKeys;
  const hasNone = and(isNotNull(id), isNull(hosts), isNull(methods), isNull(dailyActions), isNull(expiresAt));
  const isLimited = sql<number>`case when ${actions.keyId} = '' or (${hasNone}) then 0 else 1 end`.as(IS_LIMITED.name);
  const creators = db.select({ role: actions.keyRole, hold: actions.keyHold, isLimited }).from(outbox);
  const withAction = creators.innerJoin(actions, eq(actions.id, outbox.actionId));
  const isKey = and(eq(id, actions.keyId), eq(accountId, actions.accountId));
  return withAction.leftJoin(apiKeys, isKey).where(eq(outbox.id, arg.id));
});

const LIST = read({ accountId: "text", before: "text", limit: "number" }, ({ db, tables: { outbox } }, arg) => {
  const listed = db
    .select(notificationColumns(outbox))
    .from(outbox)
    .where(and(eq(outbox.accountId, arg.accountId), lt(outbox.id, arg.before)));
  return listed.orderBy(desc(outbox.id)).limit(arg.limit);
});

const ORPHANS = read(
  { kind: "text", leaseUntil: "time", id: "text", leaseBefore: "time?", limit: "number" },
  ({ db, tables: { outbox } }, arg) => {
    const isAfter = sql`(${outbox.leaseUntil}, ${outbox.id}) > (${arg.leaseUntil}, ${arg.id})`;
    const isOver = sql`(${arg.leaseBefore} is null or ${outbox.leaseUntil} < ${arg.leaseBefore})`;
    const orphans = db.select(notificationColumns(outbox)).from(outbox);
    return orphans
      .where(and(eq(outbox.status, "active"), eq(outbox.kind, arg.kind), isAfter, isOver))
      .orderBy(outbox.leaseUntil, outbox.id)
      .limit(arg.limit);
  },
);

function eventOf({ type: _type, ...detail }: TimelineEvent, at: Date, before: Notification) {
  return {
    at: at.getTime(),
    type: before.message.kind,
    subject: subjectOf(before),
    detail: JSON.stringify(detail),
  };
}

/** Identifies the claim that a timeline row belongs to. */
function subjectOf({ id, attempts, leaseUntil }: Notification): string {
  return `${id} ${attempts} ${leaseUntil?.getTime() ?? ""}`;
}

const HAS_STATUS = read({ id: "text", status: "text", at: "time" }, ({ db, tables: { outbox } }, arg) => {
  const isStatus = and(eq(outbox.status, arg.status), eq(outbox.scheduledAt, arg.at));
  return db
    .select({ id: outbox.id })
    .from(outbox)
    .where(and(eq(outbox.id, arg.id), isStatus));
});

const HAS_EVENT = read({ actionId: "text", subject: "text", at: "time" }, ({ db, tables: { timeline } }, arg) => {
  const isEvent = and(eq(timeline.subject, arg.subject), eq(timeline.at, arg.at));
  return db
    .select({ seq: timeline.seq })
    .from(timeline)
    .where(and(eq(timeline.actionId, arg.actionId), isEvent));
});

/** Known by the timeline row that only this result can have written, or, without one, by the row itself. */
async function isSettled(reader: Reader, { before, status, event }: NotificationChange, at: Date): Promise<boolean> {
  const { id, actionId } = before;
  const found = await (event === null
    ? HAS_STATUS.all(reader, { id, status, at })
    : HAS_EVENT.all(reader, { actionId, subject: subjectOf(before), at }));
  return found.length > 0;
}
