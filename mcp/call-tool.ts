import {
  type CallToolRequest,
  type CallToolResult,
  inputRequired,
  type InputRequiredResult,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { TOOLS, type ToolName } from "../src/contract/tools.ts";
import type { Clock } from "../src/ports/clock.ts";
import { QUESTION } from "./approve.ts";
import type { ToolCall } from "./call.ts";
import { questionsOf, tellOf } from "./client.ts";
import { argumentsOf, argumentText, type Exchange, type ExchangeOf } from "./exchange.ts";
import { asTold, errorResult, resultOf, type TellDeps } from "./results.ts";
import { createTools, type ToolDeps } from "./tools.ts";

export interface CallToolDeps extends ToolDeps, TellDeps {
  readonly clock: Clock;
  /** Aborted when the service stops: whoever waits is answered. */
  readonly draining: AbortSignal;
}

/** Runs one call of a tool. What is wrong with it is a result, as models read it; what is wrong with the protocol throws. */
export function createCallTool(deps: CallToolDeps, exchangeOf: ExchangeOf) {
  const tools = createTools(deps);
  return async ({ params }: CallToolRequest, ctx: ServerContext): Promise<CallToolResult | InputRequiredResult> => {
    const { name } = params;
    if (!isTool(name))
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no tool ${JSON.stringify(name)}.`);
    const exchange = exchangeOf(ctx);
    const startedMs = deps.clock.monotonicMs();
    const writeDown = (code?: string) => {
      const { accountId, keyId } = exchange.caller();
      const durationMs = Math.round((deps.clock.monotonicMs() - startedMs) * 10) / 10;
      deps.log.info("mcp.called", { tool: name, code, duration_ms: durationMs, account_id: accountId, key_id: keyId });
    };
    try {
      const told = await tools[name](callOf(ctx, exchange, deps.draining));
      writeDown();
      if ("sentence" in told) return resultOf(told, exchange.verbatim);
      const { message, requestedSchema } = told.form;
      const question = inputRequired.elicit({ message, requestedSchema });
      return inputRequired({ inputRequests: { [QUESTION]: question }, requestState: told.state });
    } catch (error) {
      if (error instanceof ProtocolError) {
        writeDown("invalid_state");
        throw error;
      }
      const broken = asTold(error, name, deps);
      writeDown(broken.code);
      return errorResult(broken);
    }
  };
}

function isTool(name: string): name is ToolName {
  return Object.hasOwn(TOOLS, name);
}

/** What a call needs only if it waits or asks is made when it does: most calls read, and are over at once. */
function callOf(ctx: ServerContext, exchange: Exchange, draining: AbortSignal): ToolCall {
  let stop: AbortSignal | null = null;
  const stopOf = () => {
    const { revoked = draining } = exchange.caller();
    return (stop ??= AbortSignal.any([ctx.mcpReq.signal, exchange.over, draining, revoked]));
  };
  return {
    caller: exchange.caller,
    arguments: argumentsOf(exchange, ctx),
    textOf: (argument) => argumentText(exchange, ctx, argument),
    tell: tellOf(ctx),
    get stop() {
      return stopOf();
    },
    get questions() {
      return questionsOf(ctx, exchange.capabilities, stopOf);
    },
  };
}
