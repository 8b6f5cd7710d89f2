import { McpServer, type Tool as ListedTool } from "@modelcontextprotocol/server";
import { printedInput } from "../src/contract/tool-schemas.ts";
import { descriptionOf, TOOLS } from "../src/contract/tools.ts";
import { promptOf, PROMPTS } from "./prompts.ts";
import { createResources, TEMPLATES } from "./resources.ts";
import { type CallToolDeps, createCallTool } from "./call-tool.ts";
import type { ExchangeOf } from "./exchange.ts";
import { instructionsOf, type Places } from "./words.ts";

export interface AgentServerDeps extends CallToolDeps {
  readonly version: string;
}

/** Without output schemas: a model pays for every character of this list, in every conversation. */
function listedTools({ agentApproval }: Places): ListedTool[] {
  return Object.entries(TOOLS).map(([name, tool]) => ({
    name,
    title: tool.title,
    description: descriptionOf(tool, agentApproval),
    annotations: tool.annotations,
    inputSchema: printedInput(tool.input),
  }));
}

/** The lists are the same for everybody until the next version starts. */
const CACHED = { ttlMs: 300_000, cacheScope: "private" } as const;

/**
 * Makes a server for one exchange or one session; whose it is it learns from the exchange of each request. The handlers are
 * our own, because the SDK's would turn a forged state and a bug alike into the text of a tool.
 */
export function createAgentServer(deps: AgentServerDeps, exchangeOf: ExchangeOf): () => McpServer {
  const resources = createResources(deps);
  const callTool = createCallTool(deps, exchangeOf);
  const tools = listedTools(deps);
  const options = {
    instructions: instructionsOf(deps),
    cacheHints: {
      "tools/list": CACHED,
      "prompts/list": CACHED,
      "resources/templates/list": CACHED,
      "server/discover": CACHED,
    },
    inputRequired: { legacyShim: false },
  };
  return () => {
    const mcp = new McpServer({ name: "outgate", title: "Outgate", version: deps.version }, options);
    const { server } = mcp;
    // Without `false` every client of 2026 would hold a stream open for changes that never come.
    server.registerCapabilities({
      tools: { listChanged: false },
      resources: { listChanged: false, subscribe: false },
      prompts: { listChanged: false },
    });
    server.setRequestHandler("tools/list", () => ({ tools }));
    server.setRequestHandler("tools/call", callTool);
    server.setRequestHandler("resources/list", (_request, ctx) => resources.list(exchangeOf(ctx).caller()));
    server.setRequestHandler("resources/templates/list", () => ({ resourceTemplates: [...TEMPLATES] }));
    server.setRequestHandler("resources/read", ({ params }, ctx) =>
      resources.read(exchangeOf(ctx).caller(), params.uri),
    );
    server.setRequestHandler("prompts/list", () => ({ prompts: [...PROMPTS] }));
    server.setRequestHandler("prompts/get", ({ params }) => promptOf(params.name, params.arguments ?? {}, deps));
    return mcp;
  };
}
