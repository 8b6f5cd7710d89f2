import { PAGE_STREAM_HEARTBEATS_MAX } from "../core/limits.ts";
import {
  createStreamEvents,
  type EventsDeps,
  type PageEventRouteDeps,
  pageEventRoutes,
  pageEventsOf,
} from "../events/stream.ts";
import { createRoutes } from "../http/operation.ts";
import {
  type ActionListRouteDeps,
  actionListRoutes,
  type ActionPageRouteDeps,
  actionPageRoutes,
} from "./action-routes.ts";
import { type AuthRouteDeps, entryPages, type PasswordPageDeps, passwordPages, startSession } from "./auth-routes.ts";
import { type OidcRouteDeps, oidcRoutes } from "./oidc-routes.ts";
import { type JoinPageDeps, joinPages, type TeamPageDeps, teamPages } from "./team-routes.ts";
import { type AuditPageDeps, auditPages } from "./audit-routes.ts";
import { type ChannelPageDeps, channelPages } from "./channel-routes.ts";
import { type CallbackHostPageDeps, callbackHostPages } from "./callback-host-routes.ts";
import { type HostPageDeps, hostPages } from "./host-routes.ts";
import { type BulkPageDeps, bulkPages } from "./bulk-routes.ts";
import { framePages, type FrameRouteDeps } from "./frame-routes.ts";
import { type GetStartedDeps, getStartedPages } from "./get-started-routes.ts";
import { type InboxRouteDeps, inboxRoutes } from "./inbox-routes.ts";
import { type KeyPageDeps, keyPages } from "./key-routes.ts";
import { type OverviewPageDeps, overviewPages } from "./overview-routes.ts";
import { type ResendRouteDeps, resendRoutes } from "./resend-routes.ts";
import {
  type AccountsPageDeps,
  accountsPages,
  type PausePageDeps,
  pausePages,
  type SettingsPageDeps,
  settingsPages,
} from "./settings-routes.ts";
import { type CheckPageDeps, signatureCheckPages } from "./signature-check-routes.ts";
import { acceptsGzip } from "../http/response.ts";
import { type DocsPageDeps, docsPages } from "./docs/routes.ts";
import { ASSETS } from "../ui/assets.ts";

export type PageDeps = AuthRouteDeps &
  FrameRouteDeps &
  InboxRouteDeps &
  ActionListRouteDeps &
  BulkPageDeps &
  ActionPageRouteDeps &
  ResendRouteDeps &
  PageEventRouteDeps &
  Omit<EventsDeps, "serialize"> &
  KeyPageDeps &
  PausePageDeps &
  HostPageDeps &
  CallbackHostPageDeps &
  ChannelPageDeps &
  AccountsPageDeps &
  AuditPageDeps &
  OverviewPageDeps &
  GetStartedDeps &
  SettingsPageDeps &
  CheckPageDeps &
  PasswordPageDeps &
  TeamPageDeps &
  Omit<JoinPageDeps, "startSession"> &
  Omit<OidcRouteDeps, "startSession"> &
  DocsPageDeps;

/** All pages except those of receipts and links, and the files that they load. */
export function webPages(deps: PageDeps) {
  const streamEvents = createStreamEvents({ ...deps, serialize: pageEventsOf, beatsMax: PAGE_STREAM_HEARTBEATS_MAX });
  const entering: JoinPageDeps & OidcRouteDeps = {
    ...deps,
    startSession: (context, entered, answer) => startSession(context, entered, deps, answer),
  };
  return [
    entryPages(deps),
    framePages(deps),
    inboxRoutes(deps),
    actionListRoutes(deps),
    bulkPages(deps),
    actionPageRoutes(deps),
    resendRoutes(deps),
    pageEventRoutes(deps, streamEvents),
    keyPages(deps),
    pausePages(deps),
    hostPages(deps),
    callbackHostPages(deps),
    channelPages(deps),
    accountsPages(deps),
    auditPages(deps),
    overviewPages(deps),
    getStartedPages(deps),
    settingsPages(deps),
    signatureCheckPages(deps),
    passwordPages(deps),
    teamPages(deps),
    joinPages(entering),
    oidcRoutes(entering),
    docsPages(deps),
    assetRoutes(),
  ] as const;
}

/**
 * The files that pages load. Their paths contain a hash, so they can be cached forever. Assets are compressed; pages are
 * not, except the documentation, because they contain secrets beside text that others chose (BREACH).
 */
function assetRoutes() {
  const routes = createRoutes();
  for (const { path, type, text, gzip } of ASSETS) {
    const headers = { ...HEADERS, "content-type": type };
    routes.get(path, ({ request }) => {
      if (!acceptsGzip(request)) return new Response(text, { headers });
      return new Response(gzip, { headers: { ...headers, "content-encoding": "gzip" } });
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
