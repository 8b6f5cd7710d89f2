import { withStop, withNavigation } from "../pages/frame-routes.ts";
import { createAgentHandler } from "../../mcp/http.ts";
import { createAgentServer } from "../../mcp/server.ts";
import { type Config, RELEASE, VERSION } from "../config/config.ts";
import { isLoopbackAddress, isLoopbackUrl, trustedProxiesOf } from "../config/values.ts";
import type { Secrets } from "../crypto/secrets.ts";
import { mcpRoutes } from "../http/mcp-routes.ts";
import { GUIDE_GROUPS } from "../pages/docs/guides.ts";
import type { AppContext } from "../runtime/app-context.ts";
import type { Services } from "./services.ts";
import { DRAIN_MS_MAX } from "../core/limits.ts";
import type { Server } from "bun";
import { createHandler } from "../http/handler.ts";
import { operationsOf, openApiJson } from "../http/openapi.ts";
import { authRoutes } from "../pages/auth-routes.ts";
import { overviewRoutes } from "../events/overview-routes.ts";
import { notificationRoutes } from "../actions/notification-routes.ts";
import { approvalRoutes } from "../actions/decision-routes.ts";
import { actionRoutes } from "../actions/routes.ts";
import { createExportActions } from "../actions/export.ts";
import { createActionSerializer } from "../receipts/serialize.ts";
import { type Http, type ListenOptions, listenOnOtherLoopback, listenOn } from "../http/server.ts";
import type { AnyElysia } from "elysia";
import type { IsTrustedProxy } from "../http/client-address.ts";
import type { Metrics } from "../observability/metrics.ts";
import type { Log } from "../observability/log.ts";
import type { Ids } from "../core/ids.ts";
import type { Clock } from "../core/clock.ts";
import type { CreateRules } from "../actions/create-schema.ts";
import type { Authenticate } from "../core/session.ts";
import type { Feed } from "../events/feed.ts";
import type { PeopleService } from "../accounts/people.ts";
import type { FirstStepService } from "../accounts/first-steps.ts";
import type { OwnMailService } from "../accounts/own-mails.ts";
import type { PauseOf } from "../core/pause.ts";
import type { ActionService } from "../actions/service.ts";
import {
  createOwnHostOnly,
  createOwnHostPages,
  createOwnOrigin,
  type Guard,
  type OwnAddress,
} from "../http/own-origin.ts";
import type { OidcRouteDeps } from "../pages/oidc-routes.ts";
import {
  type FlashDeps,
  createReaderOf,
  createSessionCookie,
  createDeviceCookie,
  createPersonOf,
  createWatchOf,
  createFormOf,
  createTokenFormOf,
  createFlash,
} from "../http/session.ts";
import { type PageDeps, webPages } from "../pages/routes.ts";
import { type ApprovalLinkRouteDeps, approvalLinkRoutes } from "../pages/approval-link-routes.ts";
import { type ReceiptRouteDeps, receiptRoutes } from "../pages/receipt-routes.ts";
import { type TeamRouteDeps, teamRoutes } from "../accounts/team-routes.ts";
import { type AccountRouteDeps, accountRoutes } from "../accounts/routes.ts";
import { type BulkRouteDeps, bulkRoutes } from "../bulk/routes.ts";
import { type AuditRouteDeps, auditRoutes } from "../audit/routes.ts";
import { type PauseRouteDeps, pauseRoutes } from "../pauses/routes.ts";
import { type ChannelRouteDeps, channelRoutes } from "../channels/routes.ts";
import { type HostRouteDeps, hostRoutes } from "../hosts/routes.ts";
import { type SystemRouteDeps, systemRoutes } from "../http/system-routes.ts";

