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

interface DoorDeps {
  readonly authenticate: Authenticate;
  readonly clock: Clock;
  readonly ids: Pick<Ids, "request">;
  readonly log: Log;
  readonly metrics: Pick<Metrics, "requested">;
  readonly isTrustedProxy: IsTrustedProxy;
  /** Judges where a request for a page comes from. */
  readonly pagesGuard: Guard;
  readonly limits: { readonly rateLimitPerSecond: number };
}

/** Answers every request, whatever it is: never rejects. Whose caller is `known` is asked for no key and counted nowhere. */
type Handler = (request: Request, server: Server<unknown> | null, known?: Caller) => Promise<Response>;

/**
 * Every request comes through here, and the order of the lines is the order of judgement (hostile 1): name it, ask where
 * it comes from and who calls, count it, route it. What leaves carries the request's id and is one line of the log.
 */
export function createHandler(deps: DoorDeps, routes: readonly Route[]): Handler {
  const { authenticate, clock, log } = deps;
  const rate = createRateLimit(clock, deps.limits.rateLimitPerSecond);
  const route = createRouter(routes, (context, error) => refuse(context, error, log));
  const guards = guardsOf(routes);

  const authenticateRequest = async (context: RequestContext): Promise<void> => {
    const guard = guards.get(context.path);
    if (guard === undefined && !isUnderV1(context.path)) {
      if (!FOR_MACHINES.test(context.path)) deps.pagesGuard(context.request.headers);
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
    writeDown(context, response.status, deps);
    return response;
  };
}

function contextOf(
  request: Request,
  server: Server<unknown> | null,
  caller: Caller | null,
  { isTrustedProxy, ids, clock }: DoorDeps,
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

/** Probes ask by whatever address they know. */
const FOR_MACHINES = /^\/(health|ready|metrics|openapi\.json)\/?$/;

/** Every /v1 path asks for a key, also one that does not exist. */
function isUnderV1(path: string): boolean {
  return path.startsWith("/v1/") || path === "/v1";
}

/** The guards by the paths that they stand at; one trailing slash makes no difference. */
function guardsOf(routes: readonly Route[]): ReadonlyMap<string, Guard> {
  return new Map(
    routes.flatMap(({ path, guard }) =>
      guard === undefined ? [] : [[path, guard] as const, [`${path}/`, guard] as const],
    ),
  );
}

/** One line for each request. Of the URL only the pattern: a path may hold a token, a query anything. */
function writeDown(context: RequestContext, status: number, { clock, log, metrics }: DoorDeps): void {
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
