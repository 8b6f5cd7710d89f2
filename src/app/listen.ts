import type { Server } from "bun";
import { type Config, RELEASE } from "../config/config.ts";
import type { Ids } from "../core/ids.ts";
import { type Http, listenForMetrics, type MetricsPortDeps, openStartServer } from "../http/server.ts";

/** From the first moment on, so that probes see a process that lives, however long the database takes. */
export function listenAtStart({ port, host }: Config, ids: Ids): Server<unknown> {
  try {
    return openStartServer(port, host, { ids, ...RELEASE });
  } catch (cause) {
    throw portTaken(port, host, cause);
  }
}

function portTaken(port: number, host: string, cause: unknown): Error {
  return new Error(
    `Port ${port} of ${host} can't be listened on: it is taken, not allowed, or HOST is no address of this machine.`,
    { cause },
  );
}

interface Drained {
  drain(limitMs: number): Promise<void>;
}

/** Takes over the server that has answered 503 so far. */
export async function serveOn(listening: Server<unknown>, http: Http, engine: Drained, config: Config): Promise<void> {
  try {
    http.serveOn(listening, config.host);
  } catch (cause) {
    await engine.drain(0);
    throw portTaken(config.port, config.host, cause);
  }
}

/** Null: METRICS_PORT is not set. */
export async function openMetricsPort(
  { metricsPort, host }: Pick<Config, "metricsPort" | "host">,
  http: Http,
  engine: Drained,
  deps: MetricsPortDeps,
): Promise<Server<unknown> | null> {
  if (metricsPort === null) return null;
  try {
    return listenForMetrics(metricsPort, host, deps);
  } catch (cause) {
    await Promise.all([http.stop(0), engine.drain(0)]);
    throw new Error(`METRICS_PORT ${metricsPort} of ${host} can't be listened on: it is taken or not allowed.`, {
      cause,
    });
  }
}
