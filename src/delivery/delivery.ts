import type { DecisionHistory } from "../approvals/facts.ts";
import type { Recipients } from "../approvals/recipients.ts";
import { type Action, largeRowBytes } from "../core/action.ts";
import type { KnownChannels } from "../core/channel.ts";
import { type KnownHostSettings, NO_LIMITS } from "../core/host-settings.ts";
import type { Judge } from "../core/judge.ts";
import {
  ACTION_BYTES_IN_FLIGHT_MAX,
  CALLBACK_BYTES_IN_FLIGHT_MAX,
  CALLBACKS_PER_HOST_MAX,
  MAILS_AT_ONCE_MAX,
  MESSAGES_IN_FLIGHT_MAX,
  MESSAGES_PER_CHANNEL_MAX,
} from "../core/limits.ts";
import type { Claim, LaneName } from "../core/store.ts";
import type { CredentialUse } from "../credentials/use.ts";
import { type Secrets, createSignedHeaders, type SecretsInUse } from "../crypto/secrets.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { Sender } from "../outbound/sender.ts";
import type { ActivePauses } from "../pauses/pauses.ts";
import type { Enqueue } from "../receipts/enqueue.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { WHOLE_SHARE } from "../runtime/membership.ts";
import { createAttempt } from "./attempt.ts";
import { CallRates } from "./call-rates.ts";
import { createCallback } from "./callbacks.ts";
import { Turns, OpenFiles, UnwrittenResults } from "./in-flight.ts";
import { createMail, createMessage } from "./messages.ts";
import { createNotificationScheduler } from "./notifications.ts";
import { type DeliveryNode, type Due, NOTHING_DUE, Scheduler } from "./scheduler.ts";
import { Settlement } from "./settlement.ts";

interface DeliveryNeeds {
  readonly secrets: Secrets;
  readonly sender: Sender;
  /** Null: no mail provider is configured. */
  readonly mailer: Mailer | null;
  /** Null: this is the only process of the store. */
  readonly node: DeliveryNode | null;
  readonly signingSecrets: SecretsInUse;
  readonly recipients: Recipients;
  readonly readHistory: (action: Action) => Promise<DecisionHistory>;
  readonly enqueue: Enqueue;
  readonly hosts: KnownHostSettings;
  readonly channels: KnownChannels;
  readonly paused: ActivePauses;
  readonly rules: Pick<Judge, "judgeAtSend"> & { reload(): Promise<void> };
  readonly grants: { reload(): Promise<void> };
  readonly credentials: { reload(): Promise<void> };
  readonly credentialUse: Pick<CredentialUse, "forAttempt">;
  /** Path of an action's receipt page. */
  readonly receiptPath: (actionId: string) => string;
}

export type Delivery = ReturnType<typeof createDelivery>;

