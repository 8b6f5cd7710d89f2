import type { KeyService } from "../accounts/keys.ts";
import type { CallbackHostService } from "../accounts/callback-hosts.ts";
import type { CallbackTestService } from "../accounts/callback-test.ts";
import type { FirstStepService } from "../accounts/first-steps.ts";
import type { OwnMailService } from "../accounts/own-mails.ts";
import type { PeopleService } from "../accounts/people.ts";
import type { ReadServerSize } from "../accounts/server-size.ts";
import type { SignUpGate } from "../accounts/sign-up-gate.ts";
import type { SigningService } from "../accounts/signing-secrets.ts";
import type { TeamService } from "../accounts/team.ts";
import type { VerifyService } from "../accounts/verify-signature.ts";
import type { CreateRules } from "../actions/create-schema.ts";
import type { ExportActions } from "../actions/export.ts";
import type { ActionService, ListNotifications } from "../actions/service.ts";
import type { FollowLink } from "../approvals/links.ts";
import type { AuditService } from "../audit/service.ts";
import type { BulkService } from "../bulk/service.ts";
import type { ChannelService } from "../channels/service.ts";
import type { EffectiveSettings } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { Ids } from "../core/ids.ts";
import { PAGE_STREAM_HEARTBEATS_MAX } from "../core/limits.ts";
import type { PauseOf } from "../core/pause.ts";
import type { Caller } from "../core/roles.ts";
import type { Authenticate } from "../core/session.ts";
import type { Secrets } from "../crypto/secrets.ts";
import type { Feed } from "../events/feed.ts";
import type { OverviewService } from "../events/overview.ts";
import { createStreamEvents, pageEventRoutes, pageEventsOf } from "../events/stream.ts";
import type { HostService } from "../hosts/service.ts";
import { createRoutes } from "../http/operation.ts";
import type { ApiOperation } from "../http/openapi.ts";
import { createOwnOrigin } from "../http/own-origin.ts";
import { acceptsGzip } from "../http/response.ts";
import {
  createDeviceCookie,
  createFlash,
  createFormOf,
  createPersonOf,
  createSessionCookie,
  createStartSession,
  createTokenFormOf,
  createWatchOf,
} from "../http/session.ts";
import type { Log } from "../observability/log.ts";
import type { PauseService } from "../pauses/service.ts";
import { ASSETS } from "../ui/assets.ts";
import { actionPageRoutes } from "./action-routes.ts";
import { actionListRoutes } from "./actions.tsx";
import { approvalLinkRoutes } from "./approval-link.tsx";
import { auditPages } from "./audit.tsx";
import { authRoutes, entryPages } from "./auth-routes.ts";
import { passwordPages } from "./password.tsx";
import { bulkPages } from "./bulk.tsx";
import { callbackHostPages } from "./callback-hosts.tsx";
import { channelPages } from "./channels.tsx";
import type { GuideGroup } from "./docs/guides.ts";
import { docsPages } from "./docs/routes.ts";
import { framePages, withNavigation, withStop } from "./frame.tsx";
import { getStartedPages } from "./first-steps.tsx";
import { hostPages } from "./hosts.tsx";
import { inboxRoutes } from "./inbox-routes.ts";
import { keyListPages } from "./keys.tsx";
import { newKeyPages } from "./new-key.tsx";
import { type Oidc, oidcRoutes } from "./oidc-routes.ts";
import { overviewPages } from "./overview.tsx";
import { type ReadReceipt, receiptRoutes } from "./receipt-routes.ts";
import { resendRoutes } from "./resend-routes.ts";
import { notificationPages } from "./notifications.tsx";
import { pausePages } from "./pauses.tsx";
import { serverPages } from "./settings.tsx";
import { signingPages } from "./signing.tsx";
import { joinPages } from "./join.tsx";
import { peoplePages } from "./team.tsx";
import { accountPages } from "./account.tsx";

