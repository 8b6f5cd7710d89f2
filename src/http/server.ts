import type { Server } from "bun";
import type { Caller } from "../core/roles.ts";
import type { Release } from "../config/config.ts";
import type { Ids } from "../core/ids.ts";
import { jsonOf, isApiPath, acceptsHtml, prefersJson, json, page } from "./response.ts";
import { nameRequest, noTarget, type RequestName, targetOf } from "./request.ts";
import type { AnyElysia } from "elysia";
import { answerMetrics, type MetricsDeps } from "./system-routes.ts";
import { IDLE_SECONDS } from "./sse.ts";
import { headersOf } from "./errors.ts";
import { DomainError } from "../core/domain-error.ts";
import { errorJson, HTTP_STATUS } from "../api/errors.ts";
import { createHandler, type HandlerDeps } from "./handler.ts";
import { DRAIN_MS_MAX } from "../core/limits.ts";
import { problemPage } from "../ui/problem.tsx";

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

interface ListenOptions {
  /** Port 0 takes any free one. */
  readonly port: number;
  readonly host: string;
  /** How long a request may take to arrive; default `IDLE_SECONDS`. */
  readonly arrivalSeconds?: number | undefined;
}

type Answer = (request: Request, server: Server<unknown>) => Response | Promise<Response>;

/**
 * Where BASE_URL says `localhost`, a browser may mean 127.0.0.1 or ::1, and whoever listens on the other one would get the
 * cookies of that name: listens on both. Null: there is no other address. Throws when its port is taken.
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

/** Starts a server with our limits. Throws when the port is taken. */
function listenOn({ port, host, arrivalSeconds = IDLE_SECONDS }: ListenOptions, answer: Answer): Server<unknown> {
  return Bun.serve({
    port,
    hostname: host,
    idleTimeout: arrivalSeconds,
    // Bun's own 413 has neither envelope nor request id; `request.ts` limits the size instead.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    development: false,
    // With `development: false` Bun would share the port with another process, such as a second Outgate.
    reusePort: false,
    fetch: answer,
  });
}

interface HttpServerDeps extends HandlerDeps {
  readonly baseUrl: string;
  /** How long a request may take to arrive; default `IDLE_SECONDS`. */
  readonly arrivalSeconds?: number | undefined;
}

/** The HTTP server of these routes. */
export function createHttpServer(deps: HttpServerDeps, modules: readonly AnyElysia[]): Http {
  const { clock, baseUrl, arrivalSeconds } = deps;
  const handler = createHandler(deps, modules);
  let server: Server<unknown> | null = null;
  let other: Server<unknown> | null = null;
  const answer = (request: Request, from: Server<unknown>) => handler(request, from);
  const listenOnOther = (place: ListenOptions) => {
    other = listenOnOtherLoopback({ ...place, arrivalSeconds }, baseUrl, answer);
  };

  return {
    routes: modules.flatMap((module) => module.routes),
    handle: (request) => handler(request, null),
    handleAs: (caller, request) => handler(request, null, caller),
    listen(port, host) {
      server = listenOn({ port, host, arrivalSeconds }, answer);
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
      const cancelTimer = clock.after(graceMs, isOver.resolve);
      await Promise.race([server.stop(), isOver.promise]);
      cancelTimer();
      await Promise.all([server.stop(true), other?.stop(true)]);
      [server, other] = [null, null];
    },
  };
}

interface OwnPortDeps {
  readonly ids: Pick<Ids, "request">;
}

/** Listens without routes, keys and accounts. */
function listenApart(port: number, host: string, { ids }: OwnPortDeps, answer: AnswerApart): Server<unknown> {
  return listenOn({ port, host }, async (request) => {
    const name = nameRequest(request.headers.get("x-request-id"), ids);
    const target = targetOf(request);
    const response = await (target === null ? refused(noTarget(), name) : answer(request, target.path, name));
    response.headers.set("x-request-id", name.id);
    // The body stays unread: bytes after it must not be taken for a second request.
    response.headers.set("connection", "close");
    return response;
  });
}

function refused(failure: DomainError, name: RequestName): Response {
  const { code, message } = failure;
  const text = errorJson({ code, message, requestId: name.envelopeId(), issues: [] });
  return json(text, HTTP_STATUS[code], headersOf(failure));
}

/** Must not reject. */
type AnswerApart = (request: Request, path: string, name: RequestName) => Response | Promise<Response>;

export interface MetricsPortDeps extends MetricsDeps, OwnPortDeps {}

/** Serves /metrics and nothing else. Throws when the port is taken. */
export function listenForMetrics(port: number, host: string, deps: MetricsPortDeps): Server<unknown> {
  return listenApart(port, host, deps, async ({ method, headers }, path, name) => {
    try {
      if (path === "/metrics" && (method === "GET" || method === "HEAD")) return await answerMetrics(headers, deps);
      throw new DomainError("not_found", "This port serves only GET /metrics.");
    } catch (error) {
      return refused(error instanceof DomainError ? error : METRICS_FAILED, name);
    }
  });
}

const METRICS_FAILED = new DomainError("internal_error", "The metrics can't be read at the moment.");

/**
 * Answers while the service starts: 503 to everything except /health. `Http.serveOn` continues on the same socket. Throws when
 * the port is taken; port 0 takes any free one.
 */
export function openStartServer(port: number, host: string, deps: OwnPortDeps & Release): Server<unknown> {
  const { version, commit } = deps;
  return listenApart(port, host, deps, (request, path, name) => {
    if (path === "/health") return jsonOf({ status: "ok", version, commit });
    if (path === "/ready") return jsonOf({ status: "unavailable", version, commit }, STATUS, RETRY_AFTER);
    return unavailableResponse(request, path, name);
  });
}

const STATUS = HTTP_STATUS.unavailable;

const RETRY_AFTER = { "retry-after": "1" };

const MESSAGE = "The service is starting, or waits for its database. Try again.";

/** People get a page without external assets, since no asset can be served here. */
function unavailableResponse(request: Request, path: string, name: RequestName): Response {
  if (isApiPath(path) || !acceptsHtml(request) || prefersJson(request)) {
    const text = errorJson({ code: "unavailable", message: MESSAGE, requestId: name.envelopeId(), issues: [] });
    return json(text, STATUS, RETRY_AFTER);
  }
  const html = problemPage({
    status: STATUS,
    code: "unavailable",
    message: MESSAGE,
    requestId: name.id,
    isStandalone: true,
    canRetry: request.method === "GET",
  });
  return page("notice", html, { status: STATUS, headers: { ...RETRY_AFTER, vary: "Accept" } });
}
