import {
  McpServer,
  type Tool as ListedTool,
  createMcpHandler,
  isInitializeRequest,
  isLegacyRequest,
} from "@modelcontextprotocol/server";
import { printedInput, descriptionOf, TOOLS } from "./schemas.ts";
import { promptOf, PROMPTS, createResources, TEMPLATES } from "./resources.ts";
import { type CallToolDeps, createCallTool } from "./tools.ts";
import type { McpRequest } from "../src/http/mcp-routes.ts";
import { type ExchangeOf, capabilitiesIn, asAgent, type Exchange } from "./call.ts";
import { instructionsOf, type Places } from "./results.ts";
import { isJsonObject } from "../src/api/schema-helpers.ts";
import type { ParsedJson } from "../src/json/json.ts";
import { KEEP_ALIVE_MS } from "../src/config/limits.ts";
import type { Clock } from "../src/runtime/clock.ts";
import type { Ids } from "../src/runtime/ids.ts";
import { type Session, Sessions } from "./sessions.ts";
import { Verbatim } from "./verbatim.ts";

interface AgentServerDeps extends CallToolDeps {
  readonly version: string;
}

/** Without output schemas: every character of this list costs tokens in every conversation. */
function listedTools({ agentApproval }: Places): ListedTool[] {
  return Object.entries(TOOLS).map(([name, tool]) => ({
    name,
    title: tool.title,
    description: descriptionOf(tool, agentApproval),
    annotations: tool.annotations,
    inputSchema: printedInput(tool.input),
  }));
}

/** The lists change only with the version. */
const CACHED = { ttlMs: 300_000, cacheScope: "private" } as const;

/**
 * Returns a factory of servers, one for each exchange or session. The caller comes from the exchange of each request. The
 * handlers are registered below the SDK's tool API, which would turn both forged state and bugs into tool results.
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
    // Without `false` clients of 2026 would keep a stream open for changes that never come.
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

interface AgentHandlerDeps {
  readonly clock: Clock;
  readonly ids: Pick<Ids, "bytes">;
  readonly draining: AbortSignal;
  /** `MCP_SESSIONS_PER_ACCOUNT` */
  readonly sessionsPerAccount: number;
}

/** Answers one request; a longer call as a stream. Throws `rate_limited` where the account has too many sessions. */
type AgentHandler = (call: McpRequest) => Promise<Response>;

/**
 * MCP over Streamable HTTP: revision 2026-07-28 without state, and sessions for clients of 2025, which can be asked
 * questions only within one. A 2025 client without a session is answered, but never asked. See mcp/README.md.
 */
export function createAgentHandler(
  serverOf: (exchangeOf: ExchangeOf) => () => McpServer,
  deps: AgentHandlerDeps,
): AgentHandler {
  const { clock, ids, draining, sessionsPerAccount } = deps;
  const exchanges = new WeakMap<Request, Exchange>();
  const exchangeOf: ExchangeOf = ({ http }) => {
    const exchange = http?.req === undefined ? undefined : exchanges.get(http.req);
    if (exchange === undefined) throw new Error("A message came by no request.");
    return exchange;
  };
  const newId = () => Buffer.from(ids.bytes(16)).toString("hex");
  // Clients never see a placeholder, so one secret is enough for all of them.
  const secret = newId();
  let placeholders = 0;
  const newToken = () => `${secret}${(placeholders += 1).toString(16)}`;
  const newServer = serverOf(exchangeOf);
  const stateless = createMcpHandler(newServer, { legacy: "stateless", keepAliveMs: KEEP_ALIVE_MS });
  const sessions = new Sessions({ newServer, newId, clock, draining, sessionsPerAccount });

  const sessionOf = async ({ request, caller, body }: McpRequest): Promise<Session | "none" | "unknown"> => {
    const message = body?.value;
    const id = request.headers.get("mcp-session-id");
    const isBeginning = isInitialize(message);
    if ((id === null && !isBeginning) || !(await isLegacyRequest(request, message))) return "none";
    if (isBeginning) return sessions.begin(caller, capabilitiesIn(message));
    return sessions.find(id ?? "", caller) ?? "unknown";
  };

  return async (received) => {
    const call = { ...received, caller: asAgent(received.caller) };
    const { request, caller, body, ended, onWait } = call;
    const verbatim = new Verbatim(newToken);
    const found = await sessionOf(call);
    if (found === "unknown") return unknownSession();
    const session = found === "none" ? null : found;
    exchanges.set(request, {
      // In a session the newest request decides the caller, also for an older one that still waits.
      caller: session === null ? () => caller : () => session.caller,
      capabilities: session?.capabilities ?? null,
      body,
      ended,
      onWait,
      verbatim,
    });
    const answer = session === null ? stateless.fetch(request, parsed(body)) : sessions.answer(session, call);
    return verbatim.fill(await answer);
  };
}

/** The official server's code, by which clients know that they must initialize again. */
const SESSION_NOT_FOUND = -32_001;

/** The same response whether the session is unknown, another key's, closed, or from before a restart. */
function unknownSession(): Response {
  const message = "Session not found. Begin a new one with initialize.";
  return Response.json(
    { jsonrpc: "2.0", error: { code: SESSION_NOT_FOUND, message }, id: null },
    { status: 404, headers: { "content-type": "application/json" } },
  );
}

/** The parsed body in the form that the SDK takes. */
function parsed(body: ParsedJson | null): { readonly parsedBody?: unknown } {
  return body === null ? {} : { parsedBody: body.value };
}

/** Checks the name first, which is cheap, since this runs for every request. */
function isInitialize(message: unknown): boolean {
  return isJsonObject(message) && message["method"] === "initialize" && isInitializeRequest(message);
}
