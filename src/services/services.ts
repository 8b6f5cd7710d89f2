import { createAccountService } from "../accounts/account.ts";
import { createAuthenticate } from "../accounts/authenticate.ts";
import { createCallbackHostService } from "../accounts/callback-hosts.ts";
import { createFirstStepService } from "../accounts/first-steps.ts";
import { createInvitationService } from "../accounts/invitations.ts";
import { createKeyService } from "../accounts/keys.ts";
import { createOwnMailService } from "../accounts/own-mails.ts";
import { createPeopleService } from "../accounts/people.ts";
import { createServerSize } from "../accounts/server-size.ts";
import { createSessionService } from "../accounts/sessions.ts";
import { createSignUpGate } from "../accounts/sign-up-gate.ts";
import { createSigningService } from "../accounts/signing-secrets.ts";
import { createTeamService } from "../accounts/team.ts";
import { createVerifyService } from "../accounts/signature-check.ts";
import { createWelcomeLinkService } from "../accounts/welcome-links.ts";
import { createActionService, createListNotifications } from "../actions/service.ts";
import { createHeld } from "../approvals/held.ts";
import { createFollowLink } from "../approvals/links.ts";
import { createRecipients } from "../approvals/recipients.ts";
import { createAuditService } from "../audit/audit.ts";
import { createBulk } from "../bulk/service.ts";
import { createCredentialAlerts, createOwnerNotices } from "../credentials/alerts.ts";
import { KnownCredentials } from "../core/credential.ts";
import { createCredentialRequestService } from "../credentials/requests.ts";
import { createCredentialService } from "../credentials/service.ts";
import { createCredentialUse } from "../credentials/use.ts";
import { createChannelService } from "../channels/channels.ts";
import { effectiveSettings } from "../config/config.ts";
import { checkTarget, providerPolicy, type TargetPolicy } from "../config/target-policy.ts";
import { requestDigest } from "../core/dedupe.ts";
import { REVOKED_KEY_TAKEN_MS_MAX, SHARED_FRESH_MS, SIGNING_SECRETS_FRESH_MS } from "../core/limits.ts";
import type { Caller } from "../core/roles.ts";
import { StoreUnavailable } from "../core/store.ts";
import type { Passwords } from "../crypto/passwords.ts";
import { type Secrets, createSignedHeaders } from "../crypto/secrets.ts";
import { createDelivery } from "../delivery/delivery.ts";
import type { DeliveryNode } from "../delivery/scheduler.ts";
import { KnownChannels } from "../core/channel.ts";
import { createCountActivity } from "../events/activity-job.ts";
import { createFeed } from "../events/feed.ts";
import { NodeFeed } from "../events/node-feed.ts";
import { createOverview } from "../events/overview.ts";
import { KnownHostSettings } from "../core/host-settings.ts";
import { createGrantService, KnownGrants } from "../grants/grants.ts";
import { createHostService } from "../hosts/hosts.ts";
import type { Mailer } from "../mail/mailer.ts";
import { createOAuthClientService } from "../oauth/account-clients.ts";
import { artifactId } from "../oauth/names.ts";
import { createOAuth } from "../oauth/service.ts";
import { createOidc, OIDC_CALLBACK_PATH } from "../oidc/oidc.ts";
import type { Sender } from "../outbound/sender.ts";
import { createSender } from "../outbound/send.ts";
import { createReadReceipt } from "../receipts/receipt.ts";
import { createKnownRules } from "../rules/known.ts";
import { createRuleService } from "../rules/service.ts";
import { ActivePauses, createPauseService } from "../pauses/pauses.ts";
import { createEnqueue } from "../receipts/enqueue.ts";
import type { AppContext } from "../runtime/app-context.ts";
import type { JobLeases } from "../runtime/jobs.ts";

interface ServiceNeeds {
  readonly secrets: Secrets;
  readonly passwords: Passwords;
  readonly sender: Sender;
  /** Fetches URLs that strangers name. It reaches public addresses only. */
  readonly publicSender: Sender;
  /** Null: no mail provider is configured. */
  readonly mailer: Mailer | null;
  /** Where calls may go. */
  readonly policy: TargetPolicy;
  /** Null: this is the only process of the store. */
  readonly node: (DeliveryNode & { readonly jobs?: JobLeases }) | null;
}

