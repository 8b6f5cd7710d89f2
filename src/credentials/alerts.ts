import type { Channel } from "../core/channel.ts";
import { alertDue } from "../core/credential.ts";
import { PEOPLE_PER_ACCOUNT_MAX } from "../core/limits.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { alertEvent, hostOf, type NewNotification } from "../core/notification-events.ts";

/** Who is notified about credentials, and how what waits for them is sent. */
export interface ToldNeeds {
  readonly channelsOf: (accountId: string) => readonly Channel[];
  /** Called when notifications wait. */
  readonly onWaiting: (kind: Recipient["kind"], accountId: string, host: string) => void;
}

/** Owners by mail, and channels that are no mail: channels of mail may have others. */
export async function recipientsOf(
  { store, config }: AppContext,
  { channelsOf }: Pick<ToldNeeds, "channelsOf">,
  accountId: string,
): Promise<readonly Recipient[]> {
  const members = config.mail === null ? [] : await store.team.members(accountId, PEOPLE_PER_ACCOUNT_MAX);
  const owners = members.filter(({ role }) => role === "owner");
  const channels = channelsOf(accountId).filter(({ kind, enabled }) => kind !== "mail" && enabled);
  return [
    ...owners.map(({ email }) => ({ kind: "mail", target: email }) as const),
    ...channels.map(({ id }) => ({ kind: "message", target: id }) as const),
  ];
}

/** Tells the owners of accounts, and their channels that are no mail, that credentials end. */
export function createCredentialAlerts(app: AppContext, needs: ToldNeeds) {
  const { ids } = app;
  const { credentials } = app.store;
  /** Tells each end once, however many processes run this. */
  return async (now: Date, stop: AbortSignal): Promise<void> => {
    for (const credential of await credentials.list(null)) {
      if (stop.aborted) return;
      const due = alertDue(credential, now);
      if (due === null) continue;
      const { accountId, id } = credential;
      const messages = (await recipientsOf(app, needs, accountId)).map((one, at) => ({
        ...one,
        event: alertEvent(due, at),
      }));
      const rows = messages.map((message) => ({ id: ids.row(now), host: hostOf(message), message }));
      if (await credentials.addAlert({ accountId, id, expiresAt: due.expiresAt }, rows, now)) {
        for (const { host, message } of rows) needs.onWaiting(message.kind, accountId, host);
      }
    }
    while (!stop.aborted && (await credentials.pruneAlerts(now)));
  };
}

type Recipient = Pick<Extract<NewNotification, { kind: "mail" | "message" }>, "kind" | "target">;
