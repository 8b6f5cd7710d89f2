import Type, { type Static } from "typebox";
import * as t from "../api/schema-helpers.ts";
import { toJson } from "../api/serializer.ts";
import type { Recipients } from "../approvals/recipients.ts";
import type { CheckTarget } from "../config/target-policy.ts";
import { emailKey } from "../core/account-store.ts";
import type { Creator } from "../core/action.ts";
import { type Audited, auditEntry } from "../core/audit.ts";
import { type Channel, CHANNEL_KINDS, type ChannelKind, type KnownChannels } from "../core/channel.ts";
import { accountFull, DomainError, type Issue, notFound } from "../core/domain-error.ts";
import {
  CHANNEL_ADDRESSES_MAX,
  CHANNELS_MAX,
  MESSAGE_TIMEOUT_MS,
  REMIND_MINUTES_MAX,
  REMIND_MINUTES_MIN,
} from "../core/limits.ts";
import type { DeliveryResult } from "../core/notification.ts";
import { authorize, type Caller } from "../core/roles.ts";
import { normalTarget } from "../core/target.ts";
import { toDelivery, type PostDeps, postNow } from "../delivery/callbacks.ts";
import { createApiRoutes, jsonBody, operation, pathParams } from "../http/operation.ts";
import { jsonResponse, noContent } from "../http/response.ts";
import { MESSAGE_FORMATS, testNotice } from "../mail/chat-messages.ts";
import { testMessage } from "../mail/messages.ts";
import { type Mailer, messageError, NO_MAILER } from "../mail/mailer.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { createMessageLimit } from "../runtime/message-limit.ts";

/** The last characters of a channel's URL, which are shown. */
const URL_TAIL_CHARS = 4;

const kindMember = t.choice(
  CHANNEL_KINDS,
  "mail: to addresses; slack: to an incoming webhook of Slack; webhook: a signed POST to a URL.",
  "slack",
);

const minutes = t.integer(
  REMIND_MINUTES_MIN,
  REMIND_MINUTES_MAX,
  "Minutes after which the question is repeated once, if no one has decided.",
  30,
);

/** Since null means absent in requests. */
const NO_REMINDER = Type.Literal(0, { description: "No reminder.", examples: [0] });

const settings = {
  name: t.nameSchema("A name for people; the timeline tells it."),
  to: Type.Array(t.emailSchema("An address that may be asked for approval."), {
    maxItems: CHANNEL_ADDRESSES_MAX,
    description: "For mail: the addresses, at least one.",
    examples: [["ann@example.com"]],
  }),
  url: t.targetUrl("For slack and webhook: where messages are posted.", "https://hooks.slack.com/services/T0/B0/abcd"),
  remind_after_minutes: minutes,
  enabled: t.yesNo("False: nothing is sent.", true),
};

export const CreateChannelBody = t.requestObject(
  "CreateChannel",
  "Where to ask for approval: mail takes `to`, slack and webhook take `url`.",
  {
    name: settings.name,
    kind: kindMember,
    to: Type.Optional(settings.to),
    url: Type.Optional(settings.url),
    remind_after_minutes: Type.Optional(settings.remind_after_minutes),
    enabled: Type.Optional(settings.enabled),
  },
  { examples: [{ name: "ops", kind: "slack", url: "https://hooks.slack.com/services/T0/B0/abcd" }] },
);

type CreateChannel = Static<typeof CreateChannelBody>;

export const ChangeChannelBody = Type.Partial(
  Type.Object({
    ...settings,
    remind_after_minutes: Type.Union([NO_REMINDER, minutes], {
      description: "Minutes after which the question is repeated once; 0: never.",
      examples: [30],
    }),
  }),
  {
    title: "ChangeChannel",
    additionalProperties: false,
    description: "What to change; what is left out stays.",
    examples: [{ enabled: false }],
  },
);

type ChangeChannelBody = Static<typeof ChangeChannelBody>;

interface ChannelNeeds extends PostDeps {
  readonly known: Pick<KnownChannels, "refresh">;
  readonly recipients: Pick<Recipients, "mayMail">;
  /** Null: no mail provider is configured. */
  readonly mailer: Mailer | null;
  readonly checkTarget: CheckTarget;
}

export type ChannelService = ReturnType<typeof createChannelService>;

