/** What is written of notifications: how attempts end, whether a mail may be sent now, and those that are not about an action. */
import { and, eq, gt, gte, like, lt, ne, or, type SQL, sql } from "drizzle-orm";
import {
  MAIL_WINDOW_MS,
  MAILS_PER_ACCOUNT_MAX,
  MAILS_PER_PERSON_MAX,
  MAILS_PER_RECIPIENT_MAX,
} from "../../src/core/limits.ts";
import { eventName } from "../../src/core/notification-events.ts";
import type { Notification } from "../../src/core/notification.ts";
import type { OutboxRow, OutboxStore } from "../../src/core/store.ts";
import { mailLocks } from "../sql/locks.ts";
import { countRows, findRow, hasRow, hasValues, prepare, qb } from "../sql/read.ts";
import { actions, members, outbox, people } from "../tables.ts";
import { EVENTS } from "./actions.ts";
import { command, deleteSome, listCommand, type Tx, updateEach, updateList, type Values } from "./command.ts";

/** What the end of an attempt writes. */
export const SETTLED = ["status", "attempts", "dueAt", "scheduledAt", "leaseUntil", "lastError"] as const;

/** Identifies a claim. It includes the lease, since a claim that is given back leaves the number of attempts as it was. */
const CLAIM = ["id", "attempts", "leaseUntil", "status"] as const;

const SETTLE = updateList(outbox, SETTLED, CLAIM);

/** Drops the body of a delivered callback, which may be a megabyte. */
const DELIVER = updateList(outbox, [...SETTLED, "payload"], CLAIM);

interface NotificationEnd {
  readonly id: string;
  /** The attempts and the lease of the claim, in milliseconds. */
  readonly claim: readonly [attempts: number, leaseUntil: number | null];
  readonly row: Values;
  readonly isDelivered: boolean;
  /** A timeline row, without what is in the notification and its action. */
  readonly event: {
    readonly at: number;
    readonly type: string;
    readonly subject: string;
    readonly detail: string;
  } | null;
}

/** Writes how attempts ended. Returns for each whether it was written: not if its claim was lost. */
export const settleNotifications = listCommand(
  async (tx, list: readonly NotificationEnd[]): Promise<readonly boolean[]> => {
    const claimValues = ({ id, claim }: NotificationEnd) => [id, ...claim, "active"];
    const [delivered, others] = [list.filter((one) => one.isDelivered), list.filter((one) => !one.isDelivered)];
    const written = new Set([
      ...(await updateEach(tx.lists, SETTLE, others, (one) => [...one.row, ...claimValues(one)])),
      ...(await updateEach(tx.lists, DELIVER, delivered, (one) => [...one.row, null, ...claimValues(one)])),
    ]);
    const events = list.flatMap((one) =>
      one.event === null || !written.has(one) ? [] : [{ ...one.event, id: one.id }],
    );
    // None for actions that were deleted.
    const found = await tx.lists.find(ACTION_OF_NOTIFICATION, events);
    const rows = events.map(({ at, type, subject, detail }, n) =>
      (found[n] ?? []).map(({ actionId, accountId, run, revision, status }) => {
        return [actionId, accountId, at, run, revision, type, subject, status, detail];
      }),
    );
    await tx.lists.insert(EVENTS, rows.flat());
    return list.map((one) => written.has(one));
  },
  { locks: () => [], size: ({ event }) => ({ rows: 2, bytes: 200 + (event?.detail.length ?? 0) }) },
);

const ACTION_OF_NOTIFICATION = prepare({ id: "text" }, ({ id }) => {
  const { actionId, accountId, run, revision } = outbox;
  return qb
    .select({ actionId, accountId, run, revision, status: actions.status })
    .from(outbox)
    .innerJoin(actions, eq(actions.id, actionId))
    .where(eq(outbox.id, id));
});

/** Adds notifications that are not about an action, to be sent at once. */
export async function addNotifications(
  { db }: Tx,
  about: Pick<Notification, "actionId" | "accountId">,
  rows: readonly Pick<OutboxRow, "id" | "host" | "message">[],
  now: Date,
): Promise<void> {
  const due = { run: 1, revision: 1, attempts: 0, dueAt: now, scheduledAt: now, createdAt: now };
  for (const { message, ...row } of rows)
    await db.insert(outbox).values({ ...row, ...message, ...about, ...due, status: "pending" });
}

/** Deletes some notifications about things whose ids have this prefix, but none in flight. Returns whether there may be more. */
export function pruneNotifications(
  tx: Tx,
  prefix: "inv_" | "crq_" | "crd_",
  isOver: SQL | undefined,
): Promise<boolean> {
  // "`" is the character after "_".
  const isAbout = and(gte(outbox.actionId, prefix), lt(outbox.actionId, prefix.replace("_", "`")));
  return deleteSome(tx, [outbox.id], and(isAbout, isOver, ne(outbox.status, "active")));
}

/** `key`: the person's address, without case. */
async function isMember(tx: Tx, accountId: string, key: string): Promise<boolean> {
  const person = await findRow(tx, people, { emailKey: key });
  return person !== null && hasRow(tx, members, hasValues(members, { accountId, personId: person.id }));
}

const IS_SECOND = or(eq(outbox.event, "decided"), like(outbox.event, "reminded:%"));

export const permitMail = command<OutboxStore["permitMail"]>(
  async (tx, { id, attempts, host, accountId, message }, at) => {
    const hasSent = async (isSame: SQL | undefined, limit: number) => {
      const since = gt(outbox.sentAt, new Date(at.getTime() - MAIL_WINDOW_MS));
      // Repeats the condition of the partial indexes.
      const isSent = sql`${outbox.kind} = 'mail' and ${outbox.sentAt} is not null`;
      return (await countRows(tx, outbox, and(isSent, isSame, since, ne(outbox.id, id)), limit)) >= limit;
    };
    // Answers and reminders are half of the mails at most, so that there are some for new requests.
    const isSecond = ["decided", "reminded"].includes(eventName(message.event));
    const isFull = async (isSame: SQL | undefined, limit: number) =>
      (await hasSent(isSame, limit)) || (isSecond && (await hasSent(and(isSame, IS_SECOND), limit / 2)));
    const [isTo, isFrom] = [eq(outbox.host, host), eq(outbox.accountId, accountId)];
    // Counted apart, or whoever signs up could use up the mails of other accounts' people.
    const isOwn = await isMember(tx, accountId, host);
    if (isOwn && (await isFull(and(isTo, isFrom), MAILS_PER_RECIPIENT_MAX))) return false;
    if (await isFull(isTo, isOwn ? MAILS_PER_PERSON_MAX : MAILS_PER_RECIPIENT_MAX)) return false;
    if (await isFull(isFrom, MAILS_PER_ACCOUNT_MAX)) return false;
    const isClaim = hasValues(outbox, { id, attempts, status: "active" });
    const permitted = await tx.db.update(outbox).set({ sentAt: at }).where(isClaim).returning({ id: outbox.id });
    return permitted.length > 0;
  },
  ({ host, accountId }) => mailLocks(host, accountId),
);
