import { createReadAccount } from "./accounts/account.ts";
import { createAuditService } from "./accounts/audit.ts";
import { createAuthenticate } from "./accounts/authenticate.ts";
import { createCallbackHostService } from "./accounts/callback-hosts.ts";
import { createKeyService } from "./accounts/keys.ts";
import { createPeopleService } from "./accounts/people.ts";
import type { SignUpGate } from "./accounts/sign-up-gate.ts";
import { createSigningService } from "./accounts/signing-desk.ts";
import { createFollowLink } from "./actions/follow-link.ts";
import { createListNotifications } from "./actions/notifications.ts";
import { createReadReceipt } from "./actions/receipt.ts";
import { createAgents } from "./agents.ts";
import type { Config } from "./config.ts";
import { isLoopbackUrl } from "./config/listen.ts";
import { trustedProxiesOf } from "./config/proxies.ts";
import type { Engine } from "./engine.ts";
import { createOwnHostPages } from "./http/own-host.ts";
import { mcpRoutes } from "./http/routes/mcp.ts";
import { GUIDES } from "./guides.ts";
import { createHttp, type Http } from "./http/server.ts";
import type { MetricsBook } from "./metrics/metrics.ts";
import type { TargetPolicy } from "./outbound/policy.ts";
import { createTargets } from "./outbound/target.ts";
import type { Clock } from "./ports/clock.ts";
import type { Ids } from "./ports/ids.ts";
import type { Log } from "./ports/log.ts";
import type { Secrets } from "./ports/secrets.ts";
import { createRulesFor } from "./rules.ts";
import { createPasswords } from "./secrets/passwords.ts";
import type { EncryptedStore } from "./vault.ts";
import { VERSION } from "./version.ts";

/** What the doors open on: every room below them, built. */
export interface HttpServiceParts {
  readonly config: Config;
  readonly policy: TargetPolicy;
  readonly encryptedStore: EncryptedStore;
  readonly engine: Engine;
  readonly book: MetricsBook;
  readonly signUpGate: SignUpGate;
  /** Aborted when the service stops: whoever waits is answered. */
  readonly draining: AbortSignal;
}

export interface HttpServiceDeps {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

/** Whether a text is METRICS_TOKEN, in constant time; null: it is not set. */
export function metricsTokenCheck(token: string | null, secrets: Pick<Secrets, "hash" | "isOfHash">) {
  if (token === null) return null;
  const hash = secrets.hash(token);
  return (text: string) => secrets.isOfHash(text, hash);
}

/** Builds the HTTP door with all its routes; `listen` opens it. */
export function createHttpService(parts: HttpServiceParts, deps: HttpServiceDeps): Http {
  const { config, policy, engine, book, signUpGate, draining } = parts;
  const { store, secrets } = parts.encryptedStore;
  const { accounts } = store;
  const { pauseService, isStopped } = engine;
  const authenticate = createAuthenticate({ accounts, isStopped, secrets, clock: deps.clock });
  return createHttp({
    ...deps,
    actionService: engine.actionService,
    pauseOf: engine.pauseOf,
    pauseService,
    isStopped,
    signUpGate,
    auditService: createAuditService(store.audit, deps.clock),
    feed: engine.feed,
    overviewService: engine.overview,
    authenticate,
    secrets,
    keyService: createKeyService({ ...deps, accounts, secrets, pauseService, signUpGate, forget: authenticate.forget }),
    peopleService: peopleServiceOf(parts, deps),
    readAccount: createReadAccount(store.people),
    targets: createTargets(policy),
    guides: GUIDES,
    rulesFor: createRulesFor({ config, policy, accounts }),
    listNotifications: createListNotifications(store.outbox),
    baseUrl: config.baseUrl,
    isOnLoopback: config.isOnLoopback,
    pagesGuard: createOwnHostPages({ isOnLoopback: config.isOnLoopback, isLoopback: isLoopbackUrl }),
    isTrustedProxy: trustedProxiesOf(config.trustedProxies),
    port: config.port,
    metrics: book.metrics,
    receiptUrl: engine.receiptUrl,
    receiptPath: engine.receiptPath,
    limits: {
      rateLimitPerSecond: config.rateLimitPerSecond ?? 0,
      mcpSessionsPerAccount: config.mcpSessionsPerAccount,
    },
    draining,
    signingService: createSigningService({ ...deps, ...store, ...engine, secrets }),
    callbackHosts: createCallbackHostService({ ...deps, ...store }),
    approvalLinks: config.approvalLinks,
    followLink: createFollowLink({ ...deps, ...store, ...engine, secrets }),
    readReceipt: createReadReceipt({ actions: store.actions, secrets }),
    probe: () => store.probe(),
    renderMetrics: () => book.render(),
    isMetricsToken: metricsTokenCheck(config.metricsToken, secrets),
    hasMetrics: config.metricsPort === null,
    version: VERSION,
    routes: mcpRoutes(createAgents(parts, deps)),
  });
}

function peopleServiceOf({ signUpGate, encryptedStore }: HttpServiceParts, deps: HttpServiceDeps) {
  const { store, secrets } = encryptedStore;
  const { people, audit } = store;
  return createPeopleService({
    ...deps,
    people,
    audit,
    passwords: createPasswords(),
    secrets,
    signUpGate,
  });
}
