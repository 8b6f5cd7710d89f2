/** @jsxImportSource hono/jsx */
import { type Channel, CHANNEL_KINDS, type ChannelKind } from "../core/channel.ts";
import { CreateChannel, shownUrl } from "../channels/schemas.ts";
import { CHANNEL_ADDRESSES_MAX, CHANNELS_MAX } from "../core/limits.ts";
import { Button, PostForm } from "../ui/form.tsx";
import {
  answerForm,
  type ById,
  EMPTY_FORM,
  type FormState,
  problemBeside,
  schemaForm,
  StatedChoices,
  unlessGone,
} from "./forms.tsx";
import { Ago, Dot, Name, Problem, UntrustedText } from "../ui/parts.tsx";
import { AddForm, List, None, RowAction, RowMenu, settingsFrame } from "./settings-frame.tsx";
import { EmptyState } from "../ui/controls.tsx";
import { type Choice, duration, type PageUser } from "../ui/text.ts";
import { ActorName } from "./timeline.tsx";
import type { ErrorCode } from "../core/domain-error.ts";
import { ChannelParams } from "../channels/routes.ts";
import { page } from "../http/response.ts";
import { createPersonRoutes, type Person } from "../http/session.ts";
import type { PageDeps } from "./needs.ts";

const CHANNELS_PATH = "/settings/channels";

const CHANNEL_FORM = schemaForm(CreateChannel);

/** How a test fared, for the page after it. */
interface ShownTest {
  readonly id: string;
  /** Null: it was delivered. */
  readonly error: string | null;
  readonly atMs: number;
}

