import type { ParsedJson } from "../core/json.ts";
import type { Caller } from "../core/roles.ts";
import { DomainError } from "../core/domain-error.ts";
import { readJson } from "./body.ts";
import { contextCaller, type RequestContext } from "./request.ts";
import { createRoutes } from "./operation.ts";
import { whileStreaming } from "./sse.ts";

/** One HTTP request of an MCP client: authenticated, counted and read. */
export interface McpRequest {
  readonly request: Request;
  readonly caller: Caller;
  /** Null: the method has no body. */
  readonly body: ParsedJson | null;
  /** Aborted when the response has ended or the client has left. */
  readonly ended: AbortSignal;
  /** Called when the response waits for an action or a person, so that metrics don't count the time as work. */
  readonly onWait: () => void;
}

/**
 * /mcp, for agents. Errors of HTTP have our envelope; errors of MCP are JSON-RPC errors. `answerAgent` speaks MCP over
 * Streamable HTTP.
 */
export function mcpRoutes(answerAgent: (call: McpRequest) => Promise<Response>) {
  const answer = async ({ context }: { readonly context: RequestContext }): Promise<Response> => {
    const { request } = context;
    const caller: Caller = { ...contextCaller(context), isAgentCall: true };
    // GET would open a stream that nobody reads.
    if (request.method === "HEAD") return new Response(null, { headers: { "content-type": "text/event-stream" } });
    const body = await readMcpBody(context);
    const onWait = () => {
      context.kind = "wait";
    };
    // A batch (MCP revision 2025-03-26) counts as many requests as it has messages.
    if (body !== null && Array.isArray(body.value)) context.count(Math.max(0, body.value.length - 1));
    return whileStreaming(context, (ended) => answerAgent({ request, caller, body, ended, onWait }));
  };
  const unparsed = { parse: "none" } as const;
  return createRoutes().get("/mcp", answer, unparsed).post("/mcp", answer, unparsed).delete("/mcp", answer, unparsed);
}

async function readMcpBody(context: RequestContext): Promise<ParsedJson | null> {
  const { method } = context.request;
  if (method === "POST") return readJson(context);
  if (context.isBodyUnread) throw new DomainError("invalid_request", `${method} takes no body here.`);
  return null;
}
