import { VERSION } from "../config/config.ts";
import type { DecisionHistory } from "../approvals/facts.ts";
import { createLinksOf } from "../approvals/links.ts";
import type { Recipients } from "../approvals/recipients.ts";
import type { Action } from "../core/action.ts";
import {
  ACTION_BYTES_IN_FLIGHT_MAX,
  ATTEMPT_TIMEOUT_SET_MS_MAX,
  CALLBACK_BYTES_IN_FLIGHT_MAX,
  CALLBACKS_PER_HOST_MAX,
  COLLECTED_HEAP_BYTES_MAX,
  LEASE_GRACE_MS,
  MAILS_AT_ONCE_MAX,
  MESSAGES_IN_FLIGHT_MAX,
  MESSAGES_PER_CHANNEL_MAX,
} from "../core/limits.ts";
import type { LaneName } from "../core/store.ts";
import type { Secrets } from "../crypto/secrets.ts";
import type { KnownHostSettings } from "../core/host-settings.ts";
import type { Mailer } from "../mail/mailer.ts";
import { collectLargeTexts } from "../observability/runtime.ts";
import type { Sender } from "../outbound/deadline.ts";
import type { ActivePauses } from "../pauses/pauses.ts";
import type { Enqueue } from "../receipts/serialize.ts";
import type { AppContext } from "../runtime/app-context.ts";
import type { Node } from "../runtime/node.ts";
import {
  createAttempt,
  createDispatcher,
  createRequestOf,
  createSignedHeaders,
  dueAction,
  type SigningDeps,
} from "./attempt.ts";
import { createMessage } from "./channels.ts";
import { createCallback, createMail } from "./deliver.ts";
import type { KnownChannels } from "../core/channel.ts";
import type { CredentialUse } from "../credentials/use.ts";
import { createNotificationScheduler } from "./notifications.ts";
import { Scheduler } from "./scheduler.ts";
import type { Judge } from "../core/judge.ts";
import { Settlement, UnwrittenResults } from "./settlement.ts";

