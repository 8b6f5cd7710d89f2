import { PAGE_STREAM_HEARTBEATS_MAX } from "../core/limits.ts";
import { createStreamEvents, pageEventRoutes, pageEvents, pageStateEvent } from "../events/stream.ts";
import type { ApiOperation } from "../http/openapi.ts";
import { createRoutes } from "../http/operation.ts";
import { acceptsGzip } from "../http/response.ts";
import { ASSETS } from "../ui/assets.ts";
import { actionPageRoutes } from "./action/action-routes.ts";
import { actionListRoutes } from "./actions/actions.tsx";
import { approvalLinkRoutes } from "./decisions/approval-link.tsx";
import { auditPages } from "./settings/audit.tsx";
import { authRoutes, entryPages } from "./entry/auth-routes.ts";
import { passwordPages, accountPages } from "./settings/account.tsx";
import { bulkPages } from "./actions/bulk.tsx";
import { callbackHostPages } from "./settings/callback-hosts.tsx";
import { channelPages } from "./settings/channels.tsx";
import { connectPages } from "./entry/connect.tsx";
import { docsPages } from "./docs/routes.ts";
import { framePages } from "./palette.tsx";
import { getStartedPages } from "./entry/first-steps.tsx";
import { hostPages } from "./settings/hosts.tsx";
import { inboxRoutes } from "./decisions/inbox-routes.ts";
import { keyListPages } from "./settings/keys.tsx";
import { newKeyPages } from "./settings/new-key.tsx";
import { oauthClientPages } from "./settings/oauth-clients.tsx";
import { oidcRoutes } from "./entry/oidc.tsx";
import { overviewPages } from "./actions/overview.tsx";
import { receiptRoutes } from "./action/receipt-routes.ts";
import { resendRoutes } from "./action/resend-routes.ts";
import { rulePages } from "./rules/rules.tsx";
import { notificationPages } from "./settings/notifications.tsx";
import { credentialRequestPages } from "./settings/credential-request.tsx";
import { credentialPages } from "./settings/credentials.tsx";
import { grantPages } from "./rules/grants.tsx";
import { pausePages } from "./settings/pauses.tsx";
import { serverPages } from "./settings/server.tsx";
import { signingPages } from "./settings/signing.tsx";
import { joinPages } from "./entry/join.tsx";
import { peoplePages } from "./settings/team.tsx";
import { createPageDeps, type PageNeeds } from "./frame/page-deps.ts";

/** Everything that people open in a browser: pages and forms, links of mails, receipts, and the files that pages load. */
export function createPages(needs: PageNeeds, operations: () => readonly ApiOperation[]) {
  const deps = createPageDeps(needs);
  const streamEvents = createStreamEvents(
    {
      ...needs,
      beatsMax: PAGE_STREAM_HEARTBEATS_MAX,
      extraText: pageStateEvent(needs.credentialRequests),
    },
    pageEvents,
  );
  const routes = [
    receiptRoutes(deps),
    authRoutes(deps),
    approvalLinkRoutes(deps),
    entryPages(deps),
    framePages(deps),
    inboxRoutes(deps),
    actionListRoutes(deps),
    bulkPages(deps),
    actionPageRoutes(deps),
    resendRoutes(deps),
    pageEventRoutes(deps.findWatch, deps.ownOrigin, streamEvents),
    keyListPages(deps),
    newKeyPages(deps),
    rulePages(deps),
    credentialPages(deps),
    oauthClientPages(deps),
    credentialRequestPages(deps),
    grantPages(deps),
    pausePages(deps),
    hostPages(deps),
    callbackHostPages(deps),
    channelPages(deps),
    serverPages(deps),
    auditPages(deps),
    overviewPages(deps),
    getStartedPages(deps),
    signingPages(deps),
    notificationPages(deps),
    passwordPages(deps),
    peoplePages(deps),
    accountPages(deps),
    joinPages(deps),
    oidcRoutes(deps),
    ...connectPages(deps),
    docsPages(deps, operations),
    assetRoutes(),
  ] as const;
  return { routes, personOnError: deps.personOnError };
}

/**
 * The files that pages load. Paths contain a hash, so they can be cached for ever. Compresses assets, but not pages, which
 * contain secrets beside text that others chose (BREACH); only the documentation does not.
 */
function assetRoutes() {
  const routes = createRoutes();
  for (const asset of ASSETS) {
    const headers = { ...HEADERS, "content-type": asset.type };
    routes.get(asset.path, ({ request }) => {
      if (!acceptsGzip(request)) return new Response(asset.text, { headers });
      return new Response(asset.gzip, { headers: { ...headers, "content-encoding": "gzip" } });
    });
  }
  return routes;
}

const HEADERS = {
  "cache-control": "public, max-age=31536000, immutable",
  vary: "Accept-Encoding",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
} as const;