export function createChannelService(app: AppContext, needs: ChannelNeeds) {
  const { clock, ids } = app;
  const { channels, audit } = app.store;
  const { known, recipients, mailer, checkTarget } = needs;
  const countTest = createMessageLimit(clock, "This account has just tested channels.");
  const find = async (caller: Caller, id: string): Promise<Channel> => {
    authorize(caller, "manage");
    const channel = await channels.find(caller.accountId, id);
    if (channel === null) throw notFound("channel");
    return channel;
  };
  const targetIssues = (kind: ChannelKind, { to, url }: Pick<ChangeChannelBody, "to" | "url">): readonly Issue[] => {
    const issues: Issue[] = [];
    const isMail = kind === "mail";
    if (to !== undefined && !isMail) issues.push({ field: "to", message: "Only a mail channel takes addresses." });
    if (to?.length === 0) issues.push({ field: "to", message: "Must have at least one address." });
    if (url !== undefined && isMail) issues.push({ field: "url", message: "A mail channel takes no URL." });
    const checked = url === undefined || isMail ? null : checkTarget(url);
    if (checked !== null && "refused" in checked) issues.push({ field: "url", message: checked.refused });
    return issues;
  };
  /** Of addresses that may not be asked. */
  const addressIssues = async (accountId: string, to: readonly string[]): Promise<readonly Issue[]> => {
    const allowed = await Promise.all(to.map((address) => recipients.mayMail(accountId, OWNER, address)));
    return allowed.flatMap((may, at) => (may ? [] : [{ field: `to.${at}`, message: NOT_AN_APPROVER }]));
  };

  /** Sends to every address, of which there are few. The first failure is the result. */
  const testMails = async ({ id: channelId, name, to, accountId }: Channel): Promise<DeliveryResult> => {
    if (mailer === null) return NO_MAILER;
    if (to.length === 0)
      return { kind: "withheld", error: "Where the channel goes can't be read. Set its addresses again." };
    // Somebody may have left since.
    if ((await addressIssues(accountId, to)).length > 0) return NOT_ALL_APPROVERS;
    const id = `${channelId}.${ids.row(clock.now())}`;
    const sent = await Promise.all(
      to.map((address) => mailer.send(testMessage(address, id, name), { timeoutMs: MESSAGE_TIMEOUT_MS })),
    );
    return sent.find(({ kind }) => kind !== "delivered") ?? { kind: "delivered" };
  };

  const sendTest = async (channel: Channel): Promise<DeliveryResult> => {
    const { accountId, kind, url } = channel;
    if (kind === "mail") return testMails(channel);
    if (url === null) return { kind: "withheld", error: "Where the channel goes can't be read. Set its URL again." };
    const now = clock.now();
    const { isSigned, notice } = MESSAGE_FORMATS[kind];
    const body = notice(testNotice(channel), now);
    return toDelivery(await postNow(app, needs, { accountId, url, body, isSigned }), now, MESSAGE_TIMEOUT_MS);
  };

  const entry = (caller: Caller, audited: Audited) => auditEntry(caller, audited, clock.now());
  return {
    async list(caller: Caller): Promise<readonly Channel[]> {
      authorize(caller, "manage");
      return channels.list(caller.accountId);
    },

    /** Adds a channel. Throws `validation_error` for a target that may not be used, and beyond `CHANNELS_MAX`. */
    async add(caller: Caller, asked: CreateChannel): Promise<Channel> {
      authorize(caller, "manage");
      const { accountId, actor: createdBy } = caller;
      const { name, kind, to, url, remind_after_minutes: remindAfterMinutes = null, enabled = true } = asked;
      const wanted = kind === "mail" ? "to" : "url";
      const missing = { field: wanted, message: `A channel of this kind needs ${wanted}.` };
      throwIssues([...targetIssues(kind, asked), ...(asked[wanted] === undefined ? [missing] : [])]);
      const target = { to: once(to ?? []), url: url ?? null };
      throwIssues(await addressIssues(accountId, target.to));
      const createdAt = clock.now();
      const made = { id: ids.channel(createdAt), createdAt, createdBy };
      const channel: Channel = { ...made, accountId, name, kind, ...target, remindAfterMinutes, enabled };
      const detail = { name, kind };
      const added = await channels.put(channel, entry(caller, { kind: "channel_added", subject: channel.id, detail }));
      if (added === "full") throw accountFull(CHANNELS_MAX, "channels");
      await known.refresh(accountId);
      return channel;
    },

    /** Changes a channel, also for waiting messages. Throws `not_found`, and `validation_error` like `add`. */
    async change(caller: Caller, id: string, change: ChangeChannelBody): Promise<Channel> {
      authorize(caller, "manage");
      const { name, to, url, remind_after_minutes: minutesGiven, enabled } = change;
      const { kind, accountId } = await find(caller, id);
      throwIssues(targetIssues(kind, change));
      const target = to === undefined && url === undefined ? null : { to: once(to ?? []), url: url ?? null };
      throwIssues(await addressIssues(accountId, target?.to ?? []));
      const patch = {
        ...(name !== undefined && { name }),
        ...(target !== null && { target }),
        ...(minutesGiven !== undefined && {
          remindAfterMinutes: minutesGiven === NO_REMINDER.const ? null : minutesGiven,
        }),
        ...(enabled !== undefined && { enabled }),
      };
      const detail = { changed: Object.keys(change).join(", ") };
      const audited = entry(caller, { kind: "channel_changed", subject: id, detail });
      if (!(await channels.change(accountId, id, patch, audited))) throw notFound("channel");
      await known.refresh(accountId);
      return find(caller, id);
    },

    /** Removes a channel and drops its waiting messages. Throws `not_found`. */
    async remove(caller: Caller, id: string): Promise<void> {
      authorize(caller, "manage");
      const audited = entry(caller, { kind: "channel_removed", subject: id });
      if (!(await channels.remove(caller.accountId, id, audited))) throw notFound("channel");
      await known.refresh(caller.accountId);
    },

    /** Takes the address of somebody who has left the account out of its channels. A channel without another one is removed. */
    async forgetAddress(caller: Caller, email: string): Promise<void> {
      const { accountId } = caller;
      for (const { id, to } of await channels.list(accountId)) {
        const rest = to.filter((address) => emailKey(address) !== emailKey(email));
        if (rest.length === to.length) continue;
        if (rest.length === 0) {
          await channels.remove(accountId, id, entry(caller, { kind: "channel_removed", subject: id }));
        } else {
          const audited = entry(caller, { kind: "channel_changed", subject: id, detail: { changed: "to" } });
          await channels.change(accountId, id, { target: { to: rest, url: null } }, audited);
        }
      }
      await known.refresh(accountId);
    },

    /** Sends a test at once, even if the channel is off, within `MESSAGE_TIMEOUT_MS`. Throws `not_found` and `RetryLater`. */
    async test(caller: Caller, id: string): Promise<Static<typeof ChannelTestJson>> {
      const channel = await find(caller, id);
      countTest(caller.accountId);
      const error = messageError(await sendTest(channel));
      const delivered = error === null;
      await audit.record(entry(caller, { kind: "channel_tested", subject: id, detail: { delivered } }));
      return { delivered, error };
    },
  };
}

