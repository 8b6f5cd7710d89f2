import type { Store } from "../core/store.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { authorize, type Caller } from "../core/roles.ts";
import type { Creator } from "../core/action.ts";
import { describeOutcome } from "../core/outcome.ts";
import { notFound, accountFull } from "../core/domain-error.ts";
import type { Recipients } from "../approvals/recipients.ts";
import { type Audited, auditOf } from "../core/audit.ts";
import { CHANNELS_MAX, MESSAGE_TIMEOUT_MS } from "../core/limits.ts";
import { type PostDeps, postRequest } from "../delivery/channels.ts";
import { deliveryOf, faultOf } from "../delivery/deliver.ts";
import type { Delivery } from "../core/notification.ts";
import { createMessageLimit } from "../runtime/message-limit.ts";
import { type Mailer, messageError, NO_MAILER } from "../mail/mailer.ts";
import type { Sender } from "../outbound/deadline.ts";
import type { Channel, KnownChannels } from "../core/channel.ts";
import { slackTest, webhookTest } from "../mail/chat-messages.ts";
import {
  type ChangeChannelBody,
  type ChannelTestJson,
  type CheckChannelUrl,
  type CreateChannel,
  patchOf,
  throwIssues,
  channelTarget,
  urlIssues,
} from "./schemas.ts";

interface ChannelServiceDeps extends PostDeps, Pick<Store, "channels" | "audit">, Pick<AppContext, "clock" | "ids"> {
  readonly known: Pick<KnownChannels, "refresh">;
  readonly recipients: Pick<Recipients, "mayMail">;
  readonly sender: Sender;
  /** Null: no mail provider is configured. */
  readonly mailer: Mailer | null;
  readonly checkTarget: CheckChannelUrl;
}

/** Every use case of channels; for owners. */
export type ChannelService = ReturnType<typeof createChannelService>;

export function createChannelService(deps: ChannelServiceDeps) {
  const { channels, known, audit, recipients, sender, mailer, clock, ids, checkTarget } = deps;
  const countTest = createMessageLimit(clock, "This account has just tested channels.");
  const find = async (caller: Caller, id: string): Promise<Channel> => {
    authorize(caller, "manage");
    const channel = await channels.find(caller.accountId, id);
    if (channel === null) throw notFound("channel");
    return channel;
  };
  /** Throws `validation_error` for addresses that may not be asked. */
  const checkAddresses = async (accountId: string, to: readonly string[]): Promise<void> => {
    const allowed = await Promise.all(to.map((address) => recipients.mayMail(accountId, OWNER, address)));
    throwIssues(allowed.flatMap((may, at) => (may ? [] : [{ field: `to.${at}`, message: NOT_AN_APPROVER }])));
  };

  const testPost = async (channel: Channel): Promise<Delivery> => {
    const { kind, name, url } = channel;
    if (url === null) return { kind: "withheld", error: "Where the channel goes can't be read. Set its URL again." };
    const now = clock.now();
    const body = kind === "slack" ? slackTest(name) : webhookTest(channel, now);
    const request = await postRequest(deps, { channel, url, id: `test_${ids.row(now)}`, body }, now).catch(faultOf);
    if (typeof request === "string") return deliveryOf({ kind: "not_sent", fault: request }, now, MESSAGE_TIMEOUT_MS);
    const outcome = await sender.send(request, { timeoutMs: MESSAGE_TIMEOUT_MS });
    return outcome.kind === "stopped" ? INTERRUPTED : deliveryOf(outcome, now, MESSAGE_TIMEOUT_MS);
  };

  /** To every address, of which there are few; the first failure counts. */
  const testMails = async ({ id: channelId, name, to, accountId }: Channel): Promise<Delivery> => {
    if (mailer === null) return NO_MAILER;
    if (to.length === 0)
      return { kind: "withheld", error: "Where the channel goes can't be read. Set its addresses again." };
    await checkAddresses(accountId, to);
    const id = `${channelId}.${ids.row(clock.now())}`;
    const sent = await Promise.all(
      to.map((address) =>
        mailer.send({ event: "tested", to: address, id, channel: name }, { timeoutMs: MESSAGE_TIMEOUT_MS }),
      ),
    );
    return sent.find(({ kind }) => kind !== "delivered") ?? { kind: "delivered" };
  };

  const entry = (caller: Caller, audited: Audited) => auditOf(caller, audited, clock.now());
  return {
    async list(caller: Caller): Promise<readonly Channel[]> {
      authorize(caller, "manage");
      return channels.list(caller.accountId);
    },

    /** Throws `validation_error` for a target that may not be used, and beyond `CHANNELS_MAX`. */
    async add(caller: Caller, asked: CreateChannel): Promise<Channel> {
      authorize(caller, "manage");
      const { accountId, actor: createdBy } = caller;
      const { name, kind, remind_after_minutes: remindAfterMinutes = null, enabled = true } = asked;
      const target = channelTarget(asked, checkTarget);
      await checkAddresses(accountId, target.to);
      const made = { id: ids.channel(), createdAt: clock.now(), createdBy };
      const channel: Channel = { ...made, accountId, name, kind, ...target, remindAfterMinutes, enabled };
      const detail = { name, kind };
      const added = await channels.put(channel, entry(caller, { kind: "channel_added", subject: channel.id, detail }));
      if (added === "full") {
        throw accountFull(CHANNELS_MAX, "channels");
      }
      await known.refresh(accountId);
      return channel;
    },

    /** Messages that wait follow the change. Throws `not_found`, and `validation_error` as `add`. */
    async change(caller: Caller, id: string, change: ChangeChannelBody): Promise<Channel> {
      authorize(caller, "manage");
      // Before the channel is looked for, as every other field.
      throwIssues(urlIssues(change.url, checkTarget));
      const { kind, accountId } = await find(caller, id);
      const patch = patchOf(kind, change, checkTarget);
      await checkAddresses(accountId, patch.target?.to ?? []);
      const detail = { changed: Object.keys(change).join(", ") };
      const audited = entry(caller, { kind: "channel_changed", subject: id, detail });
      if (!(await channels.change(accountId, id, patch, audited))) throw notFound("channel");
      await known.refresh(accountId);
      return find(caller, id);
    },

    /** Messages that wait are dropped. Throws `not_found`. */
    async remove(caller: Caller, id: string): Promise<void> {
      authorize(caller, "manage");
      const audited = entry(caller, { kind: "channel_removed", subject: id });
      if (!(await channels.remove(caller.accountId, id, audited))) throw notFound("channel");
      await known.refresh(caller.accountId);
    },

    /**
     * Sends a test message at once, also where the channel is switched off, and waits for at most `MESSAGE_TIMEOUT_MS`. Throws
     * `not_found`, and `RetryLater` where the account tests too often.
     */
    async test(caller: Caller, id: string): Promise<ChannelTestJson> {
      const channel = await find(caller, id);
      countTest(caller.accountId);
      const delivery = await (channel.kind === "mail" ? testMails(channel) : testPost(channel));
      const error = messageError(delivery);
      const detail = { delivered: error === null };
      await audit.record(entry(caller, { kind: "channel_tested", subject: id, detail }));
      return { delivered: error === null, error };
    },
  };
}

/** Channels are made by owners. */
const OWNER: Creator = { role: "owner", hold: "none" };

const NOT_AN_APPROVER = "Is neither of a person of this account nor one of the APPROVERS of this server.";

const INTERRUPTED: Delivery = {
  kind: "failed",
  error: describeOutcome({ kind: "unknown", fault: "interrupted" }, 0),
  notBeforeMs: null,
};
