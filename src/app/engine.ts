import { createLinksOf } from "../approvals/links.ts";
import { createEnqueue } from "../receipts/serialize.ts";
import { createRecipients } from "../approvals/recipients.ts";
import { createActionService } from "../actions/service.ts";
import { createHistoryOf } from "../approvals/held.ts";
import { createCallbackTestService } from "../accounts/callback-test.ts";
import { createChannelService } from "../channels/service.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { checkTarget, type TargetPolicy } from "../config/target-policy.ts";
import { KnownChannels } from "../delivery/known-channels.ts";
import { createHostService, KnownHostSettings } from "../hosts/service.ts";
import { ActivePauses, createPauseService } from "../pauses/service.ts";
import { createSigningSecrets } from "../accounts/signing-secrets.ts";
import { type Config, VERSION } from "../config/config.ts";
import type { Action } from "../core/action.ts";
import { ownRules } from "../core/extras.ts";
import type { EffectiveRules } from "../core/rules.ts";
import {
  type AttemptDeps,
  createAttempt,
  createDispatcher,
  createRequestOf,
  createSignedHeaders,
  dueAction,
  type RequestDeps,
  type SigningDeps,
} from "../delivery/attempt.ts";
import { createMessage } from "../delivery/channels.ts";
import { type CallbackDeps, createCallback, createMail, type MailDeps } from "../delivery/deliver.ts";
import { createNotificationScheduler, type NotificationDeps } from "../delivery/notifications.ts";
import { Scheduler, type SchedulerDeps } from "../delivery/scheduler.ts";
import { UnwrittenResults, Settlement, type SettlementDeps } from "../delivery/settlement.ts";
import {
  ATTEMPT_TIMEOUT_SET_MS_MAX,
  ACTION_BYTES_IN_FLIGHT_MAX,
  CALLBACK_BYTES_IN_FLIGHT_MAX,
  CALLBACKS_PER_HOST_MAX,
  COLLECTED_HEAP_BYTES_MAX,
  LEASE_GRACE_MS,
  MAILS_AT_ONCE_MAX,
  MESSAGES_IN_FLIGHT_MAX,
  MESSAGES_PER_CHANNEL_MAX,
  SHARED_FRESH_MS,
} from "../core/limits.ts";
import { createFeed } from "../events/feed.ts";
import { NodeFeed, type NodeFeedDeps } from "../events/node-feed.ts";
import { createOverview } from "../events/overview.ts";
import { collectLargeTexts } from "../observability/runtime.ts";
import type { Node } from "../runtime/node.ts";
import type { Mailer } from "../mail/mailer.ts";
import type { Secrets } from "../crypto/secrets.ts";
import type { Sender } from "../outbound/deadline.ts";
import { type ActionStore, type LaneName, type Store, StoreUnavailable } from "../core/store.ts";

interface EngineNeeds {
  readonly secrets: Secrets;
  readonly sender: Sender;
  /** Null: no mail provider is configured. */
  readonly mailer: Mailer | null;
  /** Where calls may go. */
  readonly policy: TargetPolicy;
  /** Null: this is the only process of the store. */
  readonly node: EngineNode | null;
}

/** What the delivery needs of a node among several. */
type EngineNode = Pick<Node, "id" | "share" | "recoveryLease"> & {
  readonly membership: Pick<Node["membership"], "onChange">;
};

export type Engine = ReturnType<typeof createEngine>;

/**
 * The service without HTTP: the services that routes call, and the loops that deliver. It runs on `Store` and the other
 * interfaces.
 */
