import { and, desc, eq, isNotNull, isNull, lt, sql } from "drizzle-orm";
import type { Notification, NotificationKind } from "../../src/core/notification.ts";
import type { OutboxStore, Queue } from "../../src/core/store.ts";
import type { TimelineEvent } from "../../src/core/timeline.ts";
import { valuesOf } from "../commands/lists.ts";
import { permitMail, SETTLED, settle } from "../commands/outbox.ts";
import * as reschedule from "../commands/reschedule.ts";
import type { StoreContext } from "./context.ts";
import { AFTER_ALL_IDS, hasValues } from "./dialect.ts";
import { Columns, creatorIn, entryOf, notificationColumns, notificationOf } from "./rows.ts";
import { countNotifications, createQueue } from "./queue.ts";
import { read } from "./read.ts";

const PAYLOAD = read({ id: "text" }, ({ db, tables: { outbox } }, arg) =>
  db.select({ payload: outbox.payload }).from(outbox).where(eq(outbox.id, arg.id)),
);

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

/** Identifies the claim that a timeline row belongs to. */
function subjectOf({ id, attempts, leaseUntil }: Notification): string {
  return `${id} ${attempts} ${leaseUntil?.getTime() ?? ""}`;
}

const HAS_STATUS = read({ id: "text", status: "text", scheduledAt: "time" }, ({ db, tables: { outbox } }, arg) =>
  db.select({ id: outbox.id }).from(outbox).where(hasValues(outbox, arg)),
);

const HAS_EVENT = read({ actionId: "text", subject: "text", at: "time" }, ({ db, tables: { timeline } }, arg) =>
  db.select({ seq: timeline.seq }).from(timeline).where(hasValues(timeline, arg)),
);

/** Callbacks, mails and messages. A row's attempts, with its lease, are the fencing token. */
export function createOutboxStore(db: Pick<StoreContext, "sql" | "writer">): OutboxStore {
  const { sql: reader, writer } = db;
  const queue = (kind: NotificationKind): Queue<Notification> => ({
    ...createQueue(kind, db, notificationOf),
    async orphans(leaseBefore, limit, after) {
      const from = { leaseUntil: after?.leaseUntil ?? Number.MIN_SAFE_INTEGER, id: after?.id ?? "" };
      return (await ORPHANS.raw(reader, { kind, leaseBefore, limit, ...from })).map(notificationOf);
    },
    reschedule: (setBack, limit) => writer.run(reschedule.notifications, setBack, limit, kind),
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
    permitMail: writer.method(permitMail),
    settle(change, at) {
      const { before, status, attempts, dueAt, lastError, event } = change;
      const eventOf = ({ type: _type, ...detail }: TimelineEvent) => {
        const told = { at: at.getTime(), type: before.message.kind, subject: subjectOf(before) };
        return { ...told, detail: JSON.stringify(detail) };
      };
      return writer.run(settle, {
        id: before.id,
        claim: [before.attempts, before.leaseUntil?.getTime() ?? null],
        row: valuesOf(SETTLED, { status, attempts, dueAt, scheduledAt: at, leaseUntil: null, lastError }),
        isDelivered: status === "delivered",
        event: event === null ? null : eventOf(event),
      });
    },
    // Known by the timeline row that only this result can have written, or, without one, by the row itself.
    async isSettled({ before, status, event }, at) {
      const { id, actionId } = before;
      const found = await (event === null
        ? HAS_STATUS.get(reader, { id, status, scheduledAt: at })
        : HAS_EVENT.get(reader, { actionId, subject: subjectOf(before), at }));
      return found !== null;
    },
    async list(accountId, before, limit) {
      return (await LIST.raw(reader, { accountId, before: before ?? AFTER_ALL_IDS, limit })).map(entryOf);
    },
    waiting: () => countNotifications(reader),
  };
}
