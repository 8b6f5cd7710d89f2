import type { Server } from "bun";
import type { Authenticate } from "../accounts/authenticate.ts";
import type { Caller } from "../accounts/roles.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Ids } from "../runtime/ids.ts";
import type { Log } from "../observability/log.ts";
import type { Metrics } from "../observability/metrics.ts";
import { clientAddressOf, clientOf, type IsTrustedProxy } from "./own-origin.ts";
import { CLIENT_GONE, refuse } from "./errors.ts";
import { createRateLimit } from "./rate-limit.ts";
import { nameRequest, hasBody, targetOf, type RequestContext } from "./context.ts";
import { closeWithAnswer } from "./body.ts";
import { type Guard, type Route, createRouter } from "./router.ts";

interface HandlerDeps {
  readonly authenticate: Authenticate;
  readonly clock: Clock;
  readonly ids: Pick<Ids, "request">;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "requested">;
  readonly isTrustedProxy: IsTrustedProxy;
  /** Checks the Host of a request for a page. */
  readonly pagesGuard: Guard;
  readonly limits: { readonly rateLimitPerSecond: number };
}

/** Answers any request and never rejects. A request with a `known` caller needs no key and isn't rate limited. */
type Handler = (request: Request, server: Server<unknown> | null, known?: Caller) => Promise<Response>;

/**
 * The entry point of every request. The order of the checks is part of the API: request id, Host and Origin, key, rate
 * limit, route. Every response carries the request's id and is logged in one line.
 */
export function createHandler(deps: HandlerDeps, routes: readonly Route[]): Handler {
  const { authenticate, clock, log } = deps;
  const rate = createRateLimit(clock, deps.limits.rateLimitPerSecond);
  const route = createRouter(routes, (context, error) => refuse(context, error, log));
  const guards = guardsOf(routes);

  const authenticateRequest = async (context: RequestContext): Promise<void> => {
    const guard = guards.get(context.path);
    if (guard === undefined && !isUnderV1(context.path)) {
      if (!PROBE_PATH.test(context.path)) deps.pagesGuard(context.request.headers);
      return;
    }
    guard?.(context.request.headers);
    const known = await authenticate(context.request.headers.get("authorization"));
    const caller: Caller = { ...known, client: clientOf(context) };
    context.caller = caller;
    context.count = (requests) => rate.count(caller, requests);
    context.count(1);
  };

  const answer = async (context: RequestContext): Promise<Response> => {
    try {
      if (context.caller === null) await authenticateRequest(context);
      return await route(context);
    } catch (error) {
      return refuse(context, error, log);
    }
  };

  return async (request, server, known) => {
    const context = contextOf(request, server, known ?? null, deps);
    const answered = await answer(context);
    if (context.errorCode === "rate_limited" && context.caller !== null) {
      context.kind = "wait";
      await rate.slowDown(context.caller);
    }
    const response = context.isBodyUnread ? await closeWithAnswer(context, answered, clock) : answered;
    response.headers.set("x-request-id", context.name.id);
    logRequest(context, response.status, deps);
    return response;
  };
}

function contextOf(
  request: Request,
  server: Server<unknown> | null,
  caller: Caller | null,
  { isTrustedProxy, ids, clock }: HandlerDeps,
): RequestContext {
  const address = server?.requestIP(request)?.address ?? "";
  return {
    request,
    server,
    ...targetOf(request.url),
    client: clientAddressOf(address, request.headers.get("x-forwarded-for"), isTrustedProxy),
    name: nameRequest(request.headers.get("x-request-id"), ids),
    startedMs: clock.monotonicMs(),
    caller,
    count: () => {},
    route: null,
    actionId: null,
    errorCode: null,
    page: null,
    kind: "work",
    isBodyUnread: hasBody(request),
  };
}

/** Probes may use any Host: load balancers often address the machine by its IP address. */
const PROBE_PATH = /^\/(health|ready|metrics|openapi\.json)\/?$/;

/** Every path under /v1 needs a key, also one that doesn't exist. */
function isUnderV1(path: string): boolean {
  return path.startsWith("/v1/") || path === "/v1";
}

/** The guards by path, with and without a trailing slash. */
function guardsOf(routes: readonly Route[]): ReadonlyMap<string, Guard> {
  return new Map(
    routes.flatMap(({ path, guard }) =>
      guard === undefined ? [] : [[path, guard] as const, [`${path}/`, guard] as const],
    ),
  );
}

/** Logs one line and counts the request. Only the route's pattern is logged: a path may hold a token, a query anything. */
function logRequest(context: RequestContext, status: number, { clock, log, metrics }: HandlerDeps): void {
  const { request, name, client, caller, errorCode } = context;
  const durationMs = clock.monotonicMs() - context.startedMs;
  metrics.requested({ method: request.method, route: context.route, status, kind: context.kind }, durationMs);
  log.info("http.requested", {
    request_id: name.id,
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