export function createEngine(app: AppContext, needs: EngineNeeds) {
  const { config: settings, store, bus } = app;
  const { secrets, node, policy } = needs;
  const parts = { ...app, ...needs };
  const { receiptPath, receiptUrl } = receiptsOf(settings, secrets);
  const fresh = node === null ? {} : { freshMs: SHARED_FRESH_MS };
  const signingSecrets = createSigningSecrets({ ...store, secrets, log: parts.log, ...fresh });
  const known = new KnownChannels(store.channels);
  const enqueue = createEnqueue({ ids: parts.ids, receiptUrl, channelsOf: known.of });
  const signedHeaders = createSignedHeaders({ secrets, signingSecrets }, "calls");
  const hashOf = (text: string) => secrets.hash(text);
  const { pauses } = store;
  const sending = { signedHeaders, attemptTimeoutMs: settings.attemptTimeoutMs, userAgent: `Outgate/${VERSION}` };
  const kept = new UnwrittenResults(parts.clock);
  const recipients = createRecipients({ ...store, approvers: settings.approvers });
  const beside = node === null ? {} : { nodeId: node.id, share: node.share };
  const deps = { ...store, ...parts, ...sending, ...beside, recipients, hashOf, bus, enqueue, kept };
  const historyOf = createHistoryOf(deps);

  const paused = new ActivePauses(pauses);
  const hosts = new KnownHostSettings(store.hostSettings);
  const { rulesOf, ...ofHosts } = rulesFor(settings, hosts, known);
  const loop = createActionScheduler(settings, { ...deps, isPaused: paused.isPaused, rulesOf, ...ofHosts });
  hosts.onChange((accountId) => loop.limitsChanged(accountId));
  const isStopped = ({ accountId }: LaneName) => paused.isStopped(accountId);
  const queues = { ...deps, historyOf, signingSecrets, receiptPath, isPaused: isStopped, channels: known };
  const { callbacks, mails, messages } = createNotificationSchedulers(settings, queues);
  const loops = [loop, callbacks, mails, messages];
  const actionService = createActionService({ ...deps, pauses, dispatcher: createDispatcher(loop, bus, rulesOf) });
  const { pauseChanged, sharesChanged } = tellingAll(loops);
  const acting = { cancel: actionService.cancel, dispatcher: { pauseChanged } };
  const pauseService = createPauseService({ ...parts, pauses, paused, ...acting });
  const { hostSettings } = store;
  const hostService = createHostService({ ...parts, hostSettings, known: hosts, perHost: settings.dispatchPerHost });
  const signedCallbacks = createSignedHeaders({ secrets, signingSecrets }, "callbacks");
  const ofPolicy = { checkTarget: (url: string) => checkTarget(policy, url), known, signedHeaders: signedCallbacks };
  const sendingAtOnce = { ...deps, ...ofPolicy };
  node?.membership.onChange(sharesChanged);
  const { feed, nodeFeed } = createFeeds(deps, loops);
  return {
    actionService,
    pauseService,
    hostService,
    channelService: createChannelService({ ...sendingAtOnce, channels: store.channels }),
    /** Tests of receivers of callbacks. */
    callbackTests: createCallbackTestService(sendingAtOnce),
    knownHosts: hosts,
    knownChannels: known,
    pauseOf: paused.pauseOf,
    activePauses: paused,
    isStopped: paused.isStopped,
    feed,
    overview: createOverview({ ...deps, ...store, retentionDays: settings.retentionDays }),
    loop,
    kept,
    bus,
    enqueue,
    signingSecrets,
    recipients,
    historyOf,
    receiptUrl,
    receiptPath,
    /** Call it when a mail that no change of an action has caused waits for this address. */
    mailWaits: (accountId: string, host: string) => mails.add(mailLane(accountId, host, parts.clock.now())),
    /** Which loops claim nothing because the store is away. */
    paused: () => pausedOf({ actions: loop, callbacks, mails, messages }),
    ...lifecycleOf({ loops, kept, paused, pauseService, nodeFeed }),
  };
}

/** Tells every loop of a change that concerns all. */
function tellingAll(loops: readonly Pick<Scheduler<Action>, "pauseChanged" | "sharesChanged">[]) {
  return {
    pauseChanged: (accountId: string) => loops.forEach((loop) => loop.pauseChanged(accountId)),
    sharesChanged: () => loops.forEach((loop) => loop.sharesChanged()),
  };
}

type LoopName = "actions" | "callbacks" | "mails" | "messages";

function pausedOf(loops: Readonly<Record<LoopName, { readonly isPaused: boolean }>>) {
  const { actions, callbacks, mails, messages } = loops;
  return {
    actions: actions.isPaused,
    callbacks: callbacks.isPaused,
    mails: mails.isPaused,
    messages: messages.isPaused,
  };
}

