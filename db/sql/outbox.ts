import { and, desc, eq, isNotNull, isNull, lt, sql } from "drizzle-orm";
import type { Notification } from "../../src/core/notification.ts";
import type { OutboxStore } from "../../src/core/store.ts";
import type { TimelineEvent } from "../../src/core/timeline.ts";
import { valuesOf } from "../commands/lists.ts";
import { permitMail, SETTLED, settle } from "../commands/outbox.ts";
import type { StoreContext } from "./context.ts";
import { AFTER_ALL_IDS, hasValues } from "./dialect.ts";
import { countNotifications, createNotificationQueue } from "./queue.ts";
import { get, prepare, raw } from "./read.ts";
import { Columns, creatorOf, entryOf, notificationColumns, readable } from "./rows.ts";

const PAYLOAD = prepare({ id: "text" }, ({ db, tables: { outbox } }, arg) =>
  db.select({ payload: outbox.payload }).from(outbox).where(eq(outbox.id, arg.id)),
);

const CREATOR = prepare({ id: "text" }, ({ db, tables: { apiKeys, actions, outbox } }, arg) => {
  const { id, accountId, hosts, methods, dailyActions, expiresAt } = apiKeys;
  const hasNone = and(isNotNull(id), isNull(hosts), isNull(methods), isNull(dailyActions), isNull(expiresAt));
  const isLimited = sql<number>`case when ${actions.keyId} = '' or (${hasNone}) then 0 else 1 end`.as("is_limited");
  const creators = db.select({ role: actions.keyRole, hold: actions.keyHold, isLimited }).from(outbox);
  const withAction = creators.innerJoin(actions, eq(actions.id, outbox.actionId));
  const isKey = and(eq(id, actions.keyId), eq(accountId, actions.accountId));
  return withAction.leftJoin(apiKeys, isKey).where(eq(outbox.id, arg.id));
});

/** Identifies the claim that a timeline row belongs to. */
function subjectOf({ id, attempts, leaseUntil }: Notification): string {
  return `${id} ${attempts} ${leaseUntil?.getTime() ?? ""}`;
}

/** Callbacks, mails and messages. A row's attempts, with its lease, are the fencing token. */
export function createOutboxStore(db: Omit<StoreContext, "seal" | "written">): OutboxStore {
  const { reader, writer } = db;
  const { outbox, timeline } = reader.dialect.tables;
  return {
    ...writer.methods({ permitMail }),
    callbacks: createNotificationQueue("callback", db),
    mails: createNotificationQueue("mail", db),
    messages: createNotificationQueue("message", db),
    async payload(id) {
      const [row] = await PAYLOAD.raw(reader, { id });
      const payload = row?.["payload"];
      return typeof payload === "string" ? payload : null;
    },
    async creatorOf(id) {
      const [row] = await CREATOR.raw(reader, { id });
      const [creator] = row === undefined ? [] : readable([row], (one) => creatorOf(new Columns(one)));
      return creator === undefined ? null : { ...creator, isLimited: row?.["is_limited"] !== 0 };
    },
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
      const { db: select } = reader.dialect;
      const hasStatus = hasValues(outbox, { id, status, scheduledAt: at });
      const hasEvent = hasValues(timeline, { actionId, subject: subjectOf(before), at });
      const found = await (event === null
        ? get(reader, select.select({ id: outbox.id }).from(outbox).where(hasStatus))
        : get(reader, select.select({ seq: timeline.seq }).from(timeline).where(hasEvent)));
      return found !== null;
    },
    async list(accountId, before, limit) {
      const listed = reader.dialect.db
        .select(notificationColumns(outbox))
        .from(outbox)
        .where(and(eq(outbox.accountId, accountId), lt(outbox.id, before ?? AFTER_ALL_IDS)));
      return readable(await raw(reader, listed.orderBy(desc(outbox.id)).limit(limit)), entryOf);
    },
    waiting: () => countNotifications(reader),
  };
}
