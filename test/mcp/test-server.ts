import { createAgentHandler } from "../../mcp/http.ts";
import { createAgentServer } from "../../mcp/server.ts";
import { readConfig } from "../../src/config/config.ts";
import type { Caller } from "../../src/core/roles.ts";
import { createMcpGuard } from "../../src/http/own-origin.ts";
import { mcpRoutes } from "../../src/http/mcp-routes.ts";
import { systemIds } from "../../src/core/ids.ts";
import { openRealServer, type RealServerOptions } from "../http/real-server.ts";

export interface TestServerOptions extends RealServerOptions {
  readonly agentApproval?: "elicit" | "off";
  readonly sessionsPerAccount?: number;
  /** Replaces the caller before the tools see it. */
  readonly asCaller?: (caller: Caller) => Caller;
}

export type TestServer = Awaited<ReturnType<typeof openServer>>;

/** The base URL in texts for models. */
export const BASE_URL = "https://outgate.example.com";

/** The real HTTP server, services and store with /mcp, and a clock that the test moves. */
export async function openServer(options: TestServerOptions = {}) {
  const stop = new AbortController();
  const called: string[] = [];
  const lines: { event: string; fields: object }[] = [];
  const write = (event: string, fields: object = {}) => void lines.push({ event, fields });
  const app = await openRealServer({
    ...options,
    mcpGuard: createMcpGuard(readConfig({ BASE_URL })),
    routesOf: (engine) => {
      const deps = {
        ...engine.services,
        bus: engine.bus,
        secrets: engine.secrets,
        clock: engine.clock,
        ids: systemIds,
        log: { debug: write, info: write, warn: write, error: write },
        checkTarget: (url: string) => {
          const { hostname = "", host = "" } = URL.parse(url) ?? {};
          return host === "" ? { refused: "Is no URL." } : { hostname, host };
        },
        config: {
          agentApproval: options.agentApproval ?? "elicit",
          baseUrl: BASE_URL,
          mail: null,
          mcpSessionsPerAccount: options.sessionsPerAccount ?? 20,
        },
        store: engine.store,
        draining: stop.signal,
        metrics: { toolCalled: (tool: string, outcome: string) => void called.push(`${tool} ${outcome}`) },
      } as const;
      const answer = createAgentHandler(createAgentServer(deps), deps);
      const asCaller = options.asCaller ?? ((caller: Caller) => caller);
      return [mcpRoutes((call) => answer({ ...call, caller: asCaller(call.caller) }))];
    },
  });
  return {
    ...app,
    /** The calls of tools as the metrics count them: tool and outcome. */
    called,
    /** Lines of the log. */
    logged: lines,
    /** Stops the service as far as agents are concerned. */
    stop: () => stop.abort(),
    mcpUrl: `${app.url}/mcp`,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await app[Symbol.asyncDispose]();
    },
  };
}
