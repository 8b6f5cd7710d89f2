import { and, count, desc, eq, gt, isNotNull, isNull, lt, ne, type SQL, sql } from "drizzle-orm";
import { MAIL_WINDOW_MS, MAILS_PER_ACCOUNT_MAX, MAILS_PER_RECIPIENT_MAX } from "../../src/core/limits.ts";
import type { Notification, NotificationKind } from "../../src/core/notification.ts";
import type { OutboxStore, Queue } from "../../src/core/store.ts";
import type { TimelineEvent } from "../../src/core/timeline.ts";
import type { StoreContext } from "../sql/context.ts";
import { valuesOf } from "../sql/create.ts";
import { hasValues } from "../sql/dialect.ts";
import { mailLocks } from "../sql/locks.ts";
import { entryOf, notificationColumns, notificationOf } from "../sql/outbox-rows.ts";
import { countNotifications, createQueue } from "../sql/queue.ts";
import { read } from "../sql/read.ts";
import { Columns, creatorIn } from "../sql/rows.ts";
import { EVENTS } from "./actions.ts";
import { command, listCommand } from "./command.ts";
import { updateList, type Values } from "./lists.ts";
import * as reschedule from "./reschedule.ts";

/** What the end of an attempt writes. */
const SETTLED = ["status", "attempts", "dueAt", "scheduledAt", "leaseUntil", "lastError"] as const;

/** A returned claim does not count, so claims with the same number of attempts are told apart by their leases. */
const CLAIM = ["id", "attempts", "leaseUntil", "status"] as const;

const SETTLE = updateList("outbox", SETTLED, CLAIM);

/** A delivered callback needs its body no more, which may be a megabyte. */
const DELIVER = updateList("outbox", [...SETTLED, "payload"], CLAIM);

/** A row of the timeline but for what the rows of the notification and its action say. */
interface NotificationEvent {
  readonly at: number;
  readonly type: string;
  readonly subject: string;
  /** JSON. */
  readonly detail: string;
}

interface NotificationEnd {
  readonly id: string;
  /** The attempts and the lease of the claim, in milliseconds. */
  readonly claim: readonly [attempts: number, leaseUntil: number | null];
  readonly row: Values;
  readonly isDelivered: boolean;
  readonly event: NotificationEvent | null;
}

/** Writes how attempts ended; whether each was written: its claim still held. */
export const settle = listCommand(
  async (tx, list: readonly NotificationEnd[]): Promise<readonly boolean[]> => {
    const isWritten = list.map(() => false);
    for (const isDelivered of [false, true]) {
      const places = [...list.keys()].filter((at) => list[at]?.isDelivered === isDelivered);
      const rows = places.map((at) => {
        const { id = "", row = [], claim = [0, null] } = list[at] ?? {};
        return [...row, ...(isDelivered ? [null] : []), id, ...claim, "active"];
      });
      const done = await tx.lists.update(isDelivered ? DELIVER : SETTLE, rows);
      for (const [n, at] of places.entries()) isWritten[at] = done[n] === true;
    }
    const events = list.flatMap(({ id, event }, at) =>
      event === null || isWritten[at] !== true ? [] : { ...event, id },
    );
    // Those of the actions that are still there.
    const found = await tx.lists.find(TOLD, events);
    const rows = events.map(({ at, type, subject, detail }, n) =>
      (found[n] ?? []).map(({ actionId, accountId, run, revision, status }) => {
        return [actionId, accountId, at, run, revision, type, subject, status, detail];
      }),
    );
    await tx.lists.insert(EVENTS, rows.flat());
    return isWritten;
  },
  { locks: () => [], size: ({ event }) => ({ rows: 2, bytes: 200 + (event?.detail.length ?? 0) }) },
);

const TOLD = read({ id: "text" }, ({ db, tables: { actions, outbox } }, { id }) => {
  const { actionId, accountId, run, revision } = outbox;
  return db
    .select({ actionId, accountId, run, revision, status: actions.status })
    .from(outbox)
    .innerJoin(actions, eq(actions.id, actionId))
    .where(eq(outbox.id, id));
});

type Permit = Pick<Notification, "id" | "attempts" | "host" | "accountId"> & { readonly at: Date };

/** Notes that a claimed mail is sent now, unless its recipient or account has had as many within the hour as they may. */
export const permitMail = command(
  async (tx, { id, attempts, host, accountId, at }: Permit) => {
    const { outbox } = tx.tables;
    const others = async (isSame: SQL, limit: number) => {
      const since = gt(outbox.sentAt, new Date(at.getTime() - MAIL_WINDOW_MS));
      // The words of the partial indexes of sent mails.
      const isSent = sql`${outbox.kind} = 'mail' and ${outbox.sentAt} is not null`;
      const isOther = and(isSent, isSame, since, ne(outbox.id, id));
      const sent = tx.db.select({ id: outbox.id }).from(outbox).where(isOther).limit(limit).as("counted");
      const [row] = await tx.db.select({ sent: count() }).from(sent);
      return row?.sent ?? 0;
    };
    if ((await others(eq(outbox.host, host), MAILS_PER_RECIPIENT_MAX)) >= MAILS_PER_RECIPIENT_MAX) return false;
    if ((await others(eq(outbox.accountId, accountId), MAILS_PER_ACCOUNT_MAX)) >= MAILS_PER_ACCOUNT_MAX) return false;
    const isClaim = hasValues(outbox, { id, attempts, status: "active" });
    const permitted = await tx.db.update(outbox).set({ sentAt: at }).where(isClaim).returning({ id: outbox.id });
    return permitted.length > 0;
  },
  ({ host, accountId }) => mailLocks(host, accountId),
);

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
      writer.run(permitMail, { id, attempts, host, accountId, at }),
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
