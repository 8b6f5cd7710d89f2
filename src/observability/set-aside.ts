import type { Log, LogFields } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import type { NotificationKind } from "../core/notification-events.ts";

interface Reports {
  readonly log: Pick<Log, "error">;
  readonly metrics: Pick<Metrics, "setAside">;
}

/** Reports a row that somebody has altered in the database, and of which nothing is sent any more. */
export function reportSetAside(
  { log, metrics }: Reports,
  of: "action" | NotificationKind,
  id: string,
  fields: LogFields,
): void {
  metrics.setAside(of);
  const message = "Its row was altered where it is stored, and nothing of it is sent any more.";
  if (of === "action") log.error("action.set_aside", { action_id: id, message, ...fields });
  else log.error("notification.set_aside", { id, message, ...fields });
}
