/** @jsxImportSource hono/jsx */
import type { OutboxEntry } from "../../db/store.ts";
import type { ListedHost } from "../accounts/callback-hosts.ts";
import { CALLBACK_HOSTS_MAX } from "../config/limits.ts";
import { askOf } from "../delivery/asks.ts";
import type { NotificationStatus } from "../delivery/notification.ts";
import { maskText, maskUrl } from "../receipts/masking.ts";
import { Button, Field, PostForm } from "./form.tsx";
import { Layout, render, SETTINGS_LINK } from "./layout.tsx";
import { Dot, Day, NextPage, PageHead, FieldRow, Time, type Tone, UntrustedText } from "./parts.tsx";
import { counted, mailName, type PageUser } from "./text.ts";

export interface NotificationsProps {
  /** Newest first. */
  readonly entries: readonly ListedNotification[];
  /** The cursor of older ones; null if there are none. */
  readonly before: string | null;
}

type ListedNotification = Pick<
  OutboxEntry,
  "actionId" | "message" | "status" | "attempts" | "createdAt" | "dueAt" | "lastError"
>;

export function notificationsPage({ user, ...props }: NotificationsProps & { readonly user: PageUser }): string {
  return render(
    <Layout title="Callbacks and emails" nav="Settings" user={user}>
      <PageHead title="Callbacks and emails" back={SETTINGS_LINK} />
      <Notifications {...props} />
    </Layout>,
  );
}

export function Notifications({ entries, before }: NotificationsProps) {
  if (entries.length === 0) return <p class="quiet">None so far.</p>;
  return (
    <>
      <ul class="card rows">
        {entries.map((entry) => (
          <NotificationRow {...entry} />
        ))}
      </ul>
      <NextPage
        href={before === null ? null : `/settings/callbacks?before=${encodeURIComponent(before)}`}
        name="Older"
      />
    </>
  );
}

const STATES: Readonly<Record<NotificationStatus, { readonly tone: Tone; readonly label: string }>> = {
  pending: { tone: "wait", label: "Waiting" },
  active: { tone: "busy", label: "Sending" },
  delivered: { tone: "good", label: "Delivered" },
  given_up: { tone: "bad", label: "Given up" },
  dropped: { tone: "still", label: "Not needed" },
};

function NotificationRow({ actionId, message, status, attempts, createdAt, dueAt, lastError }: ListedNotification) {
  const { kind, event, target } = message;
  return (
    <FieldRow>
      <p class="chips">
        <b>{nameOf(event, kind)}</b> <Dot tone={STATES[status].tone}>{STATES[status].label}</Dot>
      </p>
      <p class="line">
        <UntrustedText text={kind === "callback" ? maskUrl(target, "decider") : maskText(target, "decider")} />
      </p>
      <p class="quiet small">
        <Time at={createdAt} />, {attempts === 0 ? "not tried yet" : counted(attempts, "attempt")}
        {status === "pending" && dueAt !== null && attempts > 0 ? (
          <>
            , next <Time at={dueAt} near={createdAt} />
          </>
        ) : null}
        {kind === "mail" && event === "invited" ? (
          "."
        ) : (
          <>
            . Action{" "}
            <a href={`/actions/${actionId}`}>
              <code>{actionId}</code>
            </a>
          </>
        )}
      </p>
      {lastError === null || status === "delivered" ? null : (
        <p class="small reason">
          <UntrustedText text={maskText(lastError, "decider")} />
        </p>
      )}
    </FieldRow>
  );
}

/** The target of a message is the id of its channel. */
function nameOf(event: string, kind: string): string {
  const ask = askOf(event);
  if (ask === null) return kind === "mail" ? mailName(event) : event;
  return `${kind === "mail" ? "Email" : "Message"} of a channel${ask.kind === "reminded" ? " (reminder)" : ""}`;
}

interface CallbackHostsProps {
  readonly user: PageUser;
  readonly hosts: readonly ListedHost[];
  /** The refused input, and what is wrong with it. */
  readonly typed?: string;
  readonly problem?: string | null;
}

/** The hosts that callbacks may go to before an approval, with a form to add one. */
export function CallbackHosts({ user, hosts, typed = "", problem = null }: CallbackHostsProps) {
  return (
    <>
      <p class="quiet">
        Actions of a key with a hold wait for approval, but their callbacks are sent before that. They can go only to
        these hosts. Keys without a hold can use any host.
      </p>
      {hosts.length === 0 ? (
        <p>No hosts yet: callbacks of keys with a hold are refused.</p>
      ) : (
        <ul class="rows" aria-label="Callback hosts">
          {hosts.map((host) => (
            <HostRow {...host} user={user} />
          ))}
        </ul>
      )}
      {hosts.length >= CALLBACK_HOSTS_MAX && problem === null ? null : (
        <PostForm user={user} action="/settings/callback-hosts" class="ask">
          <Field
            name="host"
            label="Host"
            value={typed}
            hint="For example hooks.example.com or 10.0.0.7:8080. The default port is 443 for https and 80 for http."
            required
            autocomplete="off"
            problem={problem}
          />
          <Button>Add host</Button>
        </PostForm>
      )}
    </>
  );
}

function HostRow({ host, createdAt, user }: ListedHost & { readonly user: PageUser }) {
  const remove = (
    <PostForm user={user} action="/settings/callback-hosts/remove" fields={[["host", host]]}>
      <Button look="bad">
        Remove<span class="visually-hidden"> {host}</span>
      </Button>
    </PostForm>
  );
  return (
    <FieldRow aside={remove}>
      <p>
        <b class="untrusted">
          <UntrustedText text={host} />
        </b>{" "}
        <span class="quiet small">
          since <Day at={createdAt} />
        </span>
      </p>
    </FieldRow>
  );
}

/** The form on a page of its own, after invalid input. */
export function callbackHostsPage(props: CallbackHostsProps): string {
  return render(
    <Layout title="Callback hosts" nav="Settings" user={props.user}>
      <PageHead title="Callback hosts" back={SETTINGS_LINK} />
      <section class="card" aria-label="Hosts">
        <CallbackHosts {...props} />
      </section>
    </Layout>,
  );
}
