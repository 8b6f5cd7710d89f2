import type { Server } from "bun";
import { type AnyElysia, Elysia } from "elysia";
import type { Config } from "../config/config.ts";
import type { Caller } from "../core/roles.ts";
import { DomainError } from "../core/domain-error.ts";
import { DRAIN_MS_MAX } from "../core/limits.ts";
import { type Answer, listenApart, listenOn, type ListenOptions, refused, type StartServer } from "./listen.ts";
import { answerMetrics, type MetricsDeps } from "./system-routes.ts";
import type { AppContext } from "../runtime/app-context.ts";
import type { Authenticate } from "../core/session.ts";
import { type Clock, within } from "../core/clock.ts";
import {
  clientAddress,
  type IsTrustedProxy,
  bindContext,
  contextFor,
  isMcpPath,
  nameRequest,
  noTarget,
  type RequestContext,
  requestTarget,
} from "./request.ts";
import { clientNetwork } from "../core/addresses.ts";
import type { Guard } from "./own-origin.ts";
import { MethodNotAllowed } from "../api/errors.ts";
import { CLIENT_GONE, refuse, type RefuseDeps } from "./errors.ts";
import { setImmediate as nextTurn } from "node:timers/promises";
import { chunkedBody, dropBody, hasBody } from "./body.ts";
import { createHoldRefusal, createRateLimit } from "./rate-limit.ts";

export type Http = ReturnType<typeof createHttpServer>;

interface HttpServerDeps
  extends
    Pick<AppContext, "clock" | "ids" | "log" | "metrics">,
    Pick<Config, "baseUrl" | "rateLimitPerSecond">,
    RefuseDeps {
  readonly authenticate: Authenticate;
  readonly isTrustedProxy: IsTrustedProxy;
  /** Checks the Host of a request for a page. */
  readonly pagesGuard: Guard;
  /** Checks Host and Origin of a request for /mcp, which also needs a key. */
  readonly mcpGuard: Guard;
  readonly countNodes: () => number;
}

/** Creates the HTTP server of these routes. */
export function createHttpServer(deps: HttpServerDeps, modules: readonly AnyElysia[]) {
  const { clock, baseUrl } = deps;
  const handler = createHandler(deps, modules);
  let server: Server<unknown> | null = null;
  let other: Server<unknown> | null = null;
  const answer = (request: Request, from: Server<unknown>) => handler(request, from);

  return {
    /** Every route, with its description if it is an operation of the API. */
    routes: modules.flatMap((module) => module.routes),
    /** Answers one request without a socket. */
    handle: (request: Request): Promise<Response> => handler(request, null),
    /** Answers a request of a caller who needs no key: the agent on the standard input of this process. */
    handleAs: (caller: Caller, request: Request): Promise<Response> => handler(request, null, caller),
    /** Answers on the socket of the start. */
    serveOn({ listening, serve }: StartServer, host: string): void {
      serve(answer);
      server = listening;
      other = listenOnOtherLoopback({ port: listening.port ?? 0, host }, baseUrl, answer);
    },
    /** Accepts no new connection, waits up to `graceMs` for open requests, then closes what is left. */
    async stop(graceMs: number = DRAIN_MS_MAX): Promise<void> {
      if (server === null) return;
      await within(clock, graceMs, server.stop());
      await Promise.all([server.stop(true), other?.stop(true)]);
      [server, other] = [null, null];
    },
  };
}

/**
 * If BASE_URL has `localhost`, listens on both 127.0.0.1 and ::1: a browser may mean either, and a server on the other one
 * would get the cookies of that name. Null: there is no other address. Throws if its port is taken.
 */
function listenOnOtherLoopback(place: ListenOptions, baseUrl: string, answer: Answer): Server<unknown> | null {
  const other = OTHER_LOOPBACK[place.host];
  if (other === undefined || new URL(baseUrl).hostname !== "localhost") return null;
  try {
    return listenOn({ ...place, host: other }, answer);
  } catch (error) {
    // A machine without IPv6 has no ::1 that anybody could take.
    if (error instanceof Error && "code" in error && error.code === "EADDRINUSE") throw error;
    return null;
  }
}

const OTHER_LOOPBACK: Readonly<Record<string, string>> = { "127.0.0.1": "::1", "::1": "127.0.0.1" };

