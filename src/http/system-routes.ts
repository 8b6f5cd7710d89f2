import { openApiJson } from "../api/openapi.ts";
import { API } from "../api/operations.ts";
import { json, headersOf } from "./errors.ts";
import { type Route, routeOf } from "./router.ts";
import type { Server } from "bun";
import { errorJson, HTTP_STATUS } from "../api/errors.ts";
import { DomainError } from "../api/domain-error.ts";
import type { Ids } from "../runtime/ids.ts";
import { listenOn } from "./listen.ts";
import { nameRequest, targetOf } from "./context.ts";
import { READY_FRESH_MS, READY_MS_MAX } from "../config/limits.ts";
import type { Clock } from "../runtime/clock.ts";
import { StoreBusy } from "../../db/store.ts";

export interface SystemRouteDeps extends MetricsDeps, ReadinessDeps {
  /** Where people reach the service, for the API description. */
  readonly baseUrl: string;
  readonly version: string;
  /** Whether /metrics is served here; else it is at a port of its own. */
  readonly hasMetrics: boolean;
  readonly draining: AbortSignal;
}

/** For load balancers, supervisors and Prometheus; nobody asks them for a key, and they are told nothing of accounts. */
export function systemRoutes(deps: SystemRouteDeps): readonly Route[] {
  const { baseUrl, version, draining } = deps;
  const ok = JSON.stringify({ status: "ok", version });
  const unavailable = JSON.stringify({ status: "unavailable", version });
  const description = openApiJson(baseUrl);
  // Whoever writes finds out why and logs it; here it is only the answer.
  const isWritable = createReadiness(deps);
  const isReady = async (): Promise<boolean> => !draining.aborted && (await isWritable());
  return [
    routeOf(API.getOpenApi, () => json(description)),
    routeOf(API.getHealth, () => json(ok)),
    routeOf(API.getReady, async () => ((await isReady()) ? json(ok) : json(unavailable, 503, { "retry-after": "1" }))),
    ...(deps.hasMetrics ? [routeOf(API.getMetrics, ({ request }) => answerMetrics(request.headers, deps))] : []),
  ];
}

interface MetricsDeps {
  readonly renderMetrics: () => string | Promise<string>;
  /** Whether a text is METRICS_TOKEN, in constant time; null: it is not set, and nobody is asked for it. */
  readonly isMetricsToken: ((text: string) => boolean) | null;
}

const BEARER = /^Bearer ([!-~]+)$/i;

/** The numbers in the Prometheus text format. Throws `unauthorized` where a token is asked for and another one, or none, was sent. */
async function answerMetrics(
  headers: Headers,
  { renderMetrics, isMetricsToken }: MetricsDeps,
): Promise<Response> {
  if (isMetricsToken !== null && !isMetricsToken(BEARER.exec(headers.get("authorization") ?? "")?.[1] ?? "")) {
    throw new DomainError("unauthorized", "Send the METRICS_TOKEN of this service as Authorization: Bearer <token>.");
  }
  const type = { "content-type": "text/plain; version=0.0.4; charset=utf-8" };
  return new Response(await renderMetrics(), { headers: type });
}

export interface MetricsPortDeps extends MetricsDeps {
  readonly ids: Pick<Ids, "request">;
}

/** Serves /metrics and nothing else. Throws when the port is taken. */
export function listenForMetrics(port: number, host: string, deps: MetricsPortDeps): Server<unknown> {
  return listenOn({ port, host }, (request) => answerAtMetricsPort(request, deps));
}

/** Never rejects. */
async function answerAtMetricsPort(request: Request, deps: MetricsPortDeps): Promise<Response> {
  const name = nameRequest(request.headers.get("x-request-id"), deps.ids);
  const answer = await answerTo(request, deps).catch((error: unknown) => {
    const failed = error instanceof DomainError ? error : FAILED;
    const { code, message } = failed;
    const text = errorJson({ code, message, requestId: name.envelopeId(), issues: [] });
    return json(text, HTTP_STATUS[code], headersOf(failed));
  });
  answer.headers.set("x-request-id", name.id);
  // What follows on a connection whose body nobody reads is not executed.
  answer.headers.set("connection", "close");
  return answer;
}

const FAILED = new DomainError("internal_error", "The numbers can't be read just now.");

async function answerTo(request: Request, deps: MetricsPortDeps): Promise<Response> {
  const { path } = targetOf(request.url);
  const isRead = request.method === "GET" || request.method === "HEAD";
  if (path === "/metrics" && isRead) return answerMetrics(request.headers, deps);
  throw new DomainError("not_found", "Here is GET /metrics and nothing else.");
}

interface ReadinessDeps {
  /** Rejects while the store can't be written. */
  readonly probe: () => Promise<void>;
  readonly clock: Clock;
}

/**
 * Tells whether the store can be written, within `READY_MS_MAX`: false where it has not answered by then. Nobody needs a key
 * to ask, and a probe is a durable write: so however many ask, there is one at a time, and one a second.
 */
export function createReadiness({ probe, clock }: ReadinessDeps): () => Promise<boolean> {
  let known: { readonly isReady: boolean; readonly atMs: number } | null = null;
  let asking: Promise<boolean> | null = null;

  const ask = async (): Promise<boolean> => {
    // A store that has too much to write can be written.
    const isReady = await probe().then(
      () => true,
      (error: unknown) => error instanceof StoreBusy,
    );
    known = { isReady, atMs: clock.monotonicMs() };
    asking = null;
    return isReady;
  };

  return async () => {
    if (known !== null && clock.monotonicMs() - known.atMs < READY_FRESH_MS) return known.isReady;
    const late = Promise.withResolvers<false>();
    const cancel = clock.after(READY_MS_MAX, () => late.resolve(false));
    const isReady = await Promise.race([(asking ??= ask()), late.promise]);
    cancel();
    return isReady;
  };
}
