import { createMcpHandler, isInitializeRequest, isLegacyRequest, type McpServer } from "@modelcontextprotocol/server";
import { KEEP_ALIVE_MS } from "../src/domain/limits.ts";
import type { Clock } from "../src/ports/clock.ts";
import type { Ids } from "../src/ports/ids.ts";
import type { AgentCall } from "./call.ts";
import { capabilitiesIn } from "./client.ts";
import { asAgent, type Exchange, type ExchangeOf } from "./exchange.ts";
import { type Session, Sessions } from "./sessions.ts";
import { Verbatim } from "./verbatim.ts";

export interface AgentDoorDeps {
  readonly clock: Clock;
  readonly ids: Pick<Ids, "bytes">;
  readonly draining: AbortSignal;
}

/** Answers one request of a client, with a stream where the call takes its time. Throws what is wrong with its session. */
export type AgentDoor = (call: AgentCall) => Promise<Response>;

/**
 * MCP over Streamable HTTP (decisions 9): revision 2026-07-28 without any state, and sessions for the clients of 2025,
 * which can't be asked a question otherwise. One of those that begins none is answered, but never asked.
 */
export function createAgentDoor(serverOf: (exchangeOf: ExchangeOf) => () => McpServer, deps: AgentDoorDeps): AgentDoor {
  const { clock, ids, draining } = deps;
  const exchanges = new WeakMap<Request, Exchange>();
  const exchangeOf: ExchangeOf = ({ http }) => {
    const exchange = http?.req === undefined ? undefined : exchanges.get(http.req);
    if (exchange === undefined) throw new Error("A message came by no request.");
    return exchange;
  };
  const token = () => Buffer.from(ids.bytes(16)).toString("hex");
  const newServer = serverOf(exchangeOf);
  const stateless = createMcpHandler(newServer, { legacy: "stateless", keepAliveMs: KEEP_ALIVE_MS });
  const sessions = new Sessions({ newServer, newId: token, clock, draining });

  const sessionOf = async ({ request, caller, body }: AgentCall): Promise<Session | null> => {
    const message = body?.value;
    if (!(await isLegacyRequest(request, message))) return null;
    if (isInitializeRequest(message)) return sessions.begin(caller, capabilitiesIn(message));
    const id = request.headers.get("mcp-session-id");
    return id === null ? null : sessions.find(id, caller);
  };

  return async (call) => {
    const { request, body, over } = call;
    const verbatim = new Verbatim(token);
    const session = await sessionOf(call);
    const { caller } = session ?? call;
    exchanges.set(request, {
      caller: () => asAgent(session?.caller ?? caller),
      capabilities: session?.capabilities ?? null,
      body,
      over,
      verbatim,
    });
    if (session !== null) return verbatim.fill(await sessions.answer(session, call));
    return verbatim.fill(await stateless.fetch(request, body === null ? {} : { parsedBody: body.value }));
  };
}
