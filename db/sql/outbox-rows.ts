import { getTableColumns } from "drizzle-orm";
import type { Notification, NewNotification, NotificationKind } from "../../src/core/notification.ts";
import type { OutboxEntry } from "../../src/core/store.ts";
import type { Tables } from "../commands/command.ts";
import { Columns, without } from "./rows.ts";
import { outbox } from "../libsql/schema.ts";
import type { Row } from "./sql.ts";

/** All that a notification is read from: its body is read when it is sent. */
export const notificationColumns = (table: Tables["outbox"]) =>
  without(getTableColumns(table), ["revision", "payload", "scheduledAt", "sentAt", "claimedBy"]);

const KINDS = ["callback", "mail", "message"] as const satisfies readonly NotificationKind[];

const STATUSES = ["pending", "active", "delivered", "given_up", "dropped"] as const;

/** Never throws: a row that was altered in the database becomes a notification with `isAltered`. */
export function notificationOf(row: Row): Notification {
  return read(new Columns(row));
}

export function entryOf(row: Row): OutboxEntry {
  const columns = new Columns(row);
  return {
    ...read(columns),
    status: columns.oneOf(outbox.status, STATUSES, "given_up"),
    dueAt: columns.timeOrNull(outbox.dueAt),
    createdAt: columns.time(outbox.createdAt),
    lastError: columns.textOrNull(outbox.lastError),
  };
}

function read(columns: Columns): Notification {
  const kind = columns.oneOf(outbox.kind, KINDS, "callback");
  const notification: Notification = {
    id: columns.text(outbox.id),
    actionId: columns.text(outbox.actionId),
    accountId: columns.text(outbox.accountId),
    run: columns.count(outbox.run, 1),
    // Safe: `create.ts` writes only events of the kind; an altered one is only shown.
    message: { kind, event: columns.text(outbox.event), target: columns.text(outbox.target) } as NewNotification,
    host: columns.text(outbox.host),
    keyId: columns.text(outbox.keyId),
    attempts: columns.count(outbox.attempts, 0),
    leaseUntil: columns.timeOrNull(outbox.leaseUntil),
  };
  return columns.isAltered ? { ...notification, isAltered: true } : notification;
}