/** Sends actions, callbacks, mails and messages to channels: a loop for each, over its own queue of the store. */
export function createDelivery(context: AppContext, needs: DeliveryNeeds) {
  const { secrets, sender, node, hosts, channels, paused, rules, grants, credentials } = needs;
  const { clock, log, metrics, config, store } = context;
  const unwritten = new UnwrittenResults(clock);
  const app = { ...context, unwritten, node, files: new OpenFiles(clock, log), turns: new Turns() };
  const settlement = new Settlement(app, needs);
  const rates = new CallRates({
    clock,
    findLimits: hosts.findLimits,
    share: node?.share ?? WHOLE_SHARE,
    perHost: config.dispatchPerHost,
  });
  // A rule that another node has saved before a claim binds what it claims. Beside the claim, the read of a version costs no time.
  const claimDue = async (claim: Claim) => {
    const [claimed] = await Promise.all([store.actions.claimDue(claim), rules.reload().catch(() => {})]);
    return claimed;
  };
  const actionLoop = new Scheduler<Action>(app, {
    name: "actions",
    queue: store.cluster === null ? store.actions : { ...store.actions, claimDue },
    findDue: dueAction,
    isPaused: paused.isPaused,
    // Read before anything is claimed: these decide how it is sent, and whom its next change notifies.
    prepare: async () =>
      void (await Promise.all([hosts, channels, rules, grants, credentials].map((known) => known.reload()))),
    findLimits: hosts.findLimits,
    beginWaitMs: (lane) => rates.waitMs(lane, "actions"),
    callTimeoutMs: hosts.callTimeoutMs,
    attempt: createAttempt(app, {
      sender,
      signedHeaders: createSignedHeaders(secrets, needs.signingSecrets, "calls"),
      settlement,
      hashText: secrets.hash,
      hosts,
      credentials: needs.credentialUse,
      rules,
      rates,
      isPaused: paused.isPaused,
    }),
    recovery: {
      // What a dead process had in flight ends as `unknown`: the target may have received it.
      recover: (action) => settlement.recover(action),
      // The row was read back without its last result, which stays as it is.
      unclaim: (action) => settlement.unclaim({ ...action, result: null }, "in_doubt"),
      onRescued(count) {
        metrics.rescued(count);
        log.warn("actions.rescued", { count });
      },
    },
    limits: {
      total: config.dispatchConcurrency,
      perHost: config.dispatchPerHost,
      largeBytes: ACTION_BYTES_IN_FLIGHT_MAX,
    },
  });

  const posting = { ...needs, rates, signedHeaders: createSignedHeaders(secrets, needs.signingSecrets, "callbacks") };
  const notifying = { channels, isPaused: ({ accountId }: LaneName) => paused.isStopped(accountId) };
  const callbacks = createNotificationScheduler(app, {
    ...notifying,
    kind: "callback",
    deliver: createCallback(app, posting),
    // The rate of a host counts all calls, so the nodes that make them are the same. Slots are each loop's own.
    findLimits(lane) {
      const { maxPerSecond, maxConcurrent } = hosts.findLimits(lane);
      if (maxPerSecond === null) return NO_LIMITS;
      return { maxPerSecond, maxConcurrent: Math.min(config.dispatchPerHost, maxConcurrent ?? config.dispatchPerHost) };
    },
    beginWaitMs: (lane) => rates.waitMs(lane, "callbacks"),
    limits: {
      total: config.callbackConcurrency,
      perHost: CALLBACKS_PER_HOST_MAX,
      largeBytes: CALLBACK_BYTES_IN_FLIGHT_MAX,
    },
  });
  const mails = createNotificationScheduler(app, {
    ...notifying,
    kind: "mail",
    deliver: createMail(app, needs),
    limits: { total: config.mailConcurrency, perHost: MAILS_AT_ONCE_MAX, largeBytes: 0 },
  });
  const messages = createNotificationScheduler(app, {
    ...notifying,
    kind: "message",
    deliver: createMessage(app, posting),
    limits: { total: MESSAGES_IN_FLIGHT_MAX, perHost: MESSAGES_PER_CHANNEL_MAX, largeBytes: 0 },
  });

  const loops = [actionLoop, callbacks, mails, messages];
  hosts.onChange((accountId) => {
    rates.changed(accountId);
    for (const loop of [actionLoop, callbacks]) loop.limitsChanged(accountId);
  });
  paused.onChange((accountId) => {
    for (const loop of loops) loop.pauseChanged(accountId);
  });
  node?.membership.onChange(() => {
    rates.changed(null);
    for (const loop of loops) loop.sharesChanged();
  });
  node?.membership.reportOver(() => loops.flatMap((loop) => loop.overHosts));

  return {
    /**
     * Takes a slot for an action that is about to be stored, or waits a moment for one, so that the commit that creates the
     * action claims it too. Null if other rows of its lane come first, no slot is free soon, or claiming is paused. Large
     * actions are claimed a few at a time, never at create.
     */
    reserve: (action: Action) =>
      largeRowBytes(action) === undefined ? actionLoop.reserve(action, hosts.retrySettings(action).timeoutMs) : null,
    /** Results of attempts that are known but not yet written. */
    unwritten,
    /** The loop that sends actions. */
    loop: actionLoop,
    /** Which loops claim nothing because the store is unavailable. */
    storeAway: () => ({
      actions: actionLoop.isStoreAway,
      callbacks: callbacks.isStoreAway,
      mails: mails.isStoreAway,
      messages: messages.isStoreAway,
    }),
    /** Call this after storing a mail or message that no change of an action has caused. */
    addNotification: (kind: "mail" | "message", accountId: string, host: string) => {
      const loop = kind === "mail" ? mails : messages;
      loop.add({ lane: { accountId, host, keyId: "" }, dueAt: clock.now(), isLarge: false });
    },
    /** Call this when other nodes may have stored rows that are due. */
    lookElsewhere: () => {
      for (const loop of loops) loop.lookElsewhere();
    },
    /** Ends what a dead process left active, then begins to deliver. */
    async start(): Promise<void> {
      for (const loop of loops) await loop.start();
    },
    /** Stops claiming and waits for what is in flight, for `limitMs` at most. */
    async drain(limitMs: number): Promise<void> {
      await Promise.all(loops.map((loop) => loop.drain(limitMs)));
    },
  };
}

/** The due row of an action that has changed, if it is pending now. */
function dueAction(action: Action): readonly Due[] {
  const { status, dueAt } = action;
  if (status !== "pending" || dueAt === null) return NOTHING_DUE;
  return [{ lane: action, dueAt, isLarge: largeRowBytes(action) !== undefined }];
}
