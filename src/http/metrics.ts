import type { Server } from "bun";
import { errorJson, HTTP_STATUS } from "../contract/error.ts";
import { DomainError } from "../domain/errors.ts";
import type { Ids } from "../ports/ids.ts";
import { json } from "./answer.ts";
import { headersOf } from "./errors.ts";
import { listenOn } from "./listen.ts";
import { nameRequest } from "./request-id.ts";
import { targetOf } from "./visit.ts";

export interface MetricsDeps {
  readonly renderMetrics: () => string | Promise<string>;
  /** Whether a text is METRICS_TOKEN, in constant time; null: it is not set, and nobody is asked for it. */
  readonly isMetricsToken: ((text: string) => boolean) | null;
}

const BEARER = /^Bearer ([!-~]+)$/i;

/** The numbers in the Prometheus text format. Throws `unauthorized` where a token is asked for and another one, or none, was sent. */
export async function answerMetrics(
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
export async function answerAtMetricsPort(request: Request, deps: MetricsPortDeps): Promise<Response> {
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
