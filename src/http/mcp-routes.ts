import type { ParsedJson } from "../json/scan.ts";
import type { Caller } from "../accounts/roles.ts";
import { DomainError } from "../api/domain-error.ts";
import { readJson } from "./body.ts";
import type { Guard, Route } from "./router.ts";
import { whileStreaming } from "./sse.ts";
import { callerOf, type RequestContext } from "./context.ts";

/** One request of an MCP client: authenticated, counted and read. */
interface AgentCall {
  readonly request: Request;
  readonly caller: Caller;
  /** Null where the method has no body. */
  readonly body: ParsedJson | null;
  /** Aborted when the answer has ended, or the client is gone. */
  readonly over: AbortSignal;
  /** Told when the answer waits for an action or a person: the time until then is no work. */
  readonly waits: () => void;
}

export interface McpRouteDeps {
  /** Judges Host and Origin. */
  readonly guard: Guard;
  /** Speaks MCP over Streamable HTTP. */
  readonly answerAgent: (call: AgentCall) => Promise<Response>;
}

/** /mcp, the door of agents (decisions 9). What is wrong with the HTTP has our envelope, what is wrong with the MCP its own. */
export function mcpRoutes({ guard, answerAgent }: McpRouteDeps): readonly Route[] {
  const answer = async (context: RequestContext): Promise<Response> => {
    const { request } = context;
    const caller: Caller = { ...callerOf(context), isAgentCall: true };
    // Its GET opens a stream, which nobody would read.
    if (request.method === "HEAD") return new Response(null, { headers: { "content-type": "text/event-stream" } });
    const body = await bodyOf(context);
    const waits = () => {
      context.kind = "wait";
    };
    // A batch of the revisions of 2025 is as many requests as it has messages.
    if (body !== null && Array.isArray(body.value)) context.count(Math.max(0, body.value.length - 1));
    return whileStreaming(context, (over) => answerAgent({ request, caller, body, over, waits }));
  };
  const methods = ["GET", "POST", "DELETE"] as const;
  return methods.map((method) => ({ method, path: "/mcp", operationId: null, guard, answer }));
}

async function bodyOf(context: RequestContext): Promise<ParsedJson | null> {
  const { method } = context.request;
  if (method === "POST") return readJson(context);
  if (context.isBodyUnread) throw new DomainError("invalid_request", `${method} takes no body here.`);
  return null;
}
