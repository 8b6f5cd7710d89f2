import type { Server } from "bun";
import { errorJson, errorHeaders, HTTP_STATUS } from "../api/errors.ts";
import type { Release } from "../config/config.ts";
import { DomainError } from "../core/domain-error.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { within } from "../core/clock.ts";
import type { Ids } from "../core/ids.ts";
import { REFUSED_BODY_LINGER_MS, REQUESTS_PER_TURN_MAX, START_HELD_MAX, START_HOLD_MS_MAX } from "../core/limits.ts";
import { isApiPath, nameRequest, noTarget, type RequestName, requestTarget } from "./request.ts";
import { acceptsHtml, json, jsonResponse, page, prefersJson } from "./response.ts";
import { IDLE_SECONDS } from "./sse.ts";

// Sockets, and what answers before the routes exist. The start imports this file first, so it loads neither Elysia nor pages.

export interface ListenOptions {
  /** Port 0 takes any free one. */
  readonly port: number;
  readonly host: string;
}

export type Answer = (request: Request, server: Server<unknown>) => Response | Promise<Response>;

/** Starts a server with our limits. Throws when the port is taken. */
export function listenOn({ port, host }: ListenOptions, answer: Answer): Server<unknown> {
  return Bun.serve({
    port,
    hostname: host,
    idleTimeout: IDLE_SECONDS,
    // Bun's own 413 has neither envelope nor request id; `request.ts` limits the size instead.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    development: false,
    // With `development: false`, Bun would share the port with another process, such as a second Outgate.
    reusePort: false,
    fetch: inTurns(answer),
  });
}

/** The requests that have begun in this turn of the event loop. */
let begunInTurn = 0;

/** Those that begin in later turns. Each has a connection of its own. */
const waiting: (() => void)[] = [];

function startTurn(): void {
  const next = waiting.splice(0, REQUESTS_PER_TURN_MAX);
  begunInTurn = next.length;
  if (begunInTurn > 0) setImmediate(startTurn);
  for (const begin of next) begin();
}

/** Bun gives GET and HEAD no body. */
function mayHaveBody({ method, headers }: Request): boolean {
  if (method === "GET" || method === "HEAD") return false;
  return headers.has("transfer-encoding") || !["0", null].includes(headers.get("content-length"));
}

/**
 * Lets `REQUESTS_PER_TURN_MAX` requests begin in each turn of the event loop. Bun hands over what it has read of all connections in
 * one turn, and half a megabyte of one may be thousands of requests (pipelining). It closes the connection of a request that
 * comes before the answer to the one that waits. One with a body never waits, since Bun would read half
 * a megabyte of it meanwhile; its answer is never synchronous, so that the next one ends the connection.
 */
function inTurns(answer: Answer): Answer {
  return (request, server) => {
    if (begunInTurn === 0) setImmediate(startTurn);
    if (begunInTurn >= REQUESTS_PER_TURN_MAX && !mayHaveBody(request)) {
      return new Promise<void>((begin) => waiting.push(begin)).then(() => answer(request, server));
    }
    begunInTurn += 1;
    return answer(request, server);
  };
}

/** Starts a server without routes, keys and accounts. */
export function listenApart(port: number, host: string, ids: Ids, answer: AnswerApart): Server<unknown> {
  return listenOn({ port, host }, answerApart(ids, answer));
}

function answerApart(ids: Ids, answer: AnswerApart): Answer {
  return async (request) => {
    const name = nameRequest(request.headers.get("x-request-id"), ids);
    const target = requestTarget(request);
    const response = await (target === null ? refused(noTarget(), name) : answer(request, target.path, name));
    response.headers.set("x-request-id", name.id);
    // The body stays unread, and its bytes must not be taken for a second request.
    response.headers.set("connection", "close");
    return response;
  };
}

