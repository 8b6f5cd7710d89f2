import type { Notification, NewNotification, NotificationKind } from "../../src/delivery/notification.ts";
import type { OutboxEntry } from "../store.ts";
import { Columns } from "./rows.ts";
import type { Row } from "./sql.ts";

/** All columns but the body, which is read when it is sent. */
export const NOTIFICATION_COLUMNS = [
  "id",
  "action_id",
  "account_id",
  "run",
  "kind",
  "event",
  "target",
  "host",
  "attempts",
  "lease_until",
  "key_id",
].join(", ");

export const ENTRY_COLUMNS = `${NOTIFICATION_COLUMNS}, status, due_at, created_at, last_error`;

const KINDS = ["callback", "mail"] as const satisfies readonly NotificationKind[];

const STATUSES = ["pending", "active", "delivered", "given_up", "dropped"] as const;

/** Never throws: a row that was altered in the database becomes a notification with `isAltered`. */
export function notificationOf(row: Row): Notification {
  return read(new Columns(row));
}

export function entryOf(row: Row): OutboxEntry {
  const columns = new Columns(row);
  return {
    ...read(columns),
    status: columns.oneOf("status", STATUSES, "given_up"),
    dueAt: columns.timeOrNull("due_at"),
    createdAt: columns.time("created_at"),
    lastError: columns.textOrNull("last_error"),
  };
}

function read(columns: Columns): Notification {
  const kind = columns.oneOf("kind", KINDS, "callback");
  const notification: Notification = {
    id: columns.text("id"),
    actionId: columns.text("action_id"),
    accountId: columns.text("account_id"),
    run: columns.count("run", 1),
    // Safe: `create.ts` writes only events of the kind; an altered one is only shown.
    message: { kind, event: columns.text("event"), target: columns.text("target") } as NewNotification,
    host: columns.text("host"),
    keyId: columns.text("key_id"),
    attempts: columns.count("attempts", 0),
    leaseUntil: columns.timeOrNull("lease_until"),
  };
  return columns.isBroken ? { ...notification, isAltered: true } : notification;
}
