/** @jsxImportSource hono/jsx */
import Type from "typebox";
import { type Checked, compile } from "../../api/check.ts";
import { nullable } from "../../api/schema-helpers.ts";
import { ChannelParams, CreateChannelBody, shownUrl } from "../../channels/channels.ts";
import { type Channel, CHANNEL_KINDS, type ChannelKind, POSTED_KINDS } from "../../core/channel.ts";
import {
  CHANNEL_ADDRESSES_MAX,
  CHANNELS_MAX,
  MINUTE_MS,
  REMIND_MINUTES_MAX,
  REMIND_MINUTES_MIN,
} from "../../core/limits.ts";
import { ago, Dot, Name, untrusted } from "../../ui/parts.tsx";
import { duration } from "../../ui/text.ts";
import { unlessGone } from "../frame/forms.ts";
import type { ById, PageDeps } from "../frame/page-deps.ts";
import { schemaForm } from "../frame/schema-form.tsx";
import { AddedBy, None, RowAction, RowMenu } from "../frame/list.tsx";
import { SETTINGS_PATHS } from "../frame/settings-frame.tsx";
import { settingsList } from "../frame/settings-list.tsx";

const CHANNELS_PATH = SETTINGS_PATHS.channels;

const KINDS: Readonly<Record<ChannelKind, { readonly label: string; readonly hint: string }>> = {
  mail: { label: "Email", hint: "To one or more addresses." },
  slack: { label: "Slack", hint: "To an incoming webhook of Slack." },
  webhook: { label: "Webhook", hint: "A signed POST to a URL." },
};

const CHANNEL_FORM = schemaForm(CreateChannelBody, {
  name: { hint: "For example ops." },
  kind: {
    choices: CHANNEL_KINDS.map((value) => ({ value, ...KINDS[value] })),
    wrong: "Choose where messages go.",
  },
  to: { label: "Addresses", hint: `For email: one a line, at most ${CHANNEL_ADDRESSES_MAX}.`, onlyFor: ["mail"] },
  url: {
    label: "URL",
    hint: "For Slack and webhook. It is stored encrypted, and shown only in part.",
    onlyFor: POSTED_KINDS,
  },
  remind_after_minutes: {
    label: "Remind after",
    hint: `Minutes, ${REMIND_MINUTES_MIN} to ${REMIND_MINUTES_MAX}, after which the question is repeated once. Empty: never.`,
    wrong: `Enter ${REMIND_MINUTES_MIN} to ${REMIND_MINUTES_MAX} minutes, or nothing.`,
  },
});

/** The result of a test, for the page after it. `error` is null if it was delivered. */
const SHOWN_TEST = compile(Type.Object({ id: Type.String(), error: nullable(Type.String()), atMs: Type.Number() }));

function targetCell({ to, url }: Channel) {
  const text = url === null ? to.join(", ") : shownUrl(url);
  return text === "" ? "Can’t be read: remove the channel, and add it again." : untrusted(text);
}

function TestResult({ error, atMs, now }: Checked<typeof SHOWN_TEST> & { readonly now: Date }) {
  const then = ago(new Date(atMs), now);
  return (
    <span class={error === null ? "says" : "says says-bad"} role="status">
      {error === null ? (
        <>The test message was delivered, {then}.</>
      ) : (
        <>
          The test message of {then} was not delivered. {untrusted(error)}
        </>
      )}
    </span>
  );
}

/** Pages for the channels in which the account asks for approval. */
export function channelPages(deps: PageDeps) {
  const { channelService, flash, clock } = deps;
  const { routes, rowForm } = settingsList<Channel, typeof CreateChannelBody, Checked<typeof SHOWN_TEST>>(deps, {
    shown: SHOWN_TEST,
    section: "Channels",
    path: CHANNELS_PATH,
    intro:
      "Every request awaiting approval is announced in every channel, with a link to its page. You log in to decide.",
    view: async ({ user, now, shown }) => ({
      rows: await channelService.list(user.caller),
      columns: [
        [
          "Channel",
          ({ name, createdAt, createdBy }) => (
            <>
              <Name text={name} />
              <AddedBy at={createdAt} by={createdBy} now={now} />
            </>
          ),
          "main",
        ],
        ["Kind", ({ kind }) => KINDS[kind].label],
        ["Goes to", targetCell, "wide"],
        [
          "Reminder",
          ({ remindAfterMinutes: minutes }) =>
            minutes === null ? <None>Never</None> : `After ${duration(minutes * MINUTE_MS)}`,
        ],
        [
          "State",
          ({ id, enabled }) => (
            <>
              {enabled ? <Dot tone="good">On</Dot> : <Dot tone="still">Off</Dot>}
              {shown?.id === id ? <TestResult {...shown} now={now} /> : null}
            </>
          ),
        ],
      ],
      actions: ({ id, name, enabled }) => {
        const row = { user, look: "plain", of: untrusted(name) } as const;
        const path = `${CHANNELS_PATH}/${id}`;
        return (
          <div>
            <RowAction {...row} path={`${path}/test`} name="Test" />
            <RowMenu
              of={name}
              items={[
                <RowAction
                  {...row}
                  path={`${path}/switch`}
                  fields={[["enabled", String(!enabled)]]}
                  name={enabled ? "Switch off" : "Switch on"}
                />,
              ]}
              ends={<RowAction {...row} path={`${path}/remove`} name="Remove" />}
            />
          </div>
        );
      },
      empty: {
        icon: "send",
        title: "No channels yet",
        text: "Add an email list, a Slack channel or a webhook, so that approvers see waiting requests at once.",
      },
    }),
    form: CHANNEL_FORM,
    add: ["Add a channel", "Add channel"],
    max: CHANNELS_MAX,
    create: ({ caller }, body) => channelService.add(caller, body),
  });
  const test = rowForm<ById>(async ({ person, params: { id } }) => {
    const { error } = await channelService.test(person.caller, id);
    return flash.redirect(person, CHANNELS_PATH, SHOWN_TEST, { id, error, atMs: clock.now().getTime() });
  });
  const switchIt = rowForm<ById>(({ person, params: { id }, form }) =>
    channelService.change(person.caller, id, { enabled: form.get("enabled") === "true" }),
  );
  const remove = rowForm<ById>(({ person, params: { id } }) => unlessGone(channelService.remove(person.caller, id)));
  const hooks = { params: ChannelParams };
  return routes
    .post(`${CHANNELS_PATH}/:id/test`, test, hooks)
    .post(`${CHANNELS_PATH}/:id/switch`, switchIt, hooks)
    .post(`${CHANNELS_PATH}/:id/remove`, remove, hooks);
}
