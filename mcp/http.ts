import { createMcpHandler, isInitializeRequest, isLegacyRequest, type McpServer } from "@modelcontextprotocol/server";
import { isJsonObject } from "../src/contract/check.ts";
import type { ParsedJson } from "../src/contract/json-text.ts";
import { KEEP_ALIVE_MS } from "../src/domain/limits.ts";
import type { Clock } from "../src/ports/clock.ts";
import type { Ids } from "../src/ports/ids.ts";
import type { AgentCall } from "./call.ts";
import { capabilitiesIn } from "./client.ts";
import { asAgent, type Exchange, type ExchangeOf } from "./exchange.ts";
import { type Session, Sessions } from "./sessions.ts";
import { Verbatim } from "./verbatim.ts";

export interface AgentHandlerDeps {
  readonly clock: Clock;
  readonly ids: Pick<Ids, "bytes">;
  readonly draining: AbortSignal;
  /** `MCP_SESSIONS_PER_ACCOUNT` */
  readonly sessionsPerAccount: number;
}

/** Answers one request of a client, with a stream where the call takes its time. Throws `rate_limited` where no session may begin. */
export type AgentHandler = (call: AgentCall) => Promise<Response>;

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
