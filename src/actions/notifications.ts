import { authorize, type Caller } from "../domain/caller.ts";
import type { OutboxEntry, OutboxStore } from "../ports/store.ts";

export interface NotificationPage {
  /** Newest first. */
  readonly entries: readonly OutboxEntry[];
  /** Where the next page begins; null when there is none. */
  readonly before: string | null;
}

/** The callbacks and mails that the caller's account is or was owed, and how each has gone. */
export type ListNotifications = (caller: Caller, before: string | null, limit: number) => Promise<NotificationPage>;

export function createListNotifications(outbox: Pick<OutboxStore, "list">): ListNotifications {
  return async (caller, before, limit) => {
    authorize(caller, "manage");
    const found = await outbox.list(caller.accountId, before, limit + 1);
    const entries = found.slice(0, limit);
    return { entries, before: found.length > limit ? (entries.at(-1)?.id ?? null) : null };
  };
}