function mailLane(accountId: string, host: string, dueAt: Date) {
  return { lane: { accountId, host, keyId: "" }, dueAt, isLarge: false };
}

/** What applies to attempts: of the server, and what accounts set for hosts. */
function rulesFor(settings: Config, hosts: KnownHostSettings, channels: KnownChannels) {
  const { attemptTimeoutMs: timeoutMs, retryBaseMs: baseMs, retryCapMs: capMs } = settings;
  const server: EffectiveRules = { timeoutMs, backoff: { baseMs, capMs }, giveUpOn: [] };
  return {
    rulesOf: (action: Action) => hosts.rulesOf(server, action, ownRules(action.extras)),
    timeoutOf: (lane: LaneName) => hosts.rulesOf(server, lane, null).timeoutMs,
    limitsOf: hosts.limitsOf,
    // Both before anything is claimed: how it is sent, and whom its next change tells.
    prepare: async () => void (await Promise.all([hosts.reload(), channels.reload()])),
  };
}

interface Running {
  readonly loops: readonly Pick<Scheduler<Action>, "start" | "drain">[];
  readonly kept: UnwrittenResults;
  readonly paused: ActivePauses;
  readonly pauseService: ReturnType<typeof createPauseService>;
  readonly nodeFeed: NodeFeed | null;
}

function lifecycleOf({ loops, kept, paused, pauseService, nodeFeed }: Running) {
  return {
    /** Ends what a dead process left active, then begins to deliver. */
    async start(): Promise<void> {
      await paused.load().catch(unlessUnavailable);
      for (const loop of loops) await loop.start();
      await nodeFeed?.start();
    },
    /** Stops claiming and waits for what is in flight, for `limitMs` at most. */
    async drain(limitMs: number): Promise<void> {
      await Promise.all([...loops.map((loop) => loop.drain(limitMs)), pauseService.stop(), nodeFeed?.stop()]);
      kept.close();
    },
  };
}

type FeedParts = Omit<NodeFeedDeps, "cluster" | "streams" | "onRowsElsewhere"> &
  Parameters<typeof createFeed>[0] & { readonly store: Store };

/** The event streams, and what wakes them and the waits. `nodeFeed` is null if no other node changes anything. */
function createFeeds(parts: FeedParts, loops: readonly Pick<Scheduler<Action>, "lookElsewhere">[]) {
  const { bus, store } = parts;
  const feed = createFeed(parts);
  if (store.cluster === null) {
    bus.subscribe(({ accountId }) => feed.changed(accountId));
    return { feed, nodeFeed: null };
  }
  // A change of this node may not be readable yet for streams, so that the feed of all changes wakes them for it too.
  const onRowsElsewhere = () => {
    for (const loop of loops) loop.lookElsewhere();
  };
  return { feed, nodeFeed: new NodeFeed({ ...parts, cluster: store.cluster, streams: feed, onRowsElsewhere }) };
}

/** Not fatal: each claim checks the pauses in the store. Only answers may miss one. */
function unlessUnavailable(error: unknown): void {
  if (!(error instanceof StoreUnavailable)) throw error;
}

/** Path and URL of an action's receipt. */
function receiptsOf(settings: Config, secrets: Secrets) {
  /** For our own pages, which may be open at another address than BASE_URL. */
  const receiptPath = (actionId: string) => `/r/${secrets.receiptToken(actionId)}`;
  /** For answers, events and callbacks: without BASE_URL only the path is known. */
  const receiptUrl = (actionId: string) => (settings.isBaseUrlSet ? settings.baseUrl : "") + receiptPath(actionId);
  return { receiptPath, receiptUrl };
}

const collectGarbage = () => collectLargeTexts(COLLECTED_HEAP_BYTES_MAX);

type ActionSchedulerParts = Omit<SchedulerDeps<Action>, "name" | "queue" | "dueOf" | "attempt" | "ends" | "limits"> &
  Omit<AttemptDeps, "requestOf" | "settlement"> &
  SettlementDeps &
  RequestDeps &
  Pick<EngineNeeds, "node"> & { readonly actions: ActionStore };

