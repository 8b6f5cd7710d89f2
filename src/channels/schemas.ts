import Type, { type Static } from "typebox";
import { DomainError, type Issue } from "../core/domain-error.ts";
import {
  dateTime,
  emailSchema,
  nameSchema,
  nullable,
  plainText,
  targetUrl,
  choice,
  yesNo,
  idSchema,
  requestObject,
  answerObject,
  integer,
} from "../api/schema-helpers.ts";
import {
  CHANNEL_ADDRESSES_MAX,
  CHANNELS_MAX,
  REMIND_MINUTES_MAX,
  REMIND_MINUTES_MIN,
  URL_TAIL_CHARS,
} from "../core/limits.ts";
import { normalTarget } from "../core/target.ts";
import {
  type Channel,
  CHANNEL_KINDS,
  type ChannelKind,
  type ChannelPatch,
  type ChannelTarget,
} from "../core/channel.ts";

export const ChannelId = idSchema("chn", "Id of a channel.");

const kind = choice(
  CHANNEL_KINDS,
  "mail: to addresses; slack: to an incoming webhook of Slack; webhook: a signed POST to a URL.",
  "slack",
);

const minutes = integer(
  REMIND_MINUTES_MIN,
  REMIND_MINUTES_MAX,
  "Minutes after which the question is repeated once, if nobody has decided.",
  30,
);

/** Null means absent in requests, so that a number has to say it. */
const NO_REMINDER = Type.Literal(0, { description: "No reminder.", examples: [0] });

/** What a create and a change may set. */
const settings = {
  name: nameSchema("A name for people; the timeline tells it."),
  to: Type.Array(emailSchema("An address that may be asked for approval."), {
    maxItems: CHANNEL_ADDRESSES_MAX,
    description: "For mail: the addresses, at least one.",
    examples: [["ann@example.com"]],
  }),
  url: targetUrl("For slack and webhook: where messages are posted.", "https://hooks.slack.com/services/T0/B0/abcd"),
  remind_after_minutes: minutes,
  enabled: yesNo("False: nothing is sent.", true),
};

export const CreateChannel = requestObject(
  "CreateChannel",
  "Where to ask for approval: mail takes `to`, slack and webhook take `url`.",
  {
    name: settings.name,
    kind,
    to: Type.Optional(settings.to),
    url: Type.Optional(settings.url),
    remind_after_minutes: Type.Optional(settings.remind_after_minutes),
    enabled: Type.Optional(settings.enabled),
  },
  { examples: [{ name: "ops", kind: "slack", url: "https://hooks.slack.com/services/T0/B0/abcd" }] },
);

export type CreateChannel = Static<typeof CreateChannel>;

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

export type ChangeChannelBody = Static<typeof ChangeChannelBody>;

export const ChannelJson = answerObject("Channel", "Where the account asks for approval.", {
  id: ChannelId,
  name: plainText("Its name.", "ops"),
  kind,
  to: Type.Optional(
    Type.Array(plainText("An address.", "ann@example.com"), {
      description: "Of a mail channel: the addresses.",
      examples: [["ann@example.com"]],
    }),
  ),
  url: Type.Optional(
    nullable(
      plainText(
        "Of the others: the origin of the URL and its end; null: it can't be read and has to be set again.",
        "https://hooks.slack.com/…abcd",
      ),
    ),
  ),
  remind_after_minutes: nullable(minutes),
  enabled: settings.enabled,
  created_at: dateTime("When it was added."),
  created_by: plainText("Who added it.", "user:ann@example.com"),
});

export type ChannelJson = Static<typeof ChannelJson>;

export const ChannelListJson = answerObject("ChannelList", "The channels of the account.", {
  data: Type.Array(ChannelJson, { description: `The channels, the oldest first; at most ${CHANNELS_MAX}.` }),
});

export const ChannelTestJson = answerObject("ChannelTest", "How a test message fared.", {
  delivered: yesNo("Whether the test message was taken.", true),
  error: nullable(plainText("Why not; null: it was.", "The target answered with status 404.")),
});

