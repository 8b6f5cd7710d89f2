import { createAgentHandler } from "../mcp/http.ts";
import { createAgentServer } from "../mcp/server.ts";
import { createShow } from "../mcp/show.ts";
import type { Config } from "./config.ts";
import { isLoopbackAddress, isLoopbackUrl } from "./config/listen.ts";
import type { Engine } from "./engine.ts";
import { createOwnHostOnly } from "./http/own-host.ts";
import type { Guard } from "./http/route.ts";
import type { McpRouteDeps } from "./http/routes/mcp.ts";
import type { MetricsBook } from "./metrics/metrics.ts";
import type { TargetPolicy } from "./outbound/policy.ts";
import { createTargets } from "./outbound/target.ts";
import type { Clock } from "./ports/clock.ts";
import type { Ids } from "./ports/ids.ts";
import type { Log } from "./ports/log.ts";
import type { EncryptedStore } from "./vault.ts";
import { VERSION } from "./version.ts";

export interface AgentParts {
  readonly config: Config;
  readonly policy: TargetPolicy;
  readonly encryptedStore: EncryptedStore;
  readonly engine: Engine;
  readonly book: Pick<MetricsBook, "metrics">;
  /** Aborted when the service stops: whoever waits is answered. */
  readonly draining: AbortSignal;
}

export interface AgentDeps {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
}

/** What /mcp opens on: the desk of REST, under the same rules, and who may knock there at all. */
export function createAgents(
  { config, policy, encryptedStore, engine, book, draining }: AgentParts,
  deps: AgentDeps,
): McpRouteDeps {
  const targets = createTargets(policy);
  const agentDeps = {
    ...deps,
    actionService: engine.actionService,
    bus: engine.bus,
    secrets: encryptedStore.secrets,
    checkTarget: (url: string) => targets.checkTarget(url),
    show: createShow(deps.clock, engine.receiptUrl, engine.pauseOf),
    pauseOf: engine.pauseOf,
    agentApproval: config.agentApproval,
    baseUrl: config.baseUrl,
    version: VERSION,
    draining,
    sessionsPerAccount: config.mcpSessionsPerAccount,
    metrics: book.metrics,
  };
  return {
    guard: guardOf(config),
    answerAgent: createAgentHandler((exchangeOf) => createAgentServer(agentDeps, exchangeOf), agentDeps),
  };
}

/** Where we listen for others and nobody has said under which name, any name may be ours (hostile M13). */
function guardOf({ baseUrl, isBaseUrlSet, host }: Config): Guard {
  return createOwnHostOnly({
    ownHostname: isBaseUrlSet ? new URL(baseUrl).hostname : null,
    takesAnyHost: !isBaseUrlSet && !isLoopbackAddress(host),
    isLoopback: isLoopbackUrl,
  });
}
