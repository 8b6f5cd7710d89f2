import {
  type CallToolRequest,
  type CallToolResult,
  inputRequired,
  type InputRequiredResult,
  ProtocolError,
  ProtocolErrorCode,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { DomainError } from "../src/domain/errors.ts";
import { TOOLS, type ToolName } from "../src/contract/tools.ts";
import type { Clock } from "../src/ports/clock.ts";
import type { Metrics, ToolOutcome } from "../src/ports/metrics.ts";
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
  readonly metrics: Pick<Metrics, "toolCalled">;
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
    const writeDown = (outcome: ToolOutcome, code?: string) => {
      deps.metrics.toolCalled(name, outcome);
      const { accountId, keyId } = exchange.caller();
      const durationMs = Math.round((deps.clock.monotonicMs() - startedMs) * 10) / 10;
      deps.log.info("mcp.called", { tool: name, code, duration_ms: durationMs, account_id: accountId, key_id: keyId });
    };
    try {
      const answer = await tools[name](callOf(ctx, exchange, deps.draining));
      if ("json" in answer) {
        writeDown(answer.refused === undefined ? "ok" : "refused", answer.refused);
        return resultOf(answer, exchange.verbatim);
      }
      writeDown("asked");
      const { message, requestedSchema } = answer.form;
      const question = inputRequired.elicit({ message, requestedSchema });
      return inputRequired({ inputRequests: { [QUESTION]: question }, requestState: answer.state });
    } catch (error) {
      if (error instanceof ProtocolError) {
        writeDown("refused", "invalid_state");
        throw error;
      }
      if (hasLeft(exchange, error)) {
        writeDown("refused", "client_gone");
        return errorResult(new DomainError("unavailable", "Nobody waits for this call any more."));
      }
      const broken = asTold(error, name, deps);
      writeDown(broken.code === "internal_error" ? "failed" : "refused", broken.code);
      return errorResult(broken);
    }
  };
}

/** What waits in the name of a client ends as aborted when it leaves; that is no fault of ours. */
function hasLeft({ over }: Exchange, error: unknown): boolean {
  return over.aborted && error instanceof Error && error.name === "AbortError";
}

function isTool(name: string): name is ToolName {
  return Object.hasOwn(TOOLS, name);
}

/** What a call needs only if it waits or asks is made when it does: most calls read, and are over at once. */
function callOf(ctx: ServerContext, exchange: Exchange, draining: AbortSignal): ToolCall {
  let stop: AbortSignal | null = null;
  const revokedOf = () => exchange.caller().revoked ?? draining;
  const stopOf = () => {
    exchange.waits();
    return (stop ??= AbortSignal.any([ctx.mcpReq.signal, exchange.over, draining, revokedOf()]));
  };
  // Without the signal of the call: a client gives a call up after a minute, and its person may still be thinking.
  const stopAskingOf = () => {
    exchange.waits();
    return AbortSignal.any([draining, revokedOf()]);
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
      return questionsOf(ctx, exchange.capabilities, stopAskingOf);
    },
  };
}
