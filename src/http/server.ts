import type { Server } from "bun";
import type { ActionService } from "../actions/service.ts";
import type { Authenticate } from "../accounts/authenticate.ts";
import type { PeopleService } from "../accounts/people.ts";
import type { Caller } from "../accounts/roles.ts";
import { DRAIN_MS_MAX } from "../config/limits.ts";
import type { PauseOf } from "../pauses/pause.ts";
import type { Feed } from "../events/feed.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Ids } from "../runtime/ids.ts";
import type { Log } from "../observability/log.ts";
import type { Metrics } from "../observability/metrics.ts";
import type { Targets } from "../outbound/target.ts";
import { type IsTrustedProxy, createOwnOrigin, type OwnAddress } from "./own-origin.ts";
import {
  createDeviceCookie,
  createSessionCookie,
  createFlash,
  type FlashDeps,
  createFormOf,
  createPersonOf,
  createWatchOf,
  createTokenFormOf,
} from "./session.ts";
import { createHandler } from "./handler.ts";
import { listenOn } from "./listen.ts";
import { createStreamEvents } from "../events/stream.ts";
import type { Guard, Route } from "./router.ts";
import {
  accountRoutes,
  type AccountRouteDeps,
  type AccountsRouteDeps,
  accountsRoutes,
  callbackHostRoutes,
  type CallbackHostRouteDeps,
  keyRoutes,
  type KeyRouteDeps,
  signingSecretRoutes,
  type SigningSecretRouteDeps,
} from "../accounts/routes.ts";
import { actionRoutes, decisionRoutes, eventRoutes } from "../actions/routes.ts";
import { auditRoutes, type AuditRouteDeps } from "../audit/routes.ts";
import { pauseRoutes, type PauseRouteDeps } from "../pauses/routes.ts";
import { approvalLinkRoutes, type ApprovalLinkRouteDeps } from "../pages/inbox-routes.ts";
import { authRoutes } from "../accounts/auth-routes.ts";
import { receiptRoutes, type ReceiptRouteDeps } from "../receipts/receipt.ts";
import { type PageDeps, webPages } from "../pages/routes.ts";
import { createShow } from "../actions/caller-view.ts";
import { systemRoutes, type SystemRouteDeps } from "./system-routes.ts";
import { errorJson, HTTP_STATUS } from "../api/errors.ts";
import { problemPage } from "../pages/receipt.tsx";
import { isForPrograms, namesHtml, prefersJson } from "./query.ts";
import { json } from "./errors.ts";
import { page } from "./page.ts";
import { nameRequest, type RequestName, targetOf } from "./context.ts";

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

interface ClosedDeps {
  readonly ids: Pick<Ids, "request">;
  readonly version: string;
}

/**
 * Answers while the store can't be opened, as the real door does while it can't be written: 503 to everything but to the
 * question whether the process lives. Whoever opens the real door goes on with the same socket.
 */
export function openUnavailableServer(port: number, host: string, deps: ClosedDeps): Server<unknown> {
  return listenOn({ port, host }, (request) => answerClosed(request, deps));
}

/** The same answer for everybody: nobody can be told who asks, nor what there is. */
function answerClosed(request: Request, { ids, version }: ClosedDeps): Response {
  const name = nameRequest(request.headers.get("x-request-id"), ids);
  const { path } = targetOf(request.url);
  const answer = answerToProbe(path, version) ?? refusal(request, path, name);
  answer.headers.set("x-request-id", name.id);
  // What follows on a connection whose body nobody reads is not executed.
  answer.headers.set("connection", "close");
  return answer;
}

function answerToProbe(path: string, version: string): Response | null {
  if (path === "/health") return json(JSON.stringify({ status: "ok", version }));
  if (path === "/ready") return json(JSON.stringify({ status: "unavailable", version }), STATUS, LATER);
  return null;
}

const STATUS = HTTP_STATUS.unavailable;

const LATER = { "retry-after": "1" };

const MESSAGE = "The service starts and can't reach its store yet; try again.";

/** A person gets a page that loads nothing, since nothing else is answered here. */
function refusal(request: Request, path: string, name: RequestName): Response {
  if (isForPrograms(path) || !namesHtml(request) || prefersJson(request)) {
    const text = errorJson({ code: "unavailable", message: MESSAGE, requestId: name.envelopeId(), issues: [] });
    return json(text, STATUS, LATER);
  }
  const html = problemPage({ status: STATUS, message: MESSAGE, requestId: name.id, isAlone: true });
  return page("notice", html, { status: STATUS, headers: { ...LATER, vary: "Accept" } });
}