export type ChannelTestJson = Static<typeof ChannelTestJson>;

export function serializeChannel(channel: Channel): ChannelJson {
  const { id, name, kind: ofKind, to, url, remindAfterMinutes, enabled, createdAt, createdBy } = channel;
  return {
    id,
    name,
    kind: ofKind,
    ...(ofKind === "mail" ? { to: [...to] } : { url: url === null ? null : shownUrl(url) }),
    remind_after_minutes: remindAfterMinutes,
    enabled,
    created_at: createdAt.toISOString(),
    created_by: createdBy,
  };
}

/** The origin and the last characters: whoever has the whole URL of an incoming webhook can post to it. */
export function shownUrl(url: string): string {
  const target = normalTarget(url);
  if (target === null) return "…";
  const { origin, rest } = target;
  // The end of a short one would be most of it.
  return `${origin}/…${rest.length < 4 * URL_TAIL_CHARS ? "" : rest.slice(-URL_TAIL_CHARS)}`;
}

/** Whether calls may go to a URL; `refused` says why not. */
export type CheckChannelUrl = (url: string) => { readonly host: string } | { readonly refused: string };

/** Where a new channel goes. Throws `validation_error` with all issues. */
export function channelTarget({ kind: ofKind, to, url }: CreateChannel, checkUrl: CheckChannelUrl): ChannelTarget {
  const issues = targetIssues(ofKind, { to, url }, checkUrl);
  const [wanted, given] = ofKind === "mail" ? (["to", to] as const) : (["url", url] as const);
  if (given === undefined) issues.push({ field: wanted, message: `A channel of this kind needs ${wanted}.` });
  throwIssues(issues);
  return { to: once(to ?? []), url: url ?? null };
}

/** What a change of a channel of this kind sets. Throws `validation_error` with all issues. */
export function patchOf(ofKind: ChannelKind, change: ChangeChannelBody, checkUrl: CheckChannelUrl): ChannelPatch {
  const { name, to, url, remind_after_minutes: remindAfterMinutes, enabled } = change;
  throwIssues(targetIssues(ofKind, { to, url }, checkUrl));
  const isMoved = to !== undefined || url !== undefined;
  return {
    ...(name !== undefined && { name }),
    ...(isMoved && { target: { to: once(to ?? []), url: url ?? null } }),
    ...(remindAfterMinutes !== undefined && {
      remindAfterMinutes: remindAfterMinutes === NO_REMINDER.const ? null : remindAfterMinutes,
    }),
    ...(enabled !== undefined && { enabled }),
  };
}

interface GivenTarget {
  readonly to: readonly string[] | undefined;
  readonly url: string | undefined;
}

function targetIssues(ofKind: ChannelKind, { to, url }: GivenTarget, checkUrl: CheckChannelUrl): Issue[] {
  const issues: Issue[] = [];
  const isMail = ofKind === "mail";
  if (to !== undefined && !isMail) issues.push({ field: "to", message: "Only a mail channel takes addresses." });
  if (to?.length === 0) issues.push({ field: "to", message: "Must have at least one address." });
  if (url !== undefined && isMail) issues.push({ field: "url", message: "A mail channel takes no URL." });
  return isMail ? issues : [...issues, ...urlIssues(url, checkUrl)];
}

export function urlIssues(url: string | undefined, checkUrl: CheckChannelUrl): readonly Issue[] {
  const checked = url === undefined ? null : checkUrl(url);
  return checked !== null && "refused" in checked ? [{ field: "url", message: checked.refused }] : [];
}

/** Throws `validation_error` if there are issues. */
export function throwIssues(issues: readonly Issue[]): void {
  if (issues.length > 0)
    throw new DomainError("validation_error", "The channel has fields that are not valid.", issues);
}

/** Each address once, compared without case. */
function once(addresses: readonly string[]): readonly string[] {
  const first = new Map<string, string>();
  for (const address of addresses) {
    const key = address.toLowerCase();
    if (!first.has(key)) first.set(key, address);
  }
  return [...first.values()];
}
