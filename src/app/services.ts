import type { AppContext } from "../runtime/app-context.ts";
import { createAuthenticate } from "../accounts/authenticate.ts";
import { createCallbackHostService } from "../accounts/callback-hosts.ts";
import { createFirstStepService } from "../accounts/first-steps.ts";
import { createKeyService } from "../accounts/keys.ts";
import { createOwnMailService } from "../accounts/own-mails.ts";
import { createPeopleService } from "../accounts/people.ts";
import { createServerSize } from "../accounts/server-size.ts";
import { createSignUpGate } from "../accounts/sign-up-gate.ts";
import { createSigningService } from "../accounts/signing-secrets.ts";
import { createTeamService } from "../accounts/team.ts";
import { createOidcThrottle } from "../accounts/throttle.ts";
import { createVerifyService } from "../accounts/verify-signature.ts";
import { createListNotifications } from "../actions/service.ts";
import { createFollowLink } from "../approvals/links.ts";
import { createAuditService } from "../audit/service.ts";
import { createBulk } from "../bulk/bulk.ts";
import { createEffectiveSettings } from "../config/config.ts";
import { checkTarget, providerPolicy, type TargetPolicy } from "../config/target-policy.ts";
import type { Passwords } from "../crypto/passwords.ts";
import type { Secrets } from "../crypto/secrets.ts";
import type { Mailer } from "../mail/mailer.ts";
import { createOidcProvider } from "../oidc/provider.ts";
import { createOidcSignIn } from "../oidc/sign-in.ts";
import { createSender } from "../outbound/send.ts";
import type { Oidc } from "../pages/oidc-routes.ts";
import { createReadReceipt } from "../pages/receipt-routes.ts";
import { OIDC_CALLBACK_PATH } from "../pages/sign-in.tsx";
import type { JobLeases } from "../runtime/job-leases.ts";
import type { Engine } from "./engine.ts";

interface ServiceNeeds {
  readonly engine: Engine;
  readonly secrets: Secrets;
  readonly passwords: Passwords;
  /** Null: no mail provider is configured. */
  readonly mailer: Pick<Mailer, "send"> | null;
  /** Where calls may go. */
  readonly policy: TargetPolicy;
  /** Null: this is the only process of the store. */
  readonly leases: JobLeases | null;
}

export type Services = ReturnType<typeof createServices>;

/** Every service that routes call, in the order in which they need each other. */
export function createServices(app: AppContext, needs: ServiceNeeds) {
  const { clock, ids, config, store, log } = app;
  const { engine, secrets, policy, mailer, passwords, leases } = needs;
  const { baseUrl } = config;
  const { accounts, audit } = store;
  const { isStopped, activePauses, pauseService, signingSecrets } = engine;

  const signUpGate = createSignUpGate({ accounts, paused: activePauses, signUps: config.signUps, clock, log });
  const { bulkService, bulkRunner } = createBulk({ ...app, engine, ...(leases !== null && { leases }) });
  const authenticate = createAuthenticate({ accounts, isStopped, secrets, clock });
  const peopleService = createPeopleService({
    clock,
    ids,
    people: store.people,
    audit,
    passwords,
    secrets,
    signUpGate,
  });
  const onMail = config.mail === null ? null : engine.mailWaits;
  const teamService = createTeamService({ ...store, clock, ids, peopleService, secrets, baseUrl, onMail });
  return {
    secrets,
    signUpGate,
    bulkService,
    bulkRunner,
    authenticate,
    peopleService,
    teamService,
    ownMails: createOwnMailService({ ...store, clock, ids, mailer, secrets, baseUrl }),
    oidc: createOidc(app, secrets, { peopleService, teamService }),
    actionService: engine.actionService,
    pauseService,
    pauseOf: engine.pauseOf,
    isStopped,
    hostService: engine.hostService,
    channelService: engine.channelService,
    callbackTests: engine.callbackTests,
    auditService: createAuditService(audit, clock),
    feed: engine.feed,
    overviewService: engine.overview,
    firstSteps: createFirstStepService({ ...store, clock }),
    keyService: createKeyService({ ...app, ...store, secrets, pauseService, signUpGate, forget: authenticate.forget }),
    signingService: createSigningService({ ...store, clock, ids, secrets, signingSecrets }),
    verifyService: createVerifyService({ ...store, clock, signingSecrets }),
    callbackHosts: createCallbackHostService({ ...store, clock }),
    followLink: createFollowLink({ ...engine, clock, links: store.links, actions: store.actions, secrets }),
    readReceipt: createReadReceipt({ actions: store.actions, secrets }),
    listNotifications: createListNotifications(store.outbox),
    checkTarget: (url: string) => checkTarget(policy, url),
    receiptUrl: engine.receiptUrl,
    receiptPath: engine.receiptPath,
    rulesFor: createEffectiveSettings(config, policy, accounts),
    readSize: createServerSize({ ...config, clock, file: store.file, isOperator: signUpGate.isOperator }),
  };
}

/** Null: no identity provider is configured. */
function createOidc(
  { config, store, clock }: AppContext,
  secrets: Secrets,
  services: Pick<Parameters<typeof createOidcSignIn>[0], "peopleService" | "teamService">,
): Oidc | null {
  const { oidc: settings, baseUrl, allowedPrivateTargets } = config;
  if (settings === null) return null;
  const sender = createSender(providerPolicy(settings.issuer, "OIDC_ISSUER", allowedPrivateTargets));
  const redirectUri = baseUrl + OIDC_CALLBACK_PATH;
  return {
    provider: createOidcProvider(settings, { sender, clock, redirectUri }),
    signIn: createOidcSignIn({ ...store, ...services, secrets, clock, allowedDomains: settings.allowedDomains }),
    throttle: createOidcThrottle(clock),
    name: new URL(settings.issuer).host,
  };
}
