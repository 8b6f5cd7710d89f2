/** @jsxImportSource hono/jsx */
import { NOTIFICATIONS_SHOWN_MAX } from "../../core/limits.ts";
import { seeOther } from "../../http/response.ts";
import type { OutboxEntry } from "../../core/store.ts";
import type { NotificationStatus } from "../../core/notification.ts";
import { maskText, maskUrl } from "../../receipts/masking.ts";
import { actionPath, render } from "../../ui/layout.tsx";
import { Dot, listedTime, Name, NextPage, until, untrusted } from "../../ui/parts.tsx";
import { counted, mailName, type PageUser } from "../../ui/text.ts";
import { personPages, type PageDeps } from "../frame/page-deps.ts";
import { List, None } from "../frame/list.tsx";
import { SETTINGS_PATHS, SettingsPage } from "../frame/settings-frame.tsx";
import { parseAsk, parseAlert, isAboutAction, isCredentialRequested } from "../../core/notification-events.ts";

interface NotificationsProps {
  readonly user: PageUser;
  /** Newest first. */
  readonly entries: readonly ListedNotification[];
  /** The cursor for older ones; null if there are none. */
  readonly before: string | null;
  readonly channels: ReadonlyMap<string, string>;
  readonly now: Date;
}

type ListedNotification = Pick<
  OutboxEntry,
  "actionId" | "message" | "status" | "attempts" | "createdAt" | "dueAt" | "lastError"
>;

export function notificationsPage({ user, entries, before, channels, now }: NotificationsProps): string {
  return render(
    <SettingsPage
      user={user}
      section="Notifications"
      intro={
        <>
          Every callback, email and message of a channel, newest first. <a href="/docs/events">When they are sent</a>
        </>
      }
      now={now}
    >
      <List
        title="Notifications"
        rows={entries}
        columns={[
          ["When", ({ createdAt }) => listedTime(createdAt, "short")],
          ["What", ({ message: { event, kind } }) => eventName(event, kind)],
          ["To", (entry) => recipientCell(entry, channels), "wide"],
          ["Result", (entry) => resultCell(entry, now)],
          ["Attempts", ({ attempts }) => (attempts === 0 ? <None /> : attempts), "number"],
        ]}
        actions={({ actionId, attempts, message: { event } }) =>
          !isAboutAction(event) ? null : (
            <a href={actionPath(actionId)} title={actionId}>
              Action<span class="visually-hidden">, {counted(attempts, "attempt")}</span>
            </a>
          )
        }
        empty={{
          icon: "inbox",
          title: "No notifications yet",
          text: (
            <>
              They follow from actions: give an action a <code>callback</code>, or{" "}
              <a href={SETTINGS_PATHS.channels}>add a channel</a> that asks for approvals.
            </>
          ),
        }}
      />
      <NextPage
        href={before === null ? null : `${SETTINGS_PATHS.notifications}?before=${encodeURIComponent(before)}`}
        name="Older"
      />
    </SettingsPage>,
  );
}

const STATES = {
  pending: { tone: "wait", children: "Waiting" },
  active: { tone: "busy", children: "Sending" },
  delivered: { tone: "good", children: "Delivered" },
  given_up: { tone: "bad", children: "Given up" },
  dropped: { tone: "still", children: "Not needed" },
} as const satisfies Record<NotificationStatus, Parameters<typeof Dot>[0]>;

function recipientCell({ message, status, lastError }: ListedNotification, channels: ReadonlyMap<string, string>) {
  const { kind, target } = message;
  const channel = kind === "message" ? channels.get(target) : undefined;
  return (
    <>
      {channel === undefined ? (
        untrusted(kind === "callback" ? maskUrl(target, "decider") : maskText(target, "decider"))
      ) : (
        <Name text={channel} />
      )}
      {lastError === null || status === "delivered" ? null : (
        <span class="says says-bad">{untrusted(maskText(lastError, "decider"))}</span>
      )}
    </>
  );
}

function resultCell({ status, attempts, dueAt }: ListedNotification, now: Date) {
  return (
    <>
      <Dot {...STATES[status]} />
      {status === "pending" && dueAt !== null && attempts > 0 ? (
        <span class="says nowrap">again {until(dueAt, now)}</span>
      ) : null}
    </>
  );
}

/** Names an event. A message's target is its channel's id. */
function eventName(event: string, kind: string): string {
  const ask = parseAsk(event);
  if (parseAlert(event) !== null) return kind === "mail" ? "Credential email" : "Credential message";
  if (isCredentialRequested(event)) return `Credential request ${kind === "mail" ? "email" : "message"}`;
  if (ask === null) return kind === "mail" ? mailName(event) : event;
  return `${kind === "mail" ? "Channel email" : "Channel message"}${ask.kind === "reminded" ? " (reminder)" : ""}`;
}

export function notificationPages(deps: PageDeps) {
  const { listNotifications, channelService, clock } = deps;
  return personPages(deps)
    .get(SETTINGS_PATHS.notifications, async ({ context: { search }, person }) => {
      const before = new URLSearchParams(search).get("before") ?? "";
      const [found, channels] = await Promise.all([
        listNotifications(person.caller, /^[A-Za-z0-9_-]{1,64}$/.test(before) ? before : null, NOTIFICATIONS_SHOWN_MAX),
        channelService.list(person.caller),
      ]);
      const names = new Map(channels.map(({ id, name }) => [id, name]));
      return notificationsPage({ user: person, ...found, channels: names, now: clock.now() });
    })
    .get("/settings/callbacks", () => seeOther("own", SETTINGS_PATHS.notifications));
}