/** Where the account asks for approval. */
async function channelsPage(
  { channelService, clock }: ChannelPageDeps,
  user: Person,
  { typed = EMPTY_FORM, tested = null }: { readonly typed?: FormState; readonly tested?: ShownTest | null },
): Promise<string> {
  const channels = await channelService.list(user.caller);
  const now = clock.now();
  return settingsFrame({
    user,
    section: "Channels",
    title: "Channels",
    intro:
      "Every request awaiting approval is announced in every channel, with a link to its page. You log in to decide.",
    now,
    children: (
      <>
        <Problem text={problemBeside(typed, shownFields(typed))} />
        <List
          title="Channels"
          rows={channels}
          columns={[
            [
              "Channel",
              ({ name, createdAt, createdBy }) => (
                <>
                  <Name text={name} />
                  <span class="says">
                    Added <Ago at={createdAt} now={now} /> by <ActorName actor={createdBy} />
                  </span>
                </>
              ),
              "main",
            ],
            ["Kind", ({ kind }) => KIND_LABELS[kind]],
            ["Goes to", ({ to, url }) => <Target text={url === null ? to.join(", ") : shownUrl(url)} />, "wide"],
            [
              "Reminder",
              ({ remindAfterMinutes: minutes }) =>
                minutes === null ? <None>Never</None> : `After ${duration(minutes * 60_000)}`,
            ],
            [
              "State",
              ({ id, enabled }) => (
                <>
                  {enabled ? <Dot tone="good">On</Dot> : <Dot tone="still">Off</Dot>}
                  {tested?.id === id ? <TestResult {...tested} now={now} /> : null}
                </>
              ),
            ],
          ]}
          actions={(channel) => <ChannelActions channel={channel} user={user} />}
          empty={
            <EmptyState icon="send" title="No channels yet">
              <p>
                Add an email list, a Slack channel or a webhook, so that approvers are told of waiting requests at once.
              </p>
            </EmptyState>
          }
        />
        {channels.length >= CHANNELS_MAX && typed.problem === null ? null : (
          <AddForm id="add" title="Add a channel" isOpen={channels.length === 0 || typed.problem !== null}>
            <ChannelForm user={user} typed={typed} />
          </AddForm>
        )}
      </>
    ),
  });
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

/** What was chosen says which of addresses and URL is seen (settings.css). */
function shownFields({ values }: FormState): readonly string[] {
  return ["name", "kind", "remind_after_minutes", values.get("kind") === "mail" ? "to" : "url"];
}

function ChannelForm({ user, typed }: { readonly user: PageUser; readonly typed: FormState }) {
  const { Field } = CHANNEL_FORM;
  return (
    <PostForm user={user} action={CHANNELS_PATH} class="channel-form">
      <Field state={typed} name="name" label="Name" hint="For example ops." />
      <StatedChoices state={typed} name="kind" legend="Kind" choices={KIND_CHOICES} wrong="Choose where messages go." />
      <div class="for-mail">
        <Field
          state={typed}
          name="to"
          label="Addresses"
          hint={`For email: one a line, at most ${CHANNEL_ADDRESSES_MAX}.`}
        />
      </div>
      <div class="for-url">
        <Field
          state={typed}
          name="url"
          label="URL"
          hint="For Slack and webhook. It is stored encrypted, and shown only in part."
        />
      </div>
      <Field
        state={typed}
        name="remind_after_minutes"
        label="Remind after"
        hint="Minutes, 5 to 10080, after which the question is repeated once. Empty: never."
        wrong="Enter 5 to 10080 minutes, or nothing."
      />
      <div class="buttons">
        <Button>Add channel</Button>
      </div>
    </PostForm>
  );
}

function Target({ text }: { readonly text: string }) {
  return text === "" ? <>Can’t be read: remove the channel, and add it again.</> : <UntrustedText text={text} />;
}

function ChannelActions({ channel, user }: { readonly channel: Channel; readonly user: PageUser }) {
  const { id, name, enabled } = channel;
  const row = { user, look: "plain", of: <UntrustedText text={name} /> } as const;
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
}

function TestResult({ error, atMs, now }: ShownTest & { readonly now: Date }) {
  if (error === null) {
    return (
      <span class="says" role="status">
        The test message was delivered, <Ago at={new Date(atMs)} now={now} />.
      </span>
    );
  }
  return (
    <span class="says says-bad" role="status">
      The test message of <Ago at={new Date(atMs)} now={now} /> was not delivered. <UntrustedText text={error} />
    </span>
  );
}

type ChannelPageDeps = Pick<PageDeps, "personOf" | "formOf" | "channelService" | "flash" | "clock">;

const REFUSED: ReadonlySet<ErrorCode> = new Set(["validation_error", "rate_limited"]);

/** The page of where the account asks for approval, with the same service as /v1/channels. It works without script. */
export function channelPages(deps: ChannelPageDeps) {
  const { channelService, personOf, formOf, flash, clock } = deps;
  const again = ({ person }: { readonly person: Person }, typed: FormState) => channelsPage(deps, person, { typed });
  const add = answerForm(
    formOf,
    async ({ person, form }) => {
      await channelService.add(person.caller, CHANNEL_FORM.check(form));
      return CHANNELS_PATH;
    },
    again,
    REFUSED,
  );
  const test = answerForm<ById>(
    formOf,
    async ({ person, params: { id } }) => {
      const { error } = await channelService.test(person.caller, id);
      const tested: ShownTest = { id, error, atMs: clock.now().getTime() };
      return flash.redirect(person, CHANNELS_PATH, tested);
    },
    again,
    REFUSED,
  );
  const switchIt = answerForm<ById>(formOf, async ({ person, params: { id }, form }) => {
    await channelService.change(person.caller, id, { enabled: form.get("enabled") === "true" });
    return CHANNELS_PATH;
  });
  const remove = answerForm<ById>(formOf, async ({ person, params: { id } }) => {
    await unlessGone(channelService.remove(person.caller, id));
    return CHANNELS_PATH;
  });
  return createPersonRoutes(personOf)
    .get(CHANNELS_PATH, async ({ context, person }) => {
      // Safe: only the test of a channel writes a flash for this path.
      const tested = flash.read(context, person) as ShownTest | null;
      return page("own", await channelsPage(deps, person, { tested }));
    })
    .post(CHANNELS_PATH, add)
    .post(`${CHANNELS_PATH}/:id/test`, test, { params: ChannelParams })
    .post(`${CHANNELS_PATH}/:id/switch`, switchIt, { params: ChannelParams })
    .post(`${CHANNELS_PATH}/:id/remove`, remove, { params: ChannelParams });
}
