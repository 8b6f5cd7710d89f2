import {
  type ElicitRequestFormParams,
  CLIENT_CAPABILITIES_META_KEY,
  isInitializeRequest,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { type ParsedJson, textAt } from "../src/json/scan.ts";
import type { Caller } from "../src/accounts/roles.ts";
import { QUESTION_MS } from "../src/config/limits.ts";
import { isJsonObject } from "../src/api/schema-helpers.ts";
import type { Verbatim } from "./verbatim.ts";

/** One HTTP request of a client: authenticated, counted and read. */
export interface AgentCall {
  readonly request: Request;
  readonly caller: Caller;
  /** Null where the method has no body. */
  readonly body: ParsedJson | null;
  /** Aborted when the answer has ended, or the client is gone. */
  readonly over: AbortSignal;
  /** Told when the answer waits for an action or a person: the time until then is no work. */
  readonly waits: () => void;
}

/** How a question gets to the person who uses the client. */
export type Questions =
  /** Revision 2026-07-28: the call ends with the question, and is made again with the answer and the state that went out. */
  | { readonly era: "modern"; readonly answers: Readonly<Record<string, unknown>> | null; readonly state: unknown }
  /** Before it: the question is a request of ours while the call waits. Resolves with the answer; rejects without one. */
  | { readonly era: "legacy"; readonly put: (form: Form) => Promise<unknown> };

/** What a person is asked, and what may be answered. */
export interface Form {
  readonly message: string;
  readonly requestedSchema: ElicitRequestFormParams["requestedSchema"];
}

/** How far a call has come. Each must be larger than the one before it. */
export interface Progress {
  readonly progress: number;
  readonly total: number;
  readonly message: string;
}

/** One call of a tool. */
export interface ToolCall {
  /** Whoever calls, as the newest request of the client has shown: a role may change while a person thinks. */
  readonly caller: () => Caller;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** The text of an argument, numbers as they were written. */
  readonly textOf: (argument: string) => string;
  /** Aborted when nobody waits for the result any more, or the service stops. */
  readonly stop: AbortSignal;
  /** Null where the client wants to hear of none. */
  readonly tell: ((progress: Progress) => void) | null;
  /** Null where the client can't ask its person. */
  readonly questions: Questions | null;
}

/** What a client of 2025 said of itself when its session began; null: nobody knows. */
export function capabilitiesIn(body: unknown): unknown {
  return isInitializeRequest(body) ? body.params.capabilities : null;
}

/** Whether a client that says this of itself puts forms to its person. Without a mode it means forms. */
function canAsk(capabilities: unknown): boolean {
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

/** What is known of the HTTP request behind a message, and stays out of the SDK's hands. */
export interface Exchange {
  /** Whoever calls, as decisions of tools are written down: `mcp:<key name>` (decisions 3). */
  readonly caller: () => Caller;
  /** What a client of 2025 said of itself when its session began; null: nobody knows. */
  readonly capabilities: unknown;
  readonly body: ParsedJson | null;
  /** Aborted when the answer has ended, or the client is gone. */
  readonly over: AbortSignal;
  /** Told when a call waits for an action or a person. */
  readonly waits: () => void;
  readonly verbatim: Verbatim;
}

/** The exchange that a message came by. Throws when there is none: nobody has asked for its key. */
export type ExchangeOf = (ctx: ServerContext) => Exchange;

/** The caller of a key as the tools know it. */
export function asAgent(caller: Caller): Caller {
  return { ...caller, actor: `mcp:${caller.keyName}` };
}

/** The arguments of a tool call as they were sent: in the SDK's copy of them a member `__proto__` is missing. */
export function argumentsOf({ body }: Exchange, ctx: ServerContext): Readonly<Record<string, unknown>> {
  const value = body === null ? null : pathOf(body, ctx).reduce(memberOfArguments, body.value);
  return isJsonObject(value) ? value : {};
}

/** The text of one of them, numbers as they were written. */
export function argumentText({ body }: Exchange, ctx: ServerContext, name: string): string {
  return body === null ? "null" : textAt(body, [...pathOf(body, ctx), name]);
}

function pathOf({ value }: ParsedJson, { mcpReq }: ServerContext): readonly (string | number)[] {
  const path = ["params", "arguments"];
  if (!Array.isArray(value)) return path;
  const messages: readonly { readonly id?: unknown }[] = value;
  return [messages.findIndex((message) => message.id === mcpReq.id), ...path];
}

function memberOfArguments(value: unknown, step: string | number): unknown {
  return typeof value === "object" && value !== null ? Object.getOwnPropertyDescriptor(value, step)?.value : null;
}