function throwIssues(issues: readonly Issue[]): void {
  if (issues.length > 0)
    throw new DomainError("validation_error", "The channel has fields that are not valid.", issues);
}

/** Each address once, ignoring case. */
function once(addresses: readonly string[]): readonly string[] {
  const first = new Map<string, string>();
  for (const address of addresses) {
    const key = address.toLowerCase();
    if (!first.has(key)) first.set(key, address);
  }
  return [...first.values()];
}

/** Channels are made by owners. */
const OWNER: Creator = { role: "owner", hold: "none" };

const NOT_AN_APPROVER = "Is neither of a person of this account nor one of the APPROVERS of this server.";

const NOT_ALL_APPROVERS: DeliveryResult = {
  kind: "withheld",
  error: "No mail was sent: one of the addresses is neither of a person of this account nor one of the APPROVERS.",
};

const ChannelId = t.idSchema("chn", "Id of a channel.");

export const ChannelJson = t.answerObject("Channel", "Where the account asks for approval.", {
  id: ChannelId,
  name: t.plainText("Its name.", "ops"),
  kind: kindMember,
  to: Type.Optional(
    Type.Array(t.plainText("An address.", "ann@example.com"), {
      description: "Of a mail channel: the addresses.",
      examples: [["ann@example.com"]],
    }),
  ),
  url: Type.Optional(
    t.nullable(
      t.plainText(
        "Of the others: the origin of the URL and its end; null: it can't be read and has to be set again.",
        "https://hooks.slack.com/…abcd",
      ),
    ),
  ),
  remind_after_minutes: t.nullable(minutes),
  enabled: settings.enabled,
  created_at: t.dateTime("When it was added."),
  created_by: t.plainText("Who added it.", "user:ann@example.com"),
});

