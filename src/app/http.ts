import type { AnyElysia } from "elysia";
import { accountRoutes } from "../accounts/account.ts";
import { callbackHostRoutes } from "../accounts/callback-hosts.ts";
import { firstStepRoutes } from "../accounts/first-steps.ts";
import { invitationRoutes } from "../accounts/invitations.ts";
import { keyRoutes } from "../accounts/keys.ts";
import { serverRoutes } from "../accounts/server-routes.ts";
import { signingSecretRoutes } from "../accounts/signing-secrets.ts";
import { accountsRoutes } from "../accounts/sign-up-gate.ts";
import { verifyRoutes } from "../accounts/signature-check.ts";
import { teamRoutes } from "../accounts/team.ts";
import { approvalRoutes } from "../actions/decision-routes.ts";
import { createExportActions } from "../actions/export.ts";
import { notificationRoutes } from "../actions/notification-routes.ts";
import { actionRoutes } from "../actions/routes.ts";
import { auditRoutes } from "../audit/audit.ts";
import { bulkRoutes } from "../bulk/routes.ts";
import { channelRoutes } from "../channels/channels.ts";
import { RELEASE } from "../config/config.ts";
import { proxyMatcher } from "../config/values.ts";
import type { Secrets } from "../crypto/secrets.ts";
import { overviewRoutes } from "../events/overview.ts";
import { hostRoutes } from "../hosts/hosts.ts";
import { mcpRoutes } from "../http/mcp-routes.ts";
import { openApiJson, apiOperations } from "../http/openapi.ts";
import { createMcpGuard, createPagesGuard } from "../http/own-origin.ts";
import { createHttpServer, type Http } from "../http/server.ts";
import { oauthClientRoutes } from "../oauth/account-clients.ts";
import { mcpChallenge, oauthRoutes } from "../oauth/routes.ts";
import { systemRoutes } from "../http/system-routes.ts";
import { createPages } from "../pages/routes.ts";
import { credentialRequestRoutes } from "../credentials/requests.ts";
import { credentialRoutes } from "../credentials/routes.ts";
import { grantRoutes } from "../grants/grants.ts";
import { pauseRoutes } from "../pauses/pauses.ts";
import { ruleRoutes } from "../rules/routes.ts";
import { createActionSerializer } from "../receipts/action-json.ts";
import type { AppContext } from "../runtime/app-context.ts";
import type { RouteServices, Services } from "../services/services.ts";

export type HttpSettings = ReturnType<typeof httpSettings>;

/** Creates the HTTP server with all routes: the API, the pages, and `others` such as /mcp. */
export function createHttp(services: RouteServices, settings: HttpSettings, others: readonly AnyElysia[] = []): Http {
  const { actionService, receiptUrl, findPause } = services;
  const { clock, draining, baseUrl } = settings;
  const serialize = createActionSerializer(clock, receiptUrl, findPause);
  // An event describes the past, so it doesn't show a pause that is in force now.
  const serializeEvent = createActionSerializer(clock, receiptUrl, () => null);
  // One for the API and the pages: they share the limit of open exports.
  const exportActions = createExportActions(actionService, serialize, draining);
  const deps = { ...services, ...settings, serialize, serializeEvent, exportActions };
  const pages = createPages(deps, () => operations);
  let described: string | null = null;
  const apiDescription = () => (described ??= openApiJson(operations, baseUrl));
  const modules: readonly AnyElysia[] = [
    ...actionRoutes(deps),
    accountRoutes(deps),
    keyRoutes(deps),
    callbackHostRoutes(deps),
    signingSecretRoutes(deps),
    verifyRoutes(deps),
    accountsRoutes(deps),
    firstStepRoutes(deps),
    serverRoutes(deps),
    teamRoutes(deps),
    invitationRoutes(deps),
    pauseRoutes(deps),
    hostRoutes(deps),
    grantRoutes(deps),
    credentialRoutes(deps),
    oauthClientRoutes(deps),
    credentialRequestRoutes(deps),
    ruleRoutes(deps),
    channelRoutes(deps),
    auditRoutes(deps),
    bulkRoutes(deps),
    approvalRoutes(deps),
    notificationRoutes(deps),
    overviewRoutes(deps),
    ...pages.routes,
    oauthRoutes(deps),
    systemRoutes(deps, apiDescription),
    ...others,
  ];
  const operations = apiOperations(modules.flatMap(({ routes }) => routes));
  const { personOnError } = pages;
  const challenge = deps.oauth === null ? null : mcpChallenge(baseUrl);
  return createHttpServer({ ...deps, personOnError, mcpChallenge: challenge }, modules);
}

/**
 * What routes need besides services. `draining` aborts when the service stops, so that waiting requests are answered. `countNodes`:
 * how many processes use the database, as far as this one knows.
 */
export function httpSettings(app: AppContext, secrets: Secrets, draining: AbortSignal, countNodes = () => 1) {
  const { config, metrics, store, clock, ids, log } = app;
  const { baseUrl, approvalLinks, rateLimitPerSecond, mcpSessionsPerAccount } = config;
  return {
    draining,
    countNodes,
    clock,
    ids,
    log,
    metrics,
    ...RELEASE,
    baseUrl,
    approvalLinks,
    pagesGuard: createPagesGuard(config),
    mcpGuard: createMcpGuard(config),
    isTrustedProxy: proxyMatcher(config.trustedProxies),
    rateLimitPerSecond,
    mcpSessionsPerAccount,
    probe: () => store.probe(),
    renderMetrics: () => metrics.render(),
    isMetricsToken: metricsTokenCheck(config.metricsToken, secrets),
    hasMetrics: config.metricsPort === null,
  };
}

/** The routes of /mcp, over the same services as REST. `draining`: see `httpSettings`. */
export function agentRoutes(app: AppContext, services: Services, draining: AbortSignal): AnyElysia {
  const deps = { ...app, ...services, draining };
  // Imported by the first request: the SDK of MCP is a tenth of what a start loads.
  const make = async () => {
    const [{ createAgentHandler }, { createAgentServer }] = await Promise.all([
      import("../../mcp/http.ts"),
      import("../../mcp/server.ts"),
    ]);
    return createAgentHandler(createAgentServer(deps), deps);
  };
  let handler: ReturnType<typeof make> | null = null;
  return mcpRoutes(async (call) => (await (handler ??= make()))(call));
}

/** Compares a text with METRICS_TOKEN in constant time. Null: METRICS_TOKEN is not set. */
function metricsTokenCheck(token: string | null, secrets: Pick<Secrets, "hash" | "isOfHash">) {
  if (token === null) return null;
  const hash = secrets.hash(token);
  return (text: string) => secrets.isOfHash(text, hash);
}
