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
  const newId = () => Buffer.from(ids.bytes(16)).toString("hex");
  // Nobody outside sees a placeholder, so one secret is enough for all of them.
  const [secret, count] = [newId(), { of: 0 }];
  const newToken = () => `${secret}${(count.of += 1).toString(16)}`;
  const newServer = serverOf(exchangeOf);
  const stateless = createMcpHandler(newServer, { legacy: "stateless", keepAliveMs: KEEP_ALIVE_MS });
  const sessions = new Sessions({ newServer, newId, clock, draining });

  const sessionOf = async ({ request, caller, body }: AgentCall): Promise<Session | null> => {
    const message = body?.value;
    const id = request.headers.get("mcp-session-id");
    const isBeginning = isInitialize(message);
    if ((id === null && !isBeginning) || !(await isLegacyRequest(request, message))) return null;
    return isBeginning ? sessions.begin(caller, capabilitiesIn(message)) : sessions.find(id ?? "", caller);
  };

  return async (asked) => {
    const call = { ...asked, caller: asAgent(asked.caller) };
    const { request, caller, body, over } = call;
    const verbatim = new Verbatim(newToken);
    const session = await sessionOf(call);
    exchanges.set(request, {
      // In a session the newest request tells who calls, also while an older one waits.
      caller: session === null ? () => caller : () => session.caller,
      capabilities: session?.capabilities ?? null,
      body,
      over,
      verbatim,
    });
    const answer = session === null ? stateless.fetch(request, parsed(body)) : sessions.answer(session, call);
    return verbatim.fill(await answer);
  };
}

/** What the SDK takes in place of a body that was read. */
function parsed(body: ParsedJson | null): { readonly parsedBody?: unknown } {
  return body === null ? {} : { parsedBody: body.value };
}

/** By its name first: what is asked for with every request should cost nothing. */
function isInitialize(message: unknown): boolean {
  return isJsonObject(message) && message["method"] === "initialize" && isInitializeRequest(message);
}
