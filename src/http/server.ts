import type { Server } from "bun";
import type { ActionService } from "../actions/desk.ts";
import type { Authenticate } from "../accounts/authenticate.ts";
import type { PeopleService } from "../accounts/people.ts";
import type { Caller } from "../domain/caller.ts";
import { DRAIN_MS_MAX } from "../domain/limits.ts";
import type { PauseOf } from "../domain/pause.ts";
import type { Feed } from "../events/feed.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import type { Log } from "../ports/log.ts";
import type { Metrics } from "../ports/metrics.ts";
import type { Targets } from "../ports/targets.ts";
import type { IsTrustedProxy } from "./client.ts";
import { createDeviceCookie, createSessionCookie } from "./cookie.ts";
import { createHandler } from "./door.ts";
import { listenOn } from "./listen.ts";
import { createOwnOrigin, type OwnAddress } from "./own-origin.ts";
import { createStreamEvents } from "./events.ts";
import { createFlash, type FlashDeps } from "./flash.ts";
import type { Guard, Route } from "./route.ts";
import { accountRoutes, type AccountRouteDeps } from "./routes/account.ts";
import { type AccountsRouteDeps, accountsRoutes } from "./routes/accounts.ts";
import { actionRoutes } from "./routes/actions.ts";
import { auditRoutes, type AuditRouteDeps } from "./routes/audit.ts";
import { pauseRoutes, type PauseRouteDeps } from "./routes/pauses.ts";
import { approvalLinkRoutes, type ApprovalLinkRouteDeps } from "./routes/approval-links.ts";
import { authRoutes } from "./routes/auth.ts";
import { callbackHostRoutes, type CallbackHostRouteDeps } from "./routes/callback-hosts.ts";
import { decisionRoutes } from "./routes/decisions.ts";
import { receiptRoutes, type ReceiptRouteDeps } from "./routes/receipts.ts";
import { eventRoutes } from "./routes/events.ts";
import { keyRoutes, type KeyRouteDeps } from "./routes/keys.ts";
import { type PageDeps, webPages } from "./routes/pages.ts";
import { createShow } from "./routes/show.ts";
import { signingSecretRoutes, type SigningSecretRouteDeps } from "./routes/signing-secret.ts";
import { systemRoutes, type SystemRouteDeps } from "./routes/system.ts";
import { createFormOf, createPersonOf, createWatchOf, createTokenFormOf } from "./session.ts";

export interface HttpDeps
  extends
    SystemRouteDeps,
    SigningSecretRouteDeps,
    KeyRouteDeps,
    CallbackHostRouteDeps,
    PauseRouteDeps,
    AccountsRouteDeps,
    AuditRouteDeps,
    AccountRouteDeps,
    ReceiptRouteDeps,
    Omit<ApprovalLinkRouteDeps, "ownOrigin">,
    Pick<PageDeps, "listNotifications" | "rulesFor" | "overviewService" | "guides">,
    Pick<FlashDeps, "secrets">,
    OwnAddress {
  readonly actionService: ActionService;
  readonly pauseOf: PauseOf;
  readonly peopleService: PeopleService;
  readonly feed: Feed;
  readonly authenticate: Authenticate;
  /** Whether an account is stopped until somebody allows it. */
  readonly isStopped: (accountId: string) => boolean;
  readonly targets: Targets;
  readonly clock: Clock;
  readonly ids: Pick<Ids, "request">;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "requested">;
  /** An action's receipt page as answers show it. */
  readonly receiptUrl: (actionId: string) => string;
  /** The same as a path, for our own pages. */
  readonly receiptPath: (actionId: string) => string;
  readonly isTrustedProxy: IsTrustedProxy;
  /** Judges the Host of a request for a page. */
  readonly pagesGuard: Guard;
  /** Aborted when the service stops: whoever waits is answered. */
  readonly draining: AbortSignal;
  /** How long a request may take to arrive; `IDLE_SECONDS` unless it is given. */
  readonly arrivalSeconds?: number;
  /** Ways in that other rooms bring along. */
  readonly routes?: readonly Route[];
}

export interface Http {
  /** Answers one request; what `listen` does with each, and a test without a socket. */
  handle(request: Request): Promise<Response>;
  /** The same of a caller who is known without a key: the agent at the standard input of this process. */
  handleAs(caller: Caller, request: Request): Promise<Response>;
  /** Port 0 takes any free one. */
  listen(port: number, host: string): { readonly port: number; readonly host: string };
  /** The same on a socket that somebody else listened on so far. */
  takeOver(listening: Server<unknown>): void;
  /** Takes no new connection, lets what is under way end, and cuts what is not done after the grace. */
  stop(graceMs?: number): Promise<void>;
}

/** The REST door. */
export function createHttp(deps: HttpDeps): Http {
  const show = createShow(deps.clock, deps.receiptUrl, deps.pauseOf);
  // An event tells of what was; a pause of now is none of it.
  const showEvent = createShow(deps.clock, deps.receiptUrl, () => null);
  const checkTarget = (url: string) => deps.targets.checkTarget(url);
  const people = { ...deps, ...sessionsOf(deps), checkTarget };
  const routes = [
    ...actionRoutes({ ...deps, show, checkTarget }),
    ...eventRoutes(createStreamEvents({ ...deps, show: showEvent })),
    ...decisionRoutes({ ...deps, show }),
    ...signingSecretRoutes(deps),
    ...callbackHostRoutes(deps),
    ...keyRoutes(deps),
    ...pauseRoutes(deps),
    ...accountsRoutes(deps),
    ...auditRoutes(deps),
    ...accountRoutes(deps),
    ...systemRoutes(deps),
    ...receiptRoutes(deps),
    ...approvalLinkRoutes(people),
    ...authRoutes(people),
    ...webPages(people),
    ...(deps.routes ?? []),
  ];
  const handler = createHandler(deps, routes);
  let server: Server<unknown> | null = null;

  return {
    handle: (request) => handler(request, null),
    handleAs: (caller, request) => handler(request, null, caller),
    listen(port, host) {
      server = listenOn({ port, host, arrivalSeconds: deps.arrivalSeconds }, (request, from) => handler(request, from));
      return { port: server.port ?? port, host };
    },
    takeOver(listening) {
      listening.reload({ fetch: (request, from) => handler(request, from) });
      server = listening;
    },
    async stop(graceMs = DRAIN_MS_MAX) {
      if (server === null) return;
      const isOver = Promise.withResolvers<void>();
      const cancelTimer = deps.clock.after(graceMs, isOver.resolve);
      await Promise.race([server.stop(), isOver.promise]);
      cancelTimer();
      await server.stop(true);
      server = null;
    },
  };
}

/** What every page for people asks: who visits, and whether our own page sent it. */
function sessionsOf(deps: HttpDeps) {
  const cookie = createSessionCookie(deps.baseUrl);
  const deviceCookie = createDeviceCookie(deps.baseUrl);
  const ownOrigin = createOwnOrigin(deps);
  return {
    cookie,
    deviceCookie,
    ownOrigin,
    personOf: createPersonOf({ resume: deps.peopleService.resume, cookie }),
    watchOf: createWatchOf({ watchSession: deps.peopleService.watchSession, cookie }),
    formOf: createFormOf({ ...deps, deviceCookie, ownOrigin }),
    tokenFormOf: createTokenFormOf({ ownOrigin }),
    flash: createFlash(deps),
  };
}