export const ChannelListJson = t.answerObject("ChannelList", "The channels of the account.", {
  data: Type.Array(ChannelJson, { description: `The channels, the oldest first; at most ${CHANNELS_MAX}.` }),
});

export const ChannelTestJson = t.answerObject("ChannelTest", "How a test message fared.", {
  delivered: t.yesNo("Whether the test message was taken.", true),
  error: t.nullable(t.plainText("Why not; null: it was.", "The target answered with status 404.")),
});

const serialize = ({ to, url, ...channel }: Channel) =>
  toJson(ChannelJson, {
    ...channel,
    ...(channel.kind === "mail" ? { to } : { url: url === null ? null : shownUrl(url) }),
  });

/** The origin and the last characters of a URL, since anyone with an incoming webhook's whole URL can post to it. */
export function shownUrl(url: string): string {
  const target = normalTarget(url);
  if (target === null) return "…";
  const { origin, rest } = target;
  // Of a short URL, the last characters would be most of it.
  return `${origin}/…${rest.length < 4 * URL_TAIL_CHARS ? "" : rest.slice(-URL_TAIL_CHARS)}`;
}

export const ChannelParams = pathParams(Type.Object({ id: ChannelId }), "There is no such channel.");

export function channelRoutes({ channelService }: { readonly channelService: ChannelService }) {
  return createApiRoutes()
    .get(
      "/v1/channels",
      async ({ caller }) => jsonResponse({ data: (await channelService.list(caller)).map(serialize) }),
      operation({
        operationId: "listChannels",
        permission: "manage",
        summary: "List where the account asks for approval",
        description: "Lists the channels, the oldest first. URLs are shown masked: anyone who has one can post to it.",
        answers: { 200: { description: "The channels.", schema: ChannelListJson } },
      }),
    )
    .post(
      "/v1/channels",
      async ({ caller, body }) => jsonResponse(serialize(await channelService.add(caller, body)), 201),
      operation({
        operationId: "createChannel",
        permission: "manage",
        summary: "Add where to ask for approval",
        description: "Adds a channel: it gets a message about every action that begins to await approval from now on.",
        notes: [
          "A message has a link to the action's page; nothing in it decides.",
          "Other nodes follow within 5 seconds.",
        ],
        body: jsonBody(CreateChannelBody),
        answers: { 201: { description: "The channel.", schema: ChannelJson } },
      }),
    )
    .patch(
      "/v1/channels/:id",
      async ({ caller, params, body }) => jsonResponse(serialize(await channelService.change(caller, params.id, body))),
      operation({
        operationId: "changeChannel",
        permission: "manage",
        summary: "Change a channel, or switch it off",
        description: "Changes what the request names; what is left out stays.",
        notes: ["Messages that wait follow the change.", "The kind of a channel never changes."],
        params: ChannelParams,
        body: jsonBody(ChangeChannelBody),
        answers: { 200: { description: "The channel.", schema: ChannelJson } },
      }),
    )
    .delete(
      "/v1/channels/:id",
      ({ caller, params }) => noContent(channelService.remove(caller, params.id)),
      operation({
        operationId: "removeChannel",
        permission: "manage",
        summary: "Remove a channel",
        description: "Removes a channel. Messages that wait are dropped.",
        params: ChannelParams,
        answers: { 204: { description: "The channel is removed.", schema: null } },
      }),
    )
    .post(
      "/v1/channels/:id/test",
      async ({ caller, params }) => jsonResponse(await channelService.test(caller, params.id)),
      operation({
        operationId: "testChannel",
        permission: "manage",
        summary: "Send a test message to a channel",
        description: "Sends a test message at once, also where the channel is switched off.",
        notes: ["It waits for at most 10 seconds.", "At most one test a second and 30 an hour."],
        params: ChannelParams,
        answers: { 200: { description: "How it fared.", schema: ChannelTestJson } },
      }),
    );
}
