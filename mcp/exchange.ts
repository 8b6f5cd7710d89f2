import type { ServerContext } from "@modelcontextprotocol/server";
import { isJsonObject } from "../src/contract/check.ts";
import { type ParsedJson, textAt } from "../src/contract/json-text.ts";
import type { Caller } from "../src/domain/caller.ts";
import type { Verbatim } from "./verbatim.ts";

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
