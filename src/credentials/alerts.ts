import type { Channel } from "../core/channel.ts";
import { alertDue } from "../core/credential.ts";
import { PEOPLE_PER_ACCOUNT_MAX } from "../core/limits.ts";
import { alertEvent, notificationHost, type NotificationKind } from "../core/notification-events.ts";
import type { AppContext } from "../runtime/app-context.ts";

type NoticeKind = Exclude<NotificationKind, "callback">;

/** Notifications for owners by mail, and for channels except mail channels, which may have other recipients. */
export type OwnerNotices = ReturnType<typeof createOwnerNotices>;

export function createOwnerNotices(
  { store, config, ids }: AppContext,
  findChannels: (accountId: string) => readonly Channel[],
  /** Called when notifications wait. */
  onWaiting: (kind: NoticeKind, accountId: string, host: string) => void,
) {
  /** The outbox rows. `makeEvent`: the event for the recipient at this index. */
  const rowsFor = async <Event extends string>(accountId: string, now: Date, makeEvent: (place: number) => Event) => {
    const members = config.mail === null ? [] : await store.team.members(accountId, PEOPLE_PER_ACCOUNT_MAX);
    const owners = members.filter(({ role }) => role === "owner");
    const channels = findChannels(accountId).filter(({ kind, enabled }) => kind !== "mail" && enabled);
    const recipients = [
      ...owners.map(({ email }) => ({ kind: "mail", target: email }) as const),
      ...channels.map(({ id }) => ({ kind: "message", target: id }) as const),
    ];
    return recipients.map((one, at) => ({
      id: ids.row(now),
      host: notificationHost(one),
      message: { ...one, event: makeEvent(at) },
    }));
  };
  return {
    rowsFor,
    /** Call this after the commit of the rows. */
    written(accountId: string, rows: Awaited<ReturnType<typeof rowsFor>>): void {
      for (const { host, message } of rows) onWaiting(message.kind, accountId, host);
    },
  };
}

/** Notifies owners and channels that credentials end: once for each end, however many processes run this. */
export function createCredentialAlerts({ store: { credentials } }: AppContext, notices: OwnerNotices) {
  return async (now: Date, stop: AbortSignal): Promise<void> => {
    for (const credential of await credentials.list(null)) {
      if (stop.aborted) return;
      const due = alertDue(credential, now);
      if (due === null) continue;
      const { accountId, id } = credential;
      const rows = await notices.rowsFor(accountId, now, (place) => alertEvent(due, place));
      if (await credentials.addAlert({ accountId, id, expiresAt: due.expiresAt }, rows, now)) {
        notices.written(accountId, rows);
      }
    }
    while (!stop.aborted && (await credentials.pruneAlerts(now)));
  };
}
