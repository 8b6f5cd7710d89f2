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
import { type ExchangeOf, type AgentCall, capabilitiesIn, asAgent, type Exchange } from "./call.ts";
import { instructionsOf, type Places } from "./results.ts";
import { isJsonObject } from "../src/api/schema-helpers.ts";
import type { ParsedJson } from "../src/json/scan.ts";
import { KEEP_ALIVE_MS } from "../src/config/limits.ts";
import type { Clock } from "../src/runtime/clock.ts";
import type { Ids } from "../src/runtime/ids.ts";
import { type Session, Sessions } from "./sessions.ts";
import { Verbatim } from "./verbatim.ts";

interface AgentServerDeps extends CallToolDeps {
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

interface AgentHandlerDeps {
  readonly clock: Clock;
  readonly ids: Pick<Ids, "bytes">;
  readonly draining: AbortSignal;
  /** `MCP_SESSIONS_PER_ACCOUNT` */
  readonly sessionsPerAccount: number;
}

/** Answers one request of a client, with a stream where the call takes its time. Throws `rate_limited` where no session may begin. */
type AgentHandler = (call: AgentCall) => Promise<Response>;

/**
 * MCP over Streamable HTTP (decisions 9): revision 2026-07-28 without any state, and sessions for the clients of 2025,
 * which can't be asked a question otherwise. One of those that begins none is answered, but never asked.
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
  // Nobody outside sees a placeholder, so one secret is enough for all of them.
  const [secret, count] = [newId(), { of: 0 }];
  const newToken = () => `${secret}${(count.of += 1).toString(16)}`;
  const newServer = serverOf(exchangeOf);
  const stateless = createMcpHandler(newServer, { legacy: "stateless", keepAliveMs: KEEP_ALIVE_MS });
  const sessions = new Sessions({ newServer, newId, clock, draining, sessionsPerAccount });

  const sessionOf = async ({ request, caller, body }: AgentCall): Promise<Session | "none" | "unknown"> => {
    const message = body?.value;
    const id = request.headers.get("mcp-session-id");
    const isBeginning = isInitialize(message);
    if ((id === null && !isBeginning) || !(await isLegacyRequest(request, message))) return "none";
    if (isBeginning) return sessions.begin(caller, capabilitiesIn(message));
    return sessions.find(id ?? "", caller) ?? "unknown";
  };

  return async (asked) => {
    const call = { ...asked, caller: asAgent(asked.caller) };
    const { request, caller, body, over, waits } = call;
    const verbatim = new Verbatim(newToken);
    const found = await sessionOf(call);
    if (found === "unknown") return unknownSession();
    const session = found === "none" ? null : found;
    exchanges.set(request, {
      // In a session the newest request tells who calls, also while an older one waits.
      caller: session === null ? () => caller : () => session.caller,
      capabilities: session?.capabilities ?? null,
      body,
      over,
      waits,
      verbatim,
    });
    const answer = session === null ? stateless.fetch(request, parsed(body)) : sessions.answer(session, call);
    return verbatim.fill(await answer);
  };
}

/** By this code of the official server clients know that they have to begin another session. */
const SESSION_NOT_FOUND = -32_001;

/** The session was never there, is another key's, was closed, or is from before a restart: always the same words. */
function unknownSession(): Response {
  const message = "Session not found. Begin a new one with initialize.";
  return Response.json(
    { jsonrpc: "2.0", error: { code: SESSION_NOT_FOUND, message }, id: null },
    { status: 404, headers: { "content-type": "application/json" } },
  );
}

/** What the SDK takes in place of a body that was read. */
function parsed(body: ParsedJson | null): { readonly parsedBody?: unknown } {
  return body === null ? {} : { parsedBody: body.value };
}

/** By its name first: what is asked for with every request should cost nothing. */
function isInitialize(message: unknown): boolean {
  return isJsonObject(message) && message["method"] === "initialize" && isInitializeRequest(message);
}
