import Type, { type Static } from "typebox";
import * as t from "../api/schema-helpers.ts";
import { json } from "./response.ts";
import { createRoutes, operation } from "./operation.ts";
import type { Release } from "../config/config.ts";
import { DomainError } from "../core/domain-error.ts";
import { READY_FRESH_MS, READY_MS_MAX } from "../core/limits.ts";
import { type Clock, within } from "../core/clock.ts";
import { StoreBusy } from "../core/store.ts";

interface SystemRouteDeps extends MetricsDeps, Release {
  readonly probe: () => Promise<void>;
  readonly clock: Clock;
  /** Whether /metrics is served here; else METRICS_PORT serves it. */
  readonly hasMetrics: boolean;
  readonly draining: AbortSignal;
}

/** The response of /health and /ready. */
export const HealthJson = Type.Object(
  {
    status: t.choice(["ok", "unavailable"], "Status of the service.", "ok"),
    version: t.plainText("Version of the service.", "0.2.0"),
    commit: t.nullable(
      t.plainText(
        "The commit that the service was built of; null: not known.",
        "4f1c9d2e7a6b35088e1d0c9b7a5f3e2d1c0b9a87",
      ),
    ),
  },
  { title: "Health", description: "Status and version of the service." },
);

export type HealthJson = Static<typeof HealthJson>;

/** Routes for load balancers, supervisors and Prometheus. They need no API key and reveal nothing about accounts. */
export function systemRoutes(deps: SystemRouteDeps, apiDescription: () => string) {
  const { version, commit, draining } = deps;
  const ok = JSON.stringify({ status: "ok", version, commit } satisfies HealthJson);
  const unavailable = JSON.stringify({ status: "unavailable", version, commit } satisfies HealthJson);
  // Logs nothing: the writer logs why it fails.
  const isWritable = createReadiness(deps.probe, deps.clock);
  const isReady = async (): Promise<boolean> => !draining.aborted && (await isWritable());
  const routes = createRoutes()
    .get("/health", () => json(ok), GET_HEALTH)
    .get(
      "/ready",
      async () => ((await isReady()) ? json(ok) : json(unavailable, 503, { "retry-after": "1" })),
      GET_READY,
    )
    .get("/openapi.json", () => json(apiDescription()), GET_OPEN_API);
  if (!deps.hasMetrics) return routes;
  return routes.get("/metrics", ({ request }) => answerMetrics(request.headers, deps), GET_METRICS);
}

const GET_HEALTH = operation({
  operationId: "getHealth",
  permission: null,
  tag: "System",
  summary: "Check whether the process runs",
  description: "For supervisors: answers while the process runs. Doesn't check the database.",
  answers: { 200: { description: "The process runs.", schema: HealthJson } },
  errors: [],
});

const GET_READY = operation({
  operationId: "getReady",
  permission: null,
  tag: "System",
  summary: "Check whether the service can store actions",
  description: "For load balancers: 503 while the database can't be written, and while the service stops.",
  answers: {
    200: { description: "The service can store actions.", schema: HealthJson },
    503: {
      description: "The service can't store actions at the moment, or is stopping.",
      schema: HealthJson,
      headers: ["Retry-After"],
    },
  },
  errors: [],
});

const GET_OPEN_API = operation({
  operationId: "getOpenApi",
  permission: null,
  tag: "System",
  summary: "Get this API description as OpenAPI 3.1",
  description: "For generators of clients and documentation.",
  answers: {
    200: {
      description: "The description.",
      schema: Type.Unsafe<object>({
        type: "object",
        required: ["openapi", "info", "paths"],
        description: "An OpenAPI 3.1 document.",
      }),
    },
  },
  errors: ["unavailable"],
});

const GET_METRICS = operation({
  operationId: "getMetrics",
  permission: null,
  tag: "System",
  summary: "Get metrics in the Prometheus text format",
  description: "Returns the metrics of this node, as Prometheus reads them.",
  notes: [
    "Needs METRICS_TOKEN as a bearer token where that is set.",
    "Where METRICS_PORT is set, only that port serves them, and this path returns 404.",
  ],
  takesMetricsToken: true,
  answers: {
    200: {
      description: "The metrics.",
      schema: t.plainText("Prometheus text.", "outgate_actions_created_total 7\n"),
      mediaType: "text/plain; version=0.0.4; charset=utf-8",
    },
  },
  errors: ["unauthorized", "not_found", "internal_error", "unavailable"],
});

export interface MetricsDeps {
  readonly renderMetrics: () => string | Promise<string>;
  /** Compares with METRICS_TOKEN in constant time; null: it is not set. */
  readonly isMetricsToken: ((text: string) => boolean) | null;
}

const BEARER = /^Bearer ([!-~]+)$/i;

/** The metrics in the Prometheus text format. Throws `unauthorized` if METRICS_TOKEN is set and was not sent. */
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

/**
 * Creates a check whether the store can be written, so that `probe` resolves; false if it doesn't within `READY_MS_MAX`. A probe is a
 * durable write, and /ready needs no key, so there is one probe at a time, at most every `READY_FRESH_MS`.
 */
export function createReadiness(probe: () => Promise<void>, clock: Clock): () => Promise<boolean> {
  let last: { readonly isReady: boolean; readonly atMs: number } | null = null;
  let running: Promise<boolean> | null = null;

  const check = async (): Promise<boolean> => {
    // A full write queue still means that the store can be written.
    const isReady = await probe().then(
      () => true,
      (error: unknown) => error instanceof StoreBusy,
    );
    last = { isReady, atMs: clock.monotonicMs() };
    running = null;
    return isReady;
  };

  return async () => {
    if (last !== null && clock.monotonicMs() - last.atMs < READY_FRESH_MS) return last.isReady;
    return (await within(clock, READY_MS_MAX, (running ??= check()))) ?? false;
  };
}