export interface HttpDeps
  extends
    Omit<SystemRouteDeps, "apiDescription">,
    HostRouteDeps,
    ChannelRouteDeps,
    PauseRouteDeps,
    AuditRouteDeps,
    BulkRouteDeps,
    AccountRouteDeps,
    TeamRouteDeps,
    ReceiptRouteDeps,
    Omit<ApprovalLinkRouteDeps, "ownOrigin">,
    Pick<PageDeps, "listNotifications" | "overviewService" | "guides" | "oidc">,
    Pick<FlashDeps & OidcRouteDeps, "secrets">,
    OwnAddress {
  readonly actionService: ActionService;
  readonly pauseOf: PauseOf;
  readonly ownMails: OwnMailService;
  readonly firstSteps: FirstStepService;
  readonly peopleService: PeopleService;
  readonly feed: Pick<Feed, "open">;
  readonly authenticate: Authenticate;
  /** Whether an account is stopped until an owner of the first account allows it. */
  readonly isStopped: (accountId: string) => boolean;
  readonly checkTarget: CreateRules["checkTarget"];
  readonly clock: Clock;
  readonly ids: Pick<Ids, "request">;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "requested">;
  /** URL of an action's receipt page, as API responses show it. */
  readonly receiptUrl: (actionId: string) => string;
  /** Path of the receipt page, for links on our own pages. */
  readonly receiptPath: (actionId: string) => string;
  readonly isTrustedProxy: IsTrustedProxy;
  /** Checks the Host of a request for a page. */
  readonly pagesGuard: Guard;
  /** Checks Host and Origin of a request for /mcp. */
  readonly mcpGuard: Guard;
  /** Aborted when the service stops: waiting requests are answered at once. */
  readonly draining: AbortSignal;
  /** How long a request may take to arrive; default `IDLE_SECONDS`. */
  readonly arrivalSeconds?: number;
  /** Routes of other modules, such as /mcp. */
  readonly routes?: readonly AnyElysia[];
}

/** The HTTP server: every route of the API, of /mcp and of the pages. */
export function createHttp(deps: HttpDeps): Http {
  const serialize = createActionSerializer(deps.clock, deps.receiptUrl, deps.pauseOf);
  // An event describes the past: it doesn't show a pause that is in force now.
  const serializeEvent = createActionSerializer(deps.clock, deps.receiptUrl, () => null);
  // One for the API and the pages: they share the limit of open exports.
  const exportActions = createExportActions({ ...deps, serialize });
  const people = { ...deps, ...sessionsOf(deps), exportActions };
  const modules: readonly AnyElysia[] = [
    ...actionRoutes({ ...deps, serialize, serializeEvent, exportActions }),
    ...accountRoutes(deps),
    ...teamRoutes(deps),
    pauseRoutes(deps),
    hostRoutes(deps),
    ...channelRoutes(deps),
    auditRoutes(deps),
    bulkRoutes(deps),
    approvalRoutes(deps),
    notificationRoutes(deps),
    overviewRoutes(deps),
    receiptRoutes(deps),
    authRoutes(people),
    systemRoutes({ ...deps, apiDescription: () => apiDescription }),
    approvalLinkRoutes(people),
    ...webPages({ ...people, operations: () => operations }),
    ...(deps.routes ?? []),
  ];
  const routes = modules.flatMap((module) => module.routes);
  const operations = operationsOf(routes);
  const apiDescription = openApiJson(operations, deps.baseUrl);
  const handler = createHandler({ ...deps, readerOf: createReaderOf(people.sessionOf) }, modules);
  let server: Server<unknown> | null = null;
  let other: Server<unknown> | null = null;
  const answer = (request: Request, from: Server<unknown>) => handler(request, from);
  const listenOnOther = (place: ListenOptions) => {
    other = listenOnOtherLoopback({ ...place, arrivalSeconds: deps.arrivalSeconds }, deps.baseUrl, answer);
  };

  return {
    routes,
    handle: (request) => handler(request, null),
    handleAs: (caller, request) => handler(request, null, caller),
    listen(port, host) {
      server = listenOn({ port, host, arrivalSeconds: deps.arrivalSeconds }, answer);
      const place = { port: server.port ?? port, host };
      listenOnOther(place);
      return place;
    },
    serveOn(listening, host) {
      listening.reload({ fetch: answer });
      server = listening;
      listenOnOther({ port: listening.port ?? 0, host });
    },
    async stop(graceMs = DRAIN_MS_MAX) {
      if (server === null) return;
      const isOver = Promise.withResolvers<void>();
      const cancelTimer = deps.clock.after(graceMs, isOver.resolve);
      await Promise.race([server.stop(), isOver.promise]);
      cancelTimer();
      await Promise.all([server.stop(true), other?.stop(true)]);
      [server, other] = [null, null];
    },
  };
}

