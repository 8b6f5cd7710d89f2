import {
  type ElicitRequestFormParams,
  CLIENT_CAPABILITIES_META_KEY,
  isInitializeRequest,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { type ParsedJson, memberText } from "../src/json/json.ts";
import type { Caller } from "../src/accounts/roles.ts";
import { QUESTION_MS } from "../src/config/limits.ts";
import { isJsonObject } from "../src/api/schema-helpers.ts";
import type { Verbatim } from "./verbatim.ts";

/** How a client can ask the person who uses it (elicitation). */
export type Questions =
  /** Revision 2026-07-28: the call returns the question, and the client repeats it with the answer and our state. */
  | { readonly era: "modern"; readonly answers: Readonly<Record<string, unknown>> | null; readonly state: unknown }
  /** Earlier revisions: we send a request while the call waits. `put` resolves with the answer; rejects without one. */
  | { readonly era: "legacy"; readonly put: (form: Form) => Promise<unknown> };

/** A question to a person, and the schema of the answer. */
export interface Form {
  readonly message: string;
  readonly requestedSchema: ElicitRequestFormParams["requestedSchema"];
}

/** A progress notification. `progress` must increase from one to the next. */
export interface Progress {
  readonly progress: number;
  readonly total: number;
  readonly message: string;
}

/** One call of a tool. */
export interface ToolCall {
  /** The caller by the session's newest request: its role may have changed while a person was deciding. */
  readonly caller: () => Caller;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** The JSON text of an argument, with numbers as they were written. */
  readonly textOf: (argument: string) => string;
  /** Aborted when the client has left, its key was revoked, or the service stops. */
  readonly stop: AbortSignal;
  /** Null where the client didn't ask for progress. */
  readonly notifyProgress: ((progress: Progress) => void) | null;
  /** Null where the client can't ask a person. */
  readonly questions: Questions | null;
}

/** The capabilities in a 2025 client's `initialize`; null for any other message. */
export function capabilitiesIn(body: unknown): unknown {
  return isInitializeRequest(body) ? body.params.capabilities : null;
}

/** Whether a client with these capabilities shows forms. An elicitation capability without a mode means forms. */
function canAsk(capabilities: unknown): boolean {
  const elicitation = memberOf(capabilities, "elicitation");
  if (typeof elicitation !== "object" || elicitation === null) return false;
  return "form" in elicitation || !("url" in elicitation);
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Object.getOwnPropertyDescriptor(value, name)?.value : undefined;
}

/**
 * How this call can ask a person; `capabilities` are those of its session, if it has one. A question to a 2025 client ends
 * with the signal of `stopOf`, with its session, or after `QUESTION_MS`.
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

/** Sends progress notifications of this call; null where its client didn't ask for them. */
export function notifyProgressOf({ mcpReq }: ServerContext): ((progress: Progress) => void) | null {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return null;
  return (progress) => {
    // Fails where the client has left; the wait ends by itself then.
    mcpReq.notify({ method: "notifications/progress", params: { progressToken, ...progress } }).catch(() => {});
  };
}

/** The HTTP request behind a message, with what the SDK doesn't pass on to its handlers. */
export interface Exchange {
  /** The caller, with the actor `mcp:<key name>` for the timeline. */
  readonly caller: () => Caller;
  /** The capabilities of a 2025 client; null without a session. */
  readonly capabilities: unknown;
  readonly body: ParsedJson | null;
  /** Aborted when the response has ended or the client has left. */
  readonly ended: AbortSignal;
  /** Called when the call waits for an action or a person. */
  readonly onWait: () => void;
  readonly verbatim: Verbatim;
}

/** The exchange of a message. Throws where there is none, since such a message is not authenticated. */
export type ExchangeOf = (ctx: ServerContext) => Exchange;

/** The caller as the actor of tools. */
export function asAgent(caller: Caller): Caller {
  return { ...caller, actor: `mcp:${caller.keyName}` };
}

/** The arguments of a tool call as they were sent: the SDK's copy loses a member `__proto__`. */
export function argumentsOf({ body }: Exchange, ctx: ServerContext): Readonly<Record<string, unknown>> {
  const value = body === null ? null : pathOf(body, ctx).reduce(memberOfArguments, body.value);
  return isJsonObject(value) ? value : {};
}

/** The JSON text of one of them, with numbers as they were written. */
export function argumentText({ body }: Exchange, ctx: ServerContext, name: string): string {
  return body === null ? "null" : memberText(body, ...pathOf(body, ctx), name);
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
