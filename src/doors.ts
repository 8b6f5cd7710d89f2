import { createReadAccount } from "./accounts/account.ts";
import { createAuthenticate } from "./accounts/authenticate.ts";
import { createKeyDesk } from "./accounts/keys.ts";
import { createPeopleDesk } from "./accounts/people.ts";
import { createSigningDesk } from "./accounts/signing-desk.ts";
import { createFollowLink } from "./actions/follow-link.ts";
import { createListNotifications } from "./actions/notifications.ts";
import { createReadReceipt } from "./actions/receipt.ts";
import { createAgents } from "./agents.ts";
import type { Config } from "./config.ts";
import type { Engine } from "./engine.ts";
import { mcpRoutes } from "./http/routes/mcp.ts";
import { GUIDES } from "./guides.ts";
import { createHttp, type Http } from "./http/server.ts";
import type { MetricsBook } from "./metrics/metrics.ts";
import type { TargetPolicy } from "./outbound/policy.ts";
import { createTargets } from "./outbound/target.ts";
import type { Clock } from "./ports/clock.ts";
import type { Ids } from "./ports/ids.ts";
import type { Log } from "./ports/log.ts";
import { createRulesFor } from "./rules.ts";
import { createPasswords } from "./secrets/passwords.ts";
import type { Vault } from "./vault.ts";
import { VERSION } from "./version.ts";

/** What the doors open on: every room below them, built. */
export interface DoorParts {
  readonly config: Config;
  readonly policy: TargetPolicy;
  readonly vault: Vault;
  readonly engine: Engine;
  readonly book: MetricsBook;
  /** Aborted when the service stops: whoever waits is answered. */
  readonly draining: AbortSignal;
}

export interface DoorDeps {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

/** Builds the HTTP door with all its routes; `listen` opens it. */
export function createDoors(parts: DoorParts, deps: DoorDeps): Http {
  const { config, policy, vault, engine, book, draining } = parts;
  const { store, secrets } = vault;
  const { accounts } = store;
  const authenticate = createAuthenticate({ accounts, secrets, clock: deps.clock });
  return createHttp({
    ...deps,
    desk: engine.desk,
    feed: engine.feed,
    overviewDesk: engine.overview,
    authenticate,
    keyDesk: createKeyDesk({ ...deps, accounts, secrets, forget: authenticate.forget }),
    peopleDesk: createPeopleDesk({
      ...deps,
      people: store.people,
      passwords: createPasswords(),
      secrets,
      signupsOpen: config.signupsOpen,
    }),
    readAccount: createReadAccount(store.people),
    targets: createTargets(policy),
    guides: GUIDES,
    rulesFor: createRulesFor({ config, policy, accounts }),
    listNotifications: createListNotifications(store.outbox),
    baseUrl: config.baseUrl,
    isOnLoopback: config.isOnLoopback,
    port: config.port,
    metrics: book.metrics,
    receiptUrl: engine.receiptUrl,
    limits: { rateLimitPerSecond: config.rateLimitPerSecond ?? 0 },
    approvers: config.approvers,
    draining,
    signingDesk: createSigningDesk({ ...deps, signing: store.signing, signingSecrets: engine.signingSecrets, secrets }),
    approvalLinks: config.approvalLinks,
    followLink: createFollowLink({ ...deps, links: store.links, actions: store.actions, secrets, desk: engine.desk }),
    readReceipt: createReadReceipt({ actions: store.actions, secrets }),
    probe: () => store.probe(),
    renderMetrics: () => book.render(),
    version: VERSION,
    routes: mcpRoutes(createAgents(parts, deps)),
  });
}