export type Services = ReturnType<typeof createServices>;

/** The services that routes call: all but what works in the background. */
export type RouteServices = Omit<
  Services,
  "bulkRunner" | "countActivity" | "credentialAlerts" | "delivery" | "drain" | "enqueue" | "known" | "start"
>;

/** Creates every service, in the order of their dependencies. None begins to work before `start`. */
export function createServices(app: AppContext, needs: ServiceNeeds) {
  const { clock, ids, config, store } = app;
  const { secrets, policy, sender, publicSender, mailer, passwords, node } = needs;
  const { baseUrl } = config;
  const { actions, pauses } = store;
  const { hash: hashText } = secrets;
  const checkUrl = (url: string) => checkTarget(policy, url);
  /** For our own pages, which may be open at another address than BASE_URL. */
  const receiptPath = (actionId: string) => `/r/${secrets.receiptToken(actionId)}`;
  /** For answers, events and callbacks: without BASE_URL only the path is known. */
  const receiptUrl = (actionId: string) => (config.isBaseUrlSet ? baseUrl : "") + receiptPath(actionId);

  // What an attempt asks before it is made.
  const { attemptTimeoutMs: timeoutMs, retryBaseMs: baseMs, retryCapMs: capMs } = config;
  const hosts = new KnownHostSettings(store.hostSettings, { timeoutMs, backoff: { baseMs, capMs }, giveUpOn: [] });
  const channels = new KnownChannels(store.channels);
  const paused = new ActivePauses(pauses);
  const rules = createKnownRules(store, clock, hashText);
  const grants = new KnownGrants(store, clock, hashText);
  const grantService = createGrantService(app, grants, hashText);
  const credentials = new KnownCredentials(store.credentials);
  const credentialUse = createCredentialUse(app, credentials, hosts, secrets, policy);
  const freshMs = node === null ? SIGNING_SECRETS_FRESH_MS : SHARED_FRESH_MS;
  const signingService = createSigningService(app, secrets, freshMs);
  const recipients = createRecipients(app, rules);
  const held = createHeld(app, hashText, credentialUse);
  const enqueue = createEnqueue(ids, receiptUrl, channels.of);

  const delivery = createDelivery(app, {
    secrets,
    sender,
    mailer,
    node,
    signingSecrets: signingService,
    recipients,
    readHistory: held.readHistory,
    enqueue,
    hosts,
    channels,
    paused,
    rules,
    grants,
    credentials,
    credentialUse,
    receiptPath,
  });
  const feed = createFeed(actions);
  const nodeFeed = listenToChanges(app, feed, delivery.lookElsewhere);

  const actionService = createActionService(app, {
    enqueue,
    reserve: delivery.reserve,
    recipients,
    hashText,
    actionDigest: (action) => secrets.requestToken(action.id, requestDigest(action, hashText)),
    rules,
    grants,
    grantService,
    credentials: credentialUse,
    held,
  });
  const takenElsewhereMs = node === null ? 0 : REVOKED_KEY_TAKEN_MS_MAX;
  const pauseService = createPauseService(app, paused, actionService.cancel, takenElsewhereMs);
  const signUpGate = createSignUpGate(app, paused);
  const { isStopped } = paused;
  const { bulkService, bulkRunner } = createBulk(app, actionService, isStopped, node?.jobs);
  const authenticate = createAuthenticate(app, {
    isStopped,
    secrets,
    ...(config.oauth !== null && {
      keyOfToken: (token) => store.oauth.keyByToken(artifactId(secrets, "AccessToken", token), clock.now()),
    }),
  });
  const { forget } = authenticate;
  const sessionService = createSessionService(app, { secrets });
  const peopleService = createPeopleService(app, { passwords, secrets, signUpGate, sessionService });
  const onMail =
    config.mail === null
      ? null
      : (accountId: string, host: string) => delivery.addNotification("mail", accountId, host);
  const invitationService = createInvitationService(app, peopleService, sessionService, secrets, onMail);
  const keyService = createKeyService(app, {
    secrets,
    pauseService,
    signUpGate,
    knownCredentials: credentials,
    forget,
  });
  const oauth =
    config.oauth === null
      ? null
      : createOAuth(app, { ...config.oauth, secrets, isStopped, forget, keyService, sender: publicSender });
  const signedHeaders = createSignedHeaders(secrets, signingService, "callbacks");
  const posting = { sender, signedHeaders, checkTarget: checkUrl };

  const credentialService = createCredentialService(app, {
    known: credentials,
    secrets,
    credentialUse,
    paused,
    ...posting,
  });

  const countActivity = createCountActivity({ store, clock });
  const channelService = createChannelService(app, { ...posting, known: channels, recipients, mailer });
  const notices = createOwnerNotices(app, channels.of, delivery.addNotification);

  return {
    secrets,
    signUpGate,
    bulkService,
    bulkRunner,
    authenticate,
    accountService: createAccountService(app),
    sessionService,
    peopleService,
    teamService: createTeamService(app, sessionService, authenticate.recheck, (caller, email) =>
      channelService.forgetAddress(caller, email),
    ),
    invitationService,
    welcomeLinks: createWelcomeLinkService(app, peopleService, sessionService, secrets),
    ownMails: createOwnMailService(app, mailer, secrets),
    oidc: createOidcLogin(app, { secrets, sessionService, invitationService }),
    actionService,
    pauseService,
    findPause: paused.findPause,
    isStopped,
    hostService: createHostService(app, hosts),
    grantService,
    credentialService,
    credentialRequests: createCredentialRequestService(app, notices, credentialService, feed.ask),
    credentialAlerts: createCredentialAlerts(app, notices),
    ruleService: createRuleService(app, rules),
    channelService,
    auditService: createAuditService(app),
    feed,
    countActivity,
    overviewService: createOverview({ ...app, countActivity }),
    firstSteps: createFirstStepService(app),
    keyService,
    oauth,
    oauthClients: createOAuthClientService(app, secrets, forget),
    signingService,
    verifyService: createVerifyService(app, signingService),
    callbackHosts: createCallbackHostService(app, posting),
    followLink: createFollowLink(app, secrets, actionService, recipients, held.readHistory),
    readReceipt: createReadReceipt(actions, secrets),
    listNotifications: createListNotifications(app),
    checkTarget: checkUrl,
    receiptUrl,
    receiptPath,
    settingsFor: async (caller: Caller) => effectiveSettings(config, policy, await signUpGate.isOperator(caller)),
    readSize: createServerSize(app, signUpGate.isOperator),
    delivery,
    enqueue,
    /** What delivery has read, and reads again where other nodes change it. */
    known: { hosts, channels, paused, rules, grants, credentials },
    /** Ends what a dead process left active, then begins to deliver. */
    start: async (): Promise<void> => {
      // Each claim checks the pauses in the store. Without this copy, only answers may miss one.
      await paused.reload().catch((error: unknown) => {
        if (!(error instanceof StoreUnavailable)) throw error;
      });
      await delivery.start();
      await nodeFeed?.start();
    },
    /** Stops claiming and waits for what is in flight, for `limitMs` at most. */
    drain: async (limitMs: number): Promise<void> => {
      await Promise.all([delivery.drain(limitMs), pauseService.stop(), nodeFeed?.stop()]);
      delivery.unwritten.close();
    },
  };
}

/** Wakes event streams and waiting requests when something changes. Null: there are no other nodes to listen to. */
function listenToChanges(app: AppContext, streams: ReturnType<typeof createFeed>, onRowsElsewhere: () => void) {
  const { cluster, actions } = app.store;
  if (cluster === null) {
    app.bus.subscribe(streams.changed);
    return null;
  }
  // Streams may not be able to read a change of this node yet, so the feed of all nodes wakes them for it too.
  return new NodeFeed({ ...app, cluster, actions, streams, onRowsElsewhere });
}

/** Null: no identity provider is configured. */
function createOidcLogin(
  app: AppContext,
  needs: Pick<Parameters<typeof createOidc>[1], "secrets" | "sessionService" | "invitationService">,
) {
  const { oidc: settings, baseUrl, allowedPrivateTargets } = app.config;
  if (settings === null) return null;
  const sender = createSender(providerPolicy(settings.issuer, "OIDC_ISSUER", allowedPrivateTargets));
  return createOidc(app, { ...needs, settings, sender, redirectUri: baseUrl + OIDC_CALLBACK_PATH });
}
