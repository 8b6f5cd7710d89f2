import { CLIENT_CAPABILITIES_META_KEY, isInitializeRequest, type ServerContext } from "@modelcontextprotocol/server";
import { QUESTION_MS } from "../src/domain/limits.ts";
import type { Progress, Questions } from "./call.ts";

/** What a client of 2025 said of itself when its session began; null: nobody knows. */
export function capabilitiesIn(body: unknown): unknown {
  return isInitializeRequest(body) ? body.params.capabilities : null;
}

/** Whether a client that says this of itself puts forms to its person. Without a mode it means forms. */
export function canAsk(capabilities: unknown): boolean {
  const elicitation = memberOf(capabilities, "elicitation");
  if (typeof elicitation !== "object" || elicitation === null) return false;
  return "form" in elicitation || !("url" in elicitation);
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Object.getOwnPropertyDescriptor(value, name)?.value : undefined;
}

/**
 * How this call can put a question to the person; `capabilities` are those of its session, if it has one. A question of 2025
 * ends with the signal of `stopOf`, with its session, or after ten minutes.
 */
export function questionsOf(
  { mcpReq }: ServerContext,
  capabilities: unknown,
  stopOf: () => AbortSignal,
): Questions | null {
  const { envelope } = mcpReq;
  if (envelope !== undefined) {
    if (!canAsk(memberOf(envelope, CLIENT_CAPABILITIES_META_KEY))) return null;
    return { era: "modern", answers: mcpReq.inputResponses ?? null, state: mcpReq.requestState() };
  }
  if (!canAsk(capabilities)) return null;
  return {
    era: "legacy",
    put: ({ message, requestedSchema }) =>
      mcpReq.send(
        { method: "elicitation/create", params: { message, requestedSchema } },
        { timeout: QUESTION_MS, signal: stopOf() },
      ),
  };
}

/** How this call tells its progress; null when its client did not ask for it. */
export function tellOf({ mcpReq }: ServerContext): ((progress: Progress) => void) | null {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return null;
  return (progress) => {
    // A client that is gone hears of nothing; the wait ends by itself.
    mcpReq.notify({ method: "notifications/progress", params: { progressToken, ...progress } }).catch(() => {});
  };
}