export function refused(failure: DomainError, name: RequestName): Response {
  const { code, message } = failure;
  const text = errorJson(code, message, name.envelopeId());
  return json(text, HTTP_STATUS[code], errorHeaders(failure));
}

/** Must not reject. */
type AnswerApart = (request: Request, path: string, name: RequestName) => Response | Promise<Response>;

/** What listens while the service starts. */
export type StartServer = ReturnType<typeof openStartServer>;

/**
 * Answers /health and /ready while the service starts, and holds other requests until it serves, each for `START_HOLD_MS_MAX`,
 * `START_HELD_MAX` at a time; the rest is answered 503. A load balancer that gives each request to the node with the fewest would
 * give most to one that refuses them at once. Throws when the port is taken; port 0 takes any free one.
 */
export function openStartServer(
  port: number,
  host: string,
  { clock, ids, version, commit }: Pick<AppContext, "clock" | "ids"> & Release,
) {
  const status = HTTP_STATUS.unavailable;
  const { code, message } = STARTING;
  const started = Promise.withResolvers<Answer | null>();
  let heldCount = 0;
  /** Null: it doesn't serve yet. */
  const held = async (): Promise<Answer | null> => {
    if (heldCount >= START_HELD_MAX) return null;
    heldCount += 1;
    const answer = await within(clock, START_HOLD_MS_MAX, started.promise);
    heldCount -= 1;
    return answer;
  };
  const refuse = answerApart(ids, async (request, path, name) => {
    if (path === "/health") return jsonResponse({ status: "ok", version, commit });
    if (path === "/ready")
      return jsonResponse({ status: "unavailable", version, commit }, status, errorHeaders(STARTING));
    if (isApiPath(path) || !acceptsHtml(request) || prefersJson(request)) return refused(STARTING, name);
    // People get a page without external assets, since no asset can be served here.
    const { problemPage } = await import("../ui/problem.tsx");
    const canRetry = request.method === "GET";
    const html = problemPage({ status, code, message, requestId: name.id, isStandalone: true, canRetry });
    return page("notice", html, { status, headers: { ...errorHeaders(STARTING), vary: "Accept" } });
  });
  /** Refuses what is held, and holds nothing any more: the start has ended. */
  const letGo = (): void => started.resolve(null);
  const listening = listenOn({ port, host }, async (request, server) => {
    const path = requestTarget(request)?.path ?? null;
    const isHeld = path !== null && path !== "/health" && path !== "/ready";
    return ((isHeld ? await held() : null) ?? refuse)(request, server);
  });
  return {
    listening,
    /** Answers by the routes from now on, also what is held. */
    serve: (answer: Answer): void => {
      listening.reload({ fetch: inTurns(answer) });
      started.resolve(answer);
    },
    letGo,
    /** Refuses what is held, and closes the port when that is sent. */
    close: async (): Promise<void> => {
      letGo();
      await within(clock, REFUSED_BODY_LINGER_MS, listening.stop());
      await listening.stop(true);
    },
  };
}

const STARTING = new DomainError("unavailable", "The service is starting, or waits for its database. Try again.");

const LISTEN_ERRORS: Readonly<Record<string, string>> = {
  EADDRINUSE: "another program uses it. Stop that program, or set PORT to another port.",
  EACCES: "this user may not. Set PORT to a port above 1023.",
  EADDRNOTAVAIL: "HOST is not an address of this machine.",
};

/** Throws an error for the operator if it can't listen on the port. `setting`: the setting with the port. */
export function explainPortErrors<Listening>(
  { setting, port, host }: { readonly setting: "PORT" | "METRICS_PORT"; readonly port: number; readonly host: string },
  listen: () => Listening,
): Listening {
  try {
    return listen();
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
    const why = LISTEN_ERRORS[code] ?? "it is taken, not allowed, or HOST is not an address of this machine.";
    throw new Error(`Port ${port} of ${host} can't be listened on: ${why.replace("PORT", setting)}`, { cause });
  }
}
