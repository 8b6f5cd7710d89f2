import { openApiJson } from "../../contract/openapi.ts";
import { API } from "../../contract/operations.ts";
import { json } from "../answer.ts";
import { answerMetrics, type MetricsDeps } from "../metrics.ts";
import { createReadiness, type ReadinessDeps } from "../readiness.ts";
import { type Route, routeOf } from "../route.ts";

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