/** Answers any request and never rejects. A request with a `caller` needs no key and isn't rate limited. */
type Handler = (request: Request, server: Server<unknown> | null, caller?: Caller) => Promise<Response>;

/**
 * The entry point of every request. The order of the checks is part of the API: request id, Host and Origin, key, rate
 * limit, route. Every response carries the request's id and is logged in one line.
 */
function createHandler(deps: HttpServerDeps, modules: readonly AnyElysia[]): Handler {
  const { clock } = deps;
  const rate = createRateLimit(clock, deps.rateLimitPerSecond);
  const holdRefusal = createHoldRefusal(clock);
  const authenticateRequest = createAuthenticateRequest(deps, rate);
  // `standardHostname: false`, or a short host name would shift the path (elysia#748).
  const app = new Elysia({ normalize: false, handler: { standardHostname: false } })
    // Before routing, so that every path under /v1 needs a key, even one that doesn't exist.
    .onRequest(({ request }) => authenticateRequest(contextFor(request)))
    .onError(({ error, request }) => refuse(contextFor(request), error, deps));
  for (const module of modules) app.use(module);
  // OPTIONS is answered with 204, and every method that a path doesn't have with 405.
  for (const [path, same] of Map.groupBy(app.routes, (route) => route.path)) {
    const methods = same.map(({ method }) => method);
    const allow = [...new Set(methods.includes("GET") ? [...methods, "HEAD"] : methods)].toSorted().join(", ");
    const answer = ({ request }: { readonly request: Request }) => {
      if (contextFor(request).request.method === "OPTIONS")
        return new Response(null, { status: 204, headers: { allow } });
      throw new MethodNotAllowed(allow);
    };
    app.all(path, answer, { parse: "none" });
  }

  return async (request, server, caller) => {
    const context = begin(request, server, caller ?? null, deps);
    const route = () => {
      if (context.path === "") throw noTarget();
      const routed = routable(context);
      bindContext(routed, context);
      return app.fetch(routed);
    };
    // Elysia fails on a thrown `undefined`.
    const answered = await Promise.try(route).catch((error: unknown) => refuse(context, error, deps));
    if (context.errorCode === "rate_limited" && context.caller !== null) {
      context.kind = "wait";
      await rate.slowDown(context.caller);
    }
    if (context.errorCode === "unavailable" && deps.countNodes() > 1) {
      // A load balancer that gives each request to the node with the fewest would give most to one that refuses them at once.
      context.kind = "wait";
      await holdRefusal();
    }
    const response = context.isBodyUnread ? await closeWithAnswer(context, answered, clock) : answered;
    response.headers.set("x-request-id", context.name.id);
    logRequest(context, response.status, deps);
    context.freeBody();
    return response;
  };
}

/** Sets the caller of a request and counts it against their rate limit. If no key is needed, checks the Host. */
function createAuthenticateRequest(
  { authenticate, pagesGuard, mcpGuard }: HttpServerDeps,
  rate: ReturnType<typeof createRateLimit>,
) {
  return async (context: RequestContext): Promise<void> => {
    if (context.caller !== null) return;
    const { path } = context;
    const { headers } = context.request;
    const isMcp = isMcpPath(path);
    if (isMcp) mcpGuard(headers);
    else if (!path.startsWith("/v1/") && path !== "/v1") {
      if (!PROBE_PATH.test(path)) pagesGuard(headers);
      return;
    }
    // Refuse several Host headers (RFC 9112, 3.2), which Bun joins.
    if (headers.get("host")?.includes(",") === true)
      throw new DomainError("invalid_request", "The request has more than one Host header. Send one.");
    const authenticated = await authenticate(headers.get("authorization"), isMcp);
    const caller: Caller = { ...authenticated, client: clientNetwork(context.client) };
    context.caller = caller;
    context.count = (requests) => rate.count(caller, requests);
    context.count(1);
  };
}

/** Probes may use any Host: load balancers often address the machine by its IP address. */
const PROBE_PATH = /^\/(health|ready|metrics|openapi\.json)\/?$/;

/**
 * The request that Elysia routes. HEAD is routed as GET, because Elysia would read a whole response to know its length; Bun
 * leaves out the body. If the Host is unusable or the target has a fragment, the URL is corrected: Elysia would find another
 * path in it than the one that was sent and authenticated.
 */