export interface PageNeeds extends CreateRules {
  readonly actionService: ActionService;
  readonly auditService: AuditService;
  readonly authenticate: Authenticate;
  readonly bulkService: BulkService;
  readonly callbackHosts: CallbackHostService;
  readonly callbackTests: CallbackTestService;
  readonly channelService: ChannelService;
  readonly exportActions: ExportActions;
  readonly feed: Pick<Feed, "open">;
  readonly firstSteps: FirstStepService;
  readonly followLink: FollowLink;
  readonly hostService: HostService;
  readonly keyService: KeyService;
  readonly listNotifications: ListNotifications;
  /** Null: not configured. */
  readonly oidc: Oidc | null;
  readonly overviewService: Pick<OverviewService, "read">;
  readonly ownMails: OwnMailService;
  readonly pauseService: Pick<PauseService, "list" | "pause" | "resume">;
  readonly peopleService: PeopleService;
  readonly readReceipt: ReadReceipt;
  readonly readSize: ReadServerSize;
  readonly signingService: SigningService;
  readonly signUpGate: Pick<SignUpGate, "list" | "allow" | "closedBy" | "isOperator" | "requireOperator">;
  readonly teamService: TeamService;
  readonly verifyService: VerifyService;
  readonly pauseOf: PauseOf;
  /** Whether an account is stopped: its people can read, but not change anything. */
  readonly isStopped: (accountId: string) => boolean;
  /** The server's settings that this caller can see. */
  readonly rulesFor: (caller: Caller) => Promise<EffectiveSettings>;
  readonly receiptPath: (actionId: string) => string;
  readonly secrets: Pick<Secrets, "newToken" | "open" | "seal">;
  readonly clock: Clock;
  readonly ids: Pick<Ids, "request">;
  readonly log: Log;
  readonly baseUrl: string;
  readonly version: string;
  readonly approvalLinks: "confirm" | "one_click";
  /** The documentation; the first guide is the page /docs. */
  readonly guides: readonly GuideGroup[];
  /** For the API reference. */
  readonly operations: () => readonly ApiOperation[];
  /** Aborted when the service stops. */
  readonly draining: AbortSignal;
}

/** Everything that people open in a browser: pages and their forms, the links of mails, receipts, and the files that pages load. */
export function createPages(needs: PageNeeds) {
  const sessions = createSessions(needs);
  const deps = { ...needs, ...sessions };
  const streamEvents = createStreamEvents({ ...needs, serialize: pageEventsOf, beatsMax: PAGE_STREAM_HEARTBEATS_MAX });
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
    pageEventRoutes(deps, streamEvents),
    keyListPages(deps),
    newKeyPages(deps),
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
    docsPages(deps),
    assetRoutes(),
  ] as const;
  return { routes, sessionOf: sessions.sessionOf };
}

/** Sessions and CSRF checks, which every page for people needs. */
function createSessions(needs: PageNeeds) {
  const { peopleService, baseUrl, isStopped } = needs;
  const cookie = createSessionCookie(baseUrl);
  const deviceCookie = createDeviceCookie(baseUrl);
  const ownOrigin = createOwnOrigin(needs);
  const sessionOf = withStop(createPersonOf({ resume: peopleService.resume, cookie }), needs);
  const forms = { peopleService, baseUrl, deviceCookie, ownOrigin };
  return {
    cookie,
    deviceCookie,
    ownOrigin,
    startSession: createStartSession({ cookie, deviceCookie }),
    /** Without the numbers of the navigation. */
    sessionOf,
    personOf: withNavigation(sessionOf, needs),
    watchOf: createWatchOf({ watchSession: peopleService.watchSession, cookie }),
    formOf: createFormOf({ ...forms, isStopped }),
    /** Also where the account is stopped: for what concerns the person alone. */
    ownFormOf: createFormOf({ ...forms, isStopped: () => false }),
    /** For forms that ask for the password themselves. */
    tokenFormOf: createTokenFormOf({ ownOrigin }),
    flash: createFlash(needs),
  };
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
