/** The store of callbacks, mails and messages, which wait in queues as actions do (`queue.ts`). `commands/outbox.ts` has what is written. */
import { and, desc, eq, isNotNull, isNull, lt, sql } from "drizzle-orm";
import { setImmediate as nextTurn } from "node:timers/promises";
import { LIST_SCAN_ROWS_MAX } from "../../src/core/limits.ts";
import type { NotificationKind } from "../../src/core/notification-events.ts";
import type { Notification } from "../../src/core/notification.ts";
import { keyLimits } from "../../src/core/roles.ts";
import type { OutboxEntry, OutboxStore, Queue } from "../../src/core/store.ts";
import type { TimelineEvent } from "../../src/core/timeline.ts";
import { valuesOf } from "../commands/lists.ts";
import { permitMail, SETTLED, settleNotifications } from "../commands/outbox.ts";
import { actions, apiKeys, outbox, timeline } from "../tables.ts";
import { countSome, createQueue, isLeaseOver, queueTable } from "./queue.ts";
import { AFTER_ALL_IDS, hasRow, hasValues, prepare, qb, raw } from "./read.ts";
import { type ActionAccess, entryOf, NOTIFICATION_COLUMNS, notificationOf, readable, readCreator } from "./rows.ts";

function createNotificationQueue(kind: NotificationKind, db: ActionAccess): Queue<Notification> {
  const { reader } = db;
  const queue = createQueue(kind, db, notificationOf);
  return {
    ...queue,
    async orphans(leaseBefore, limit, after) {
      const { id, leaseUntil } = outbox;
      const isOver = leaseBefore === null ? undefined : isLeaseOver(leaseUntil, leaseBefore);
      const isAfter =
        after === null ? undefined : sql`(${leaseUntil}, ${id}) > (${after.leaseUntil ?? 0}, ${after.id})`;
      const orphans = qb
        .select(NOTIFICATION_COLUMNS)
        .from(outbox)
        .where(and(queueTable(kind).active, isAfter, isOver));
      return queue.readAll(await raw(reader, orphans.orderBy(leaseUntil, id).limit(limit)));
    },
  };
}

const PAYLOAD = prepare({ id: "text" }, (arg) =>
  qb.select({ payload: outbox.payload }).from(outbox).where(eq(outbox.id, arg.id)),
);

const CREATOR = prepare({ id: "text" }, (arg) => {
  const { id, accountId } = apiKeys;
  const hasNone = and(isNotNull(id), ...Object.values(keyLimits(apiKeys)).map((limit) => isNull(limit)));
  const isLimited = sql<number>`case when ${actions.keyId} = '' or (${hasNone}) then 0 else 1 end`.as("is_limited");
  const creators = qb.select({ role: actions.keyRole, hold: actions.keyHold, isLimited }).from(outbox);
  const withAction = creators.innerJoin(actions, eq(actions.id, outbox.actionId));
  const isKey = and(eq(id, actions.keyId), eq(accountId, actions.accountId));
  return withAction.leftJoin(apiKeys, isKey).where(eq(outbox.id, arg.id));
});

/** Identifies the claim to which a timeline row belongs. */
function subjectOf({ id, attempts, leaseUntil }: Notification): string {
  return `${id} ${attempts} ${leaseUntil?.getTime() ?? ""}`;
}

/** A claim is identified by the attempts and the lease of its row. */
export function createOutboxStore(db: ActionAccess): OutboxStore {
  const { reader, writer } = db;
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
    async findCreator(id) {
      const [row] = await CREATOR.raw(reader, { id });
      const [creator] = row === undefined ? [] : readable([row], readCreator);
      return creator === undefined ? null : { ...creator, isLimited: row?.["is_limited"] !== 0 };
    },
    settle(change, at) {
      const { before, status, attempts, dueAt, lastError, event } = change;
      const eventOf = ({ type: _type, ...detail }: TimelineEvent) => {
        const row = { at: at.getTime(), type: before.message.kind, subject: subjectOf(before) };
        return { ...row, detail: JSON.stringify(detail) };
      };
      return writer.run(settleNotifications, {
        id: before.id,
        claim: [before.attempts, before.leaseUntil?.getTime() ?? null],
        row: valuesOf(SETTLED, { status, attempts, dueAt, scheduledAt: at, leaseUntil: null, lastError }),
        isDelivered: status === "delivered",
        event: event === null ? null : eventOf(event),
      });
    },
    // Only this result can have written its timeline row. A result without such a row shows in the notification itself.
    isSettled({ before, status, event }, at) {
      const { id, actionId } = before;
      if (event === null) return hasRow(reader, outbox, hasValues(outbox, { id, status, scheduledAt: at }));
      return hasRow(reader, timeline, hasValues(timeline, { actionId, subject: subjectOf(before), at }));
    },
    async list(accountId, before, limit) {
      const entries: OutboxEntry[] = [];
      let from = before ?? AFTER_ALL_IDS;
      // The caller takes fewer for the last page, so read on for those that can't be read.
      for (let looked = 0; looked < LIST_SCAN_ROWS_MAX && entries.length < limit; looked += limit) {
        if (looked > 0) await nextTurn();
        const isEarlier = and(eq(outbox.accountId, accountId), lt(outbox.id, from));
        const newestFirst = qb.select(NOTIFICATION_COLUMNS).from(outbox).where(isEarlier).orderBy(desc(outbox.id));
        const rows = await raw(reader, newestFirst.limit(limit));
        entries.push(...readable(rows, entryOf));
        if (rows.length < limit) break;
        from = String(rows.at(-1)?.["id"]);
      }
      return entries.slice(0, limit);
    },
    async waiting() {
      const unsent = async (kind: NotificationKind) => {
        const { pending, active } = queueTable(kind);
        return (await countSome(reader, outbox, pending)) + (await countSome(reader, outbox, active));
      };
      return { callback: await unsent("callback"), mail: await unsent("mail"), message: await unsent("message") };
    },
  };
}