function routable({ request, path }: RequestContext): Request {
  const isHead = request.method === "HEAD";
  const start = request.url.indexOf("/", "http://".length);
  const end = start + path.length;
  const isPlain = request.url.startsWith(path, start) && (request.url.length === end || request.url[end] === "?");
  if (isPlain && !isHead) return request;
  return new Request(`http://localhost${path}`, { method: isHead ? "GET" : request.method });
}

function begin(
  request: Request,
  server: Server<unknown> | null,
  caller: Caller | null,
  { isTrustedProxy, ids, clock }: HttpServerDeps,
): RequestContext {
  const target = requestTarget(request);
  const address = server?.requestIP(request)?.address ?? "";
  return {
    request,
    server,
    path: target?.path ?? "",
    search: target?.search ?? "",
    client: clientAddress(address, request.headers.get("x-forwarded-for"), isTrustedProxy),
    name: nameRequest(request.headers.get("x-request-id"), ids),
    startedMs: clock.monotonicMs(),
    caller,
    count: () => {},
    route: null,
    actionId: null,
    errorCode: null,
    page: null,
    kind: "work",
    // Without a target, the connection closes, whatever else was sent on it.
    isBodyUnread: target === null || hasBody(request),
    freeBody: () => {},
    chunked: request.headers.has("transfer-encoding") ? chunkedBody(request) : null,
  };
}

/** Logs one line and counts the request. Logs only the route's pattern, since a path may contain a token and a query anything. */
function logRequest(context: RequestContext, status: number, { clock, log, metrics }: HttpServerDeps): void {
  const { request, name, client, caller, errorCode } = context;
  const durationMs = clock.monotonicMs() - context.startedMs;
  metrics.requested({ method: request.method, route: context.route, status, kind: context.kind }, durationMs);
  log.info("http.requested", {
    request_id: name.logId,
    error_id: errorCode === null ? undefined : name.envelopeId(),
    method: request.method,
    route: context.route,
    action_id: context.actionId ?? undefined,
    status,
    code: errorCode ?? (status === CLIENT_GONE ? "client_gone" : undefined),
    client_gone: request.signal.aborted || undefined,
    duration_ms: Math.round(durationMs * 10) / 10,
    account_id: caller?.accountId,
    key_id: caller?.keyId ?? undefined,
    person_id: caller?.personId,
    client: client === "" ? undefined : client,
  });
}

/**
 * Sends a response that was ready before the body was read, and closes the connection. It is sent at once, since a client may
 * wait for it before sending more. The connection closes after the rest of the body was read and dropped: closed earlier, the
 * client would see a reset instead of the response; kept open, the rest would be taken for another request.
 */
async function closeWithAnswer(context: RequestContext, response: Response, clock: Clock): Promise<Response> {
  const drained = dropBody(context, clock).then(() => true);
  const hasNoBody = context.request.method === "HEAD" || response.body === null;
  // A body that arrived together with its headers is drained within one turn of the event loop.
  const isDrained = await Promise.race([drained, hasNoBody ? drained : nextTurn().then(() => false)]);
  const headers = new Headers(response.headers);
  headers.set("connection", "close");
  const init = { status: response.status, headers };
  if (isDrained) return new Response(response.body, init);
  const bytes = await response.bytes();
  const body = new ReadableStream({
    async start(controller) {
      controller.enqueue(bytes);
      await drained;
      controller.close();
    },
  });
  return new Response(body, init);
}

/** Serves /metrics and nothing else. Throws when the port is taken. */
export function listenForMetrics(
  port: number,
  host: string,
  deps: MetricsDeps & Pick<AppContext, "ids">,
): Server<unknown> {
  return listenApart(port, host, deps.ids, async ({ method, headers }, path, name) => {
    try {
      if (path === "/metrics" && (method === "GET" || method === "HEAD")) return await answerMetrics(headers, deps);
      throw new DomainError("not_found", "This port serves only GET /metrics.");
    } catch (error) {
      return refused(error instanceof DomainError ? error : METRICS_FAILED, name);
    }
  });
}

const METRICS_FAILED = new DomainError("internal_error", "The metrics can't be read at the moment.");
