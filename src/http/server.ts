import type { Server } from "bun";
import type { AnyElysia } from "elysia";
import type { Caller } from "../core/roles.ts";
import { DomainError } from "../core/domain-error.ts";
import { DRAIN_MS_MAX } from "../core/limits.ts";
import { createHandler, type HandlerDeps } from "./handler.ts";
import { type Answer, listenApart, listenOn, type ListenOptions, type OwnPortDeps, refused } from "./listen.ts";
import { answerMetrics, type MetricsDeps } from "./system-routes.ts";

export type Http = ReturnType<typeof createHttpServer>;

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

interface HttpServerDeps extends HandlerDeps {
  readonly baseUrl: string;
  /** How long a request may take to arrive; default `IDLE_SECONDS`. */
  readonly arrivalSeconds?: number | undefined;
}

/** The HTTP server of these routes. */
export function createHttpServer(deps: HttpServerDeps, modules: readonly AnyElysia[]) {
  const { clock, baseUrl, arrivalSeconds } = deps;
  const handler = createHandler(deps, modules);
  let server: Server<unknown> | null = null;
  let other: Server<unknown> | null = null;
  const answer = (request: Request, from: Server<unknown>) => handler(request, from);
  const listenOnOther = (place: ListenOptions) => {
    other = listenOnOtherLoopback({ ...place, arrivalSeconds }, baseUrl, answer);
  };

  return {
    /** Every route, with its description where it is an operation of the API. */
    routes: modules.flatMap((module) => module.routes),
    /** Answers one request without a socket. */
    handle: (request: Request): Promise<Response> => handler(request, null),
    /** Answers a request of a caller who needs no key: the agent on the standard input of this process. */
    handleAs: (caller: Caller, request: Request): Promise<Response> => handler(request, null, caller),
    /** Starts to listen. Port 0 takes any free one. */
    listen(port: number, host: string) {
      server = listenOn({ port, host, arrivalSeconds }, answer);
      const place = { port: server.port ?? port, host };
      listenOnOther(place);
      return place;
    },
    /** Answers on a socket that is open already, in place of its handler. */
    serveOn(listening: Server<unknown>, host: string): void {
      listening.reload({ fetch: answer });
      server = listening;
      listenOnOther({ port: listening.port ?? 0, host });
    },
    /** Accepts no new connection, waits up to `graceMs` for open requests, then closes what is left. */
    async stop(graceMs: number = DRAIN_MS_MAX): Promise<void> {
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

interface MetricsPortDeps extends MetricsDeps, OwnPortDeps {}

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