/** Sessions and CSRF checks, which every page for people needs. */
export function sessionsOf(deps: HttpDeps) {
  const cookie = createSessionCookie(deps.baseUrl);
  const deviceCookie = createDeviceCookie(deps.baseUrl);
  const ownOrigin = createOwnOrigin(deps);
  const sessionOf = withStop(createPersonOf({ resume: deps.peopleService.resume, cookie }), deps);
  return {
    cookie,
    deviceCookie,
    ownOrigin,
    sessionOf,
    personOf: withNavigation(sessionOf, deps),
    watchOf: createWatchOf({ watchSession: deps.peopleService.watchSession, cookie }),
    formOf: createFormOf({ ...deps, deviceCookie, ownOrigin }),
    ownFormOf: createFormOf({ ...deps, deviceCookie, ownOrigin, isStopped: () => false }),
    tokenFormOf: createTokenFormOf({ ownOrigin }),
    flash: createFlash(deps),
  };
}

/** What the routes take besides services, from the settings. */
export function httpSettings({ config, metrics, store, clock, ids, log }: AppContext, secrets: Secrets) {
  return {
    clock,
    ids,
    log,
    metrics,
    ...RELEASE,
    guides: GUIDE_GROUPS,
    baseUrl: config.baseUrl,
    approvalLinks: config.approvalLinks,
    pagesGuard: createOwnHostPages({ ...config, isLoopback: isLoopbackUrl }),
    mcpGuard: guardOf(config),
    isTrustedProxy: trustedProxiesOf(config.trustedProxies),
    limits: {
      rateLimitPerSecond: config.rateLimitPerSecond ?? 0,
      mcpSessionsPerAccount: config.mcpSessionsPerAccount,
    },
    probe: () => store.probe(),
    renderMetrics: () => metrics.render(),
    isMetricsToken: metricsTokenCheck(config.metricsToken, secrets),
    hasMetrics: config.metricsPort === null,
  };
}

/** The routes of /mcp, over the same services as REST. `draining` is aborted when the service stops: whoever waits is answered. */
export function agentRoutes(app: AppContext, services: Services, draining: AbortSignal): AnyElysia {
  const { config, store } = app;
  const agentDeps = {
    ...app,
    ...services,
    agentApproval: config.agentApproval,
    baseUrl: config.baseUrl,
    version: VERSION,
    draining,
    sessionsPerAccount: config.mcpSessionsPerAccount,
    hasOtherNodes: store.cluster !== null,
  };
  return mcpRoutes({ answerAgent: createAgentHandler(createAgentServer(agentDeps), agentDeps) });
}

/** Whether a text is METRICS_TOKEN, in constant time; null: it is not set. */
export function metricsTokenCheck(token: string | null, secrets: Pick<Secrets, "hash" | "isOfHash">) {
  if (token === null) return null;
  const hash = secrets.hash(token);
  return (text: string) => secrets.isOfHash(text, hash);
}

/** Checks `Host` and `Origin` of /mcp. Any host is allowed if the service is public and BASE_URL is not set. */
function guardOf({ baseUrl, isBaseUrlSet, host }: Config): Guard {
  return createOwnHostOnly({
    ownHostname: isBaseUrlSet ? new URL(baseUrl).hostname : null,
    takesAnyHost: !isBaseUrlSet && !isLoopbackAddress(host),
    isLoopback: isLoopbackUrl,
  });
}
