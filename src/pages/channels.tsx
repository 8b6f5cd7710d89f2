/** @jsxImportSource hono/jsx */
import { CHANNEL_KINDS, type Channel, type ChannelKind } from "../channels/channel.ts";
import { shownUrl } from "../channels/schemas.ts";
import { CHANNEL_ADDRESSES_MAX, CHANNELS_MAX } from "../config/limits.ts";
import { Button, Choices, Field, PostForm } from "./form.tsx";
import { Layout, render, SETTINGS_LINK } from "./layout.tsx";
import { Card, Dot, Facts, FieldRow, PageHead, Problem, Time, UntrustedText } from "./parts.tsx";
import { type Choice, duration, type PageUser } from "./text.ts";
import { ActorName } from "./timeline.tsx";

export const CHANNELS_PATH = "/settings/channels";

/** The fields of the form, by name. */
export type ChannelFields = Readonly<Record<(typeof CHANNEL_FIELDS)[number], string>>;

export const CHANNEL_FIELDS = ["name", "kind", "to", "url", "remind_after_minutes"] as const;

export const NO_CHANNEL_FIELDS: ChannelFields = { name: "", kind: "", to: "", url: "", remind_after_minutes: "" };

interface ChannelsPageProps {
  readonly user: PageUser;
  readonly channels: readonly Channel[];
  readonly typed?: ChannelFields;
  readonly problem?: string | undefined;
  /** How a test fared. */
  readonly notice?: string | undefined;
}

/** Where the account asks for approval. */
export function channelsPage({
  user,
  channels,
  typed = NO_CHANNEL_FIELDS,
  problem,
  notice,
}: ChannelsPageProps): string {
  return render(
    <Layout title="Channels" nav="Settings" user={user}>
      <PageHead title="Channels" back={SETTINGS_LINK}>
        <p>
          What awaits approval is told to every channel, with a link to its page. No message decides: that needs a
          sign-in.
        </p>
      </PageHead>
      {notice === undefined ? null : (
        <p role="status">
          <UntrustedText text={notice} />
        </p>
      )}
      {channels.length === 0 ? (
        <p class="quiet">No channels yet.</p>
      ) : (
        <ul class="card rows" aria-label="Channels">
          {channels.map((channel) => (
            <ChannelRow channel={channel} user={user} />
          ))}
        </ul>
      )}
      <Problem text={problem} />
      {channels.length >= CHANNELS_MAX ? null : <ChannelForm user={user} typed={typed} />}
    </Layout>,
  );
}

const KIND_LABELS: Readonly<Record<ChannelKind, string>> = { mail: "Email", slack: "Slack", webhook: "Webhook" };

const KIND_HINTS: Readonly<Record<ChannelKind, string>> = {
  mail: "To one or more addresses.",
  slack: "To an incoming webhook of Slack.",
  webhook: "A signed POST to a URL.",
};

const KIND_CHOICES: readonly Choice[] = CHANNEL_KINDS.map((kind) => ({
  value: kind,
  label: KIND_LABELS[kind],
  hint: KIND_HINTS[kind],
}));

function ChannelForm({ user, typed }: { readonly user: PageUser; readonly typed: ChannelFields }) {
  return (
    <Card id="add" title="Add a channel">
      <PostForm user={user} action={CHANNELS_PATH}>
        <Field name="name" label="Name" value={typed.name} hint="For example ops." required autocomplete="off" />
        <Choices name="kind" legend="Kind" choices={KIND_CHOICES} chosen={typed.kind === "" ? null : typed.kind} />
        <Field
          name="to"
          label="Addresses"
          type="lines"
          value={typed.to}
          hint={`For email: one a line, at most ${CHANNEL_ADDRESSES_MAX}.`}
        />
        <Field
          name="url"
          label="URL"
          value={typed.url}
          hint="For Slack and webhook. It is stored encrypted, and shown only in part."
          autocomplete="off"
        />
        <Field
          name="remind_after_minutes"
          label="Remind after"
          value={typed.remind_after_minutes}
          hint="Minutes, 5 to 10080, after which the question is repeated once. Empty: never."
          autocomplete="off"
        />
        <Button>Add channel</Button>
      </PostForm>
    </Card>
  );
}

function ChannelRow({ channel, user }: { readonly channel: Channel; readonly user: PageUser }) {
  const { id, name, kind, to, url, remindAfterMinutes, enabled, createdAt, createdBy } = channel;
  const ofName = (
    <span class="visually-hidden">
      {" "}
      <UntrustedText text={name} />
    </span>
  );
  const target = url === null ? to.join(", ") : shownUrl(url);
  const reminder = remindAfterMinutes === null ? "Never" : `After ${duration(remindAfterMinutes * 60_000)}, once`;
  const buttons = (
    <div class="buttons">
      <PostForm user={user} action={`${CHANNELS_PATH}/${id}/test`}>
        <Button look="plain">Test{ofName}</Button>
      </PostForm>
      <PostForm user={user} action={`${CHANNELS_PATH}/${id}/switch`} fields={[["enabled", String(!enabled)]]}>
        <Button look="plain">
          {enabled ? "Switch off" : "Switch on"}
          {ofName}
        </Button>
      </PostForm>
      <PostForm user={user} action={`${CHANNELS_PATH}/${id}/remove`}>
        <Button look="bad">Remove{ofName}</Button>
      </PostForm>
    </div>
  );
  return (
    <FieldRow aside={buttons}>
      <p class="chips">
        <b class="untrusted">
          <UntrustedText text={name} />
        </b>{" "}
        <Dot tone="still">{KIND_LABELS[kind]}</Dot>
        {enabled ? null : <Dot tone="wait">Off</Dot>}
      </p>
      <Facts
        rows={[
          [
            kind === "mail" ? "Addresses" : "URL",
            target === "" ? "Can’t be read: remove the channel, and add it again." : <UntrustedText text={target} />,
          ],
          ["Reminder", reminder],
          ["Added", <Time at={createdAt} />],
          ["By", <ActorName actor={createdBy} />],
        ]}
      />
    </FieldRow>
  );
}
