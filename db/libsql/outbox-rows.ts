import type { Notification, NotificationStatus } from "../../src/domain/notification.ts";
import type { Owed } from "../../src/domain/owed.ts";
import type { OutboxEntry } from "../../src/ports/store.ts";
import { date } from "./rows.ts";
import type { Row } from "./sql.ts";

/** All of a row but its body, which is read when it is sent. */
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
].join(", ");

export const ENTRY_COLUMNS = `${NOTIFICATION_COLUMNS}, status, due_at, created_at, last_error`;

export function notificationOf(row: Row): Notification {
  return {
    id: row["id"] as string,
    actionId: row["action_id"] as string,
    accountId: row["account_id"] as string,
    run: row["run"] as number,
    // Safe, here and above: the columns hold what `side-rows.ts` wrote, and nothing else writes them.
    owed: { kind: row["kind"], event: row["event"], target: row["target"] } as Owed,
    host: row["host"] as string,
    attempts: row["attempts"] as number,
    leaseUntil: date(row["lease_until"]),
  };
}

export function entryOf(row: Row): OutboxEntry {
  return {
    ...notificationOf(row),
    status: row["status"] as NotificationStatus,
    dueAt: date(row["due_at"]),
    createdAt: new Date(row["created_at"] as number),
    lastError: row["last_error"] as string | null,
  };
}
