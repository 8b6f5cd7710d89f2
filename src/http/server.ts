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
import type { CreateRules } from "../actions/create-schema.ts";
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
import type { AnyElysia } from "elysia";
import { createHandler, type Guard } from "./handler.ts";
import { listenOn, listenOnOtherLoopback, type ListenOptions } from "./listen.ts";
import { accountRoutes, type AccountRouteDeps } from "../accounts/routes.ts";
import { actionRoutes } from "../actions/routes.ts";
import { openApiJson, operationsOf } from "../api/openapi.ts";
import { auditRoutes, type AuditRouteDeps } from "../audit/routes.ts";
import { pauseRoutes, type PauseRouteDeps } from "../pauses/routes.ts";
import { approvalLinkRoutes, type ApprovalLinkRouteDeps } from "../pages/inbox-routes.ts";
import { authRoutes } from "../accounts/auth-routes.ts";
import { receiptRoutes, type ReceiptRouteDeps } from "../receipts/receipt.ts";
import { type PageDeps, webPages } from "../pages/routes.ts";
import { createActionSerializer } from "../actions/serialize.ts";
import { systemRoutes, type SystemRouteDeps } from "./system-routes.ts";
import { errorJson, HTTP_STATUS } from "../api/errors.ts";
import { problemPage } from "../pages/layout.tsx";
import { isApiPath, acceptsHtml, prefersJson } from "./query.ts";
import { json } from "./errors.ts";
import { page } from "./page.ts";
import { nameRequest, type RequestName, targetOf } from "./context.ts";

export interface HttpDeps
  extends
    Omit<SystemRouteDeps, "apiDescription">,
    PauseRouteDeps,
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

export interface Http {
  /** Every route, with its description where it is an operation of the API. */
  readonly routes: AnyElysia["routes"];
  /** Answers one request without a socket. */
  handle(request: Request): Promise<Response>;
  /** Answers a request of a caller who needs no key: the agent on the standard input of this process. */
  handleAs(caller: Caller, request: Request): Promise<Response>;
  /** Starts to listen. Port 0 takes any free one. */
  listen(port: number, host: string): { readonly port: number; readonly host: string };
  /** Answers on a socket that is open already, in place of its handler. */
  serveOn(listening: Server<unknown>, host: string): void;
  /** Accepts no new connection, waits up to `graceMs` for open requests, then closes what is left. */
  stop(graceMs?: number): Promise<void>;
}

/** The HTTP server: every route of the API, of /mcp and of the pages. */
export function createHttp(deps: HttpDeps): Http {
  const show = createActionSerializer(deps.clock, deps.receiptUrl, deps.pauseOf);
  // An event describes the past: it doesn't show a pause that is in force now.
  const showEvent = createActionSerializer(deps.clock, deps.receiptUrl, () => null);
  const people = { ...deps, ...sessionsOf(deps) };
  const modules: readonly AnyElysia[] = [
    ...actionRoutes({ ...deps, show, showEvent }),
    ...accountRoutes(deps),
    pauseRoutes(deps),
    auditRoutes(deps),
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
  const handler = createHandler(deps, modules);
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
      server = null;
      other = null;
    },
  };
}

/** Sessions and CSRF checks, which every page for people needs. */
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

interface UnavailableDeps {
  readonly ids: Pick<Ids, "request">;
  readonly version: string;
}

/**
 * Answers while the store can't be opened yet: 503 to everything except /health. `Http.takeOver` continues on the same
 * socket.
 */
export function openUnavailableServer(port: number, host: string, deps: UnavailableDeps): Server<unknown> {
  return listenOn({ port, host }, (request) => answerUnavailable(request, deps));
}

/** Independent of the caller and the route, since neither keys nor data can be read. */
function answerUnavailable(request: Request, { ids, version }: UnavailableDeps): Response {
  const name = nameRequest(request.headers.get("x-request-id"), ids);
  const { path } = targetOf(request.url);
  const answer = probeResponse(path, version) ?? unavailableResponse(request, path, name);
  answer.headers.set("x-request-id", name.id);
  // The body stays unread: bytes after it must not be taken for a second request.
  answer.headers.set("connection", "close");
  return answer;
}

function probeResponse(path: string, version: string): Response | null {
  if (path === "/health") return json(JSON.stringify({ status: "ok", version }));
  if (path === "/ready") return json(JSON.stringify({ status: "unavailable", version }), STATUS, RETRY_AFTER);
  return null;
}

const STATUS = HTTP_STATUS.unavailable;

const RETRY_AFTER = { "retry-after": "1" };

const MESSAGE = "The service is starting and can't reach its database yet. Try again.";

/** People get a page without external assets, since no asset can be served here. */
function unavailableResponse(request: Request, path: string, name: RequestName): Response {
  if (isApiPath(path) || !acceptsHtml(request) || prefersJson(request)) {
    const text = errorJson({ code: "unavailable", message: MESSAGE, requestId: name.envelopeId(), issues: [] });
    return json(text, STATUS, RETRY_AFTER);
  }
  const html = problemPage({ status: STATUS, message: MESSAGE, requestId: name.id, isStandalone: true });
  return page("notice", html, { status: STATUS, headers: { ...RETRY_AFTER, vary: "Accept" } });
}