interface DeliveryNeeds {
  readonly secrets: Secrets;
  readonly sender: Sender;
  /** Null: no mail provider is configured. */
  readonly mailer: Mailer | null;
  /** Null: this is the only process of the store. */
  readonly node: DeliveryNode | null;
  readonly signingSecrets: SigningDeps["signingSecrets"];
  readonly recipients: Recipients;
  readonly historyOf: (action: Action) => Promise<DecisionHistory>;
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

/** What the delivery needs of a node among several. */
export type DeliveryNode = Pick<Node, "id" | "share" | "recoveryLease"> & {
  readonly membership: Pick<Node["membership"], "onChange">;
};

export type Delivery = ReturnType<typeof createDelivery>;

/** Sends actions, callbacks, mails and messages to channels: a loop for each, over its own queue of the store. */
export function createDelivery(app: AppContext, needs: DeliveryNeeds) {
  const { clock, ids, log, metrics, config, store, bus } = app;
  const { secrets, sender, mailer, node, signingSecrets, recipients, historyOf, enqueue } = needs;
  const { hosts, channels, paused, rules, grants, credentials, credentialUse, receiptPath } = needs;
  const { attemptTimeoutMs, baseUrl } = config;
  const { actions, outbox } = store;
  const userAgent = `Outgate/${VERSION}`;
  const hashOf = (text: string) => secrets.hash(text);
  const kept = new UnwrittenResults(clock);
  const shared = {
    store,
    bus,
    clock,
    log,
    metrics,
    kept,
    attemptTimeoutMs,
    ...(node !== null && { nodeId: node.id, share: node.share }),
  };
  const collectGarbage = () => collectLargeTexts(COLLECTED_HEAP_BYTES_MAX);
  const recoveryLease = (name: string, leaseMs: number) =>
    node === null ? null : node.recoveryLease(name, leaseMs + LEASE_GRACE_MS);

  const { retrySettingsOf } = hosts;
  const settlement = new Settlement({
    actions,
    kept,
    clock,
    ids,
    bus,
    log,
    metrics,
    enqueue,
    retrySettingsOf,
    attemptTimeoutMs,
  });
  const signedCalls = createSignedHeaders({ secrets, signingSecrets }, "calls");
  const actionLoop = new Scheduler<Action>({
    ...shared,
    name: "actions",
    queue: actions,
    recoveryLease: recoveryLease("actions", Math.max(attemptTimeoutMs, ATTEMPT_TIMEOUT_SET_MS_MAX)),
    dueOf: dueAction,
    isPaused: paused.isPaused,
    // Before anything is claimed: how it is sent, and whom its next change tells.
    prepare: async () =>
      void (await Promise.all([hosts, channels, rules, grants, credentials].map((known) => known.reload()))),
    limitsOf: hosts.limitsOf,
    timeoutOf: hosts.timeoutOf,
    attempt: createAttempt({
      bus,
      sender,
      clock,
      requestOf: createRequestOf({ signedHeaders: signedCalls, userAgent }),
      settlement,
      hashOf,
      retrySettingsOf,
      credentials: credentialUse,
      judgeAtSend: (action, now) => rules.judgeAtSend(action, now),
      isPaused: paused.isPaused,
      attemptTimeoutMs,
    }),
    ends: {
      // What a dead process had in flight ends as `unknown`: the target may have received it.
      recover: (action) => settlement.recover(action),
      // The row was read back without its last result, which stays as it is.
      unclaim: (action, why) => settlement.unclaim({ ...action, result: null }, why),
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
    collectGarbage,
  });

  const signedHeaders = createSignedHeaders({ secrets, signingSecrets }, "callbacks");
  const isStopped = ({ accountId }: LaneName) => paused.isStopped(accountId);
  const notifying = { ...shared, ids, outbox, channels, isPaused: isStopped };
  const callbacks = createNotificationScheduler({
    ...notifying,
    kind: "callback",
    queue: outbox.callbacks,
    recoveryLease: recoveryLease("callbacks", attemptTimeoutMs),
    deliver: createCallback({ outbox, recipients, sender, clock, signedHeaders, userAgent, attemptTimeoutMs }),
    limits: {
      total: config.callbackConcurrency,
      perHost: CALLBACKS_PER_HOST_MAX,
      largeBytes: CALLBACK_BYTES_IN_FLIGHT_MAX,
    },
    collectGarbage,
  });
  const mails = createNotificationScheduler({
    ...notifying,
    kind: "mail",
    queue: outbox.mails,
    recoveryLease: recoveryLease("mails", attemptTimeoutMs),
    deliver: createMail({
      channels: store.channels,
      actions,
      outbox,
      clock,
      mailer,
      linksOf: createLinksOf({ links: store.links, secrets, baseUrl }),
      approvalTtlHours: config.approvalTtlHours,
      receiptLink: (actionId) => baseUrl + receiptPath(actionId),
      historyOf,
      baseUrl,
      attemptTimeoutMs,
      recipients,
      team: store.team,
      credentials: store.credentials,
      people: store.people,
      credentialRequests: store.credentialRequests,
      secrets,
    }),
    limits: { total: config.mailConcurrency, perHost: MAILS_AT_ONCE_MAX, largeBytes: 0 },
  });
  const messages = createNotificationScheduler({
    ...notifying,
    kind: "message",
    queue: outbox.messages,
    recoveryLease: recoveryLease("messages", attemptTimeoutMs),
    deliver: createMessage({
      actions,
      channels: store.channels,
      credentials: store.credentials,
      credentialRequests: store.credentialRequests,
      sender,
      clock,
      signedHeaders,
      userAgent,
      historyOf,
      baseUrl,
      attemptTimeoutMs,
    }),
    limits: { total: MESSAGES_IN_FLIGHT_MAX, perHost: MESSAGES_PER_CHANNEL_MAX, largeBytes: 0 },
  });

  const loops = [actionLoop, callbacks, mails, messages];
  hosts.onChange((accountId) => actionLoop.limitsChanged(accountId));
  paused.onChange((accountId) => {
    for (const loop of loops) loop.pauseChanged(accountId);
  });
  node?.membership.onChange(() => {
    for (const loop of loops) loop.sharesChanged();
  });

  return {
    dispatcher: createDispatcher(actionLoop, bus, retrySettingsOf),
    /** Results of attempts that are known and could not be written yet. */
    kept,
    /** Of actions. */
    loop: actionLoop,
    /** Which loops claim nothing because the store is away. */
    paused: () => ({
      actions: actionLoop.isPaused,
      callbacks: callbacks.isPaused,
      mails: mails.isPaused,
      messages: messages.isPaused,
    }),
    /** Call it when a mail or message that no change of an action has caused waits in this lane. */
    waits: (kind: "mail" | "message", accountId: string, host: string) => {
      const loop = kind === "mail" ? mails : messages;
      loop.add({ lane: { accountId, host, keyId: "" }, dueAt: clock.now(), isLarge: false });
    },
    /** Call it when other nodes may have stored rows that are due. */
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
