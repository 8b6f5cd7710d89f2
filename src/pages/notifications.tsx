/** @jsxImportSource hono/jsx */
import type { NotificationStatus, NewNotification } from "../delivery/notification.ts";
import { maskText, maskUrl } from "../receipts/masking.ts";
import { UntrustedText } from "./code.tsx";
import { Layout, render } from "./layout.tsx";
import { Chip, Time, type Tone } from "./parts.tsx";
import { type PageUser, counted, mailName } from "./words.ts";

/** A callback or mail and its state. */
export interface ShownNotification {
  readonly actionId: string;
  readonly message: NewNotification;
  readonly status: NotificationStatus;
  readonly attempts: number;
  readonly createdAt: Date;
  /** The time of the next attempt; null if it is in progress or finished. */
  readonly dueAt: Date | null;
  readonly lastError: string | null;
}

export interface NotificationsProps {
  /** Newest first. */
  readonly entries: readonly ShownNotification[];
  /** The cursor of older ones; null if there are none. */
  readonly before: string | null;
}

export function notificationsPage({ user, ...props }: NotificationsProps & { readonly user: PageUser }): string {
  return render(
    <Layout title="Callbacks and emails" place="Settings" user={user}>
      <div class="head">
        <p class="small">
          <a href="/settings">Settings</a>
        </p>
        <h1>Callbacks and emails</h1>
      </div>
      <Notifications {...props} />
    </Layout>,
  );
}

/** Newest first. */
export function Notifications({ entries, before }: NotificationsProps) {
  if (entries.length === 0) return <p class="quiet">None so far.</p>;
  return (
    <>
      <ul class="card rows">
        {entries.map((entry) => (
          <Row entry={entry} />
        ))}
      </ul>
      {before === null ? null : (
        <p>
          <a class="button button-plain" href={`/settings/callbacks?before=${encodeURIComponent(before)}`}>
            Older
          </a>
        </p>
      )}
    </>
  );
}

const STATES: Readonly<Record<NotificationStatus, { readonly tone: Tone; readonly word: string }>> = {
  pending: { tone: "wait", word: "Waiting" },
  active: { tone: "busy", word: "Sending" },
  delivered: { tone: "good", word: "Delivered" },
  given_up: { tone: "bad", word: "Given up" },
  dropped: { tone: "still", word: "Not needed" },
};

function Row({ entry }: { readonly entry: ShownNotification }) {
  const { message, status, attempts, createdAt, dueAt, lastError } = entry;
  const { tone, word } = STATES[status];
  return (
    <li class="row-split">
      <div class="stack">
        <p class="chips">
          <b>{message.kind === "mail" ? mailName(message.event) : message.event}</b> <Chip tone={tone}>{word}</Chip>
        </p>
        <p class="line">
          <UntrustedText
            text={message.kind === "mail" ? maskText(message.target, "decider") : maskUrl(message.target, "decider")}
          />
        </p>
        <p class="quiet small">
          <Time at={createdAt} />, {attempts === 0 ? "not tried yet" : counted(attempts, "attempt")}
          {status === "pending" && dueAt !== null && attempts > 0 ? (
            <>
              , next <Time at={dueAt} near={createdAt} />
            </>
          ) : null}
          . Action{" "}
          <a href={`/actions/${entry.actionId}`}>
            <code>{entry.actionId}</code>
          </a>
        </p>
        {lastError === null || status === "delivered" ? null : (
          <p class="small reason">
            <UntrustedText text={maskText(lastError, "decider")} />
          </p>
        )}
      </div>
    </li>
  );
}