/** Sends actions. */
function createActionScheduler(settings: Config, parts: ActionSchedulerParts): Scheduler<Action> {
  const { dispatchConcurrency: total, dispatchPerHost: perHost } = settings;
  const { actions, log, metrics } = parts;
  const leaseMsMax = Math.max(settings.attemptTimeoutMs, ATTEMPT_TIMEOUT_SET_MS_MAX) + LEASE_GRACE_MS;
  const settlement = new Settlement(parts);
  return new Scheduler({
    ...parts,
    name: "actions",
    queue: actions,
    recoveryLease: parts.node?.recoveryLease("actions", leaseMsMax) ?? null,
    dueOf: dueAction,
    attempt: createAttempt({ ...parts, requestOf: createRequestOf(parts), settlement }),
    ends: {
      // What a dead process had in flight ends as `unknown`: the target may have received it.
      recover: (action) => settlement.recover(action),
      setAside: (action) => settlement.setAside(action),
      // The row was read back without its last result, which stays as it is.
      unclaim: (action) => settlement.unclaim({ ...action, result: null }, "in_doubt"),
      onRescued(count) {
        metrics.rescued(count);
        log.warn("actions.rescued", { count });
      },
    },
    limits: { total, perHost, largeBytes: ACTION_BYTES_IN_FLIGHT_MAX },
    collectGarbage,
  });
}

type NotificationParts = Omit<NotificationDeps, "kind" | "queue" | "deliver" | "limits"> &
  Omit<
    CallbackDeps & MailDeps,
    "channels" | "team" | "people" | "linksOf" | "baseUrl" | "receiptLink" | "approvalTtlHours" | "signedHeaders"
  > &
  SigningDeps &
  Pick<EngineNeeds, "secrets" | "node"> &
  Pick<AppContext, "store"> & { readonly receiptPath: (actionId: string) => string };

/** The schedulers of callbacks, mails and messages to channels. */
function createNotificationSchedulers(settings: Config, parts: NotificationParts) {
  const { callbackConcurrency, mailConcurrency, baseUrl, approvalTtlHours } = settings;
  const { store, secrets, receiptPath } = parts;
  const signedHeaders = createSignedHeaders(parts, "callbacks");
  const callbacks = createNotificationScheduler({
    ...parts,
    kind: "callback",
    queue: store.outbox.callbacks,
    recoveryLease: parts.node?.recoveryLease("callbacks", settings.attemptTimeoutMs + LEASE_GRACE_MS) ?? null,
    deliver: createCallback({ ...parts, signedHeaders }),
    limits: {
      total: callbackConcurrency,
      perHost: CALLBACKS_PER_HOST_MAX,
      largeBytes: CALLBACK_BYTES_IN_FLIGHT_MAX,
    },
    collectGarbage,
  });
  const mails = createNotificationScheduler({
    ...parts,
    kind: "mail",
    queue: store.outbox.mails,
    recoveryLease: parts.node?.recoveryLease("mails", settings.attemptTimeoutMs + LEASE_GRACE_MS) ?? null,
    deliver: createMail({
      ...parts,
      channels: store.channels,
      team: store.team,
      people: store.people,
      linksOf: createLinksOf({ links: store.links, secrets, baseUrl }),
      baseUrl,
      approvalTtlHours,
      receiptLink: (actionId) => baseUrl + receiptPath(actionId),
    }),
    limits: { total: mailConcurrency, perHost: MAILS_AT_ONCE_MAX, largeBytes: 0 },
  });
  const messages = createNotificationScheduler({
    ...parts,
    kind: "message",
    queue: store.outbox.messages,
    recoveryLease: parts.node?.recoveryLease("messages", settings.attemptTimeoutMs + LEASE_GRACE_MS) ?? null,
    deliver: createMessage({ ...parts, channels: store.channels, signedHeaders, baseUrl }),
    limits: { total: MESSAGES_IN_FLIGHT_MAX, perHost: MESSAGES_PER_CHANNEL_MAX, largeBytes: 0 },
  });
  return { callbacks, mails, messages };
}
