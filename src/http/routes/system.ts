import { openApiJson } from "../../contract/openapi.ts";
import { API } from "../../contract/operations.ts";
import { json } from "../answer.ts";
import { type Route, routeOf } from "../route.ts";

export interface SystemRouteDeps {
  /** Where people reach the service, for the API description. */
  readonly baseUrl: string;
  readonly version: string;
  /** Rejects while the store can't be written. */
  readonly probe: () => Promise<void>;
  readonly renderMetrics: () => string | Promise<string>;
  readonly draining: AbortSignal;
}

/** For load balancers, supervisors and Prometheus; nobody asks them for a key, and they are told nothing of accounts. */
export function systemRoutes({ baseUrl, version, probe, renderMetrics, draining }: SystemRouteDeps): readonly Route[] {
  const ok = JSON.stringify({ status: "ok", version });
  const unavailable = JSON.stringify({ status: "unavailable", version });
  const description = openApiJson(baseUrl);
  const isReady = async (): Promise<boolean> => {
    if (draining.aborted) return false;
    try {
      await probe();
      return true;
    } catch {
      // Whoever writes finds out why and logs it; here it is only the answer.
      return false;
    }
  };
  return [
    routeOf(API.getOpenApi, () => json(description)),
    routeOf(API.getHealth, () => json(ok)),
    routeOf(API.getReady, async () => ((await isReady()) ? json(ok) : json(unavailable, 503, { "retry-after": "1" }))),
    routeOf(API.getMetrics, async () => {
      const headers = { "content-type": "text/plain; version=0.0.4; charset=utf-8" };
      return new Response(await renderMetrics(), { headers });
    }),
  ];
}
