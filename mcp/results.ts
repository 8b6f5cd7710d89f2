import type { CallToolResult } from "@modelcontextprotocol/server";
import { DomainError, type ErrorCode } from "../src/domain/errors.ts";
import type { Ids } from "../src/ports/ids.ts";
import type { Log } from "../src/ports/log.ts";
import { StoreBusy, StoreUnavailable } from "../src/ports/store.ts";
import type { Verbatim } from "./verbatim.ts";

/** What a tool answers. */
export interface ToolAnswer {
  /** A JSON object without line breaks. */
  readonly json: string;
  /** Set when the tool did not do what it was called for, and the object tells of that as its `error`. */
  readonly refused?: ErrorCode;
}

/**
 * One object in both forms that clients hand to a model: as structured content, and as text for those that read no other.
 * Nothing that a person or a target wrote stands outside of its fields.
 */
export function resultOf({ json, refused }: ToolAnswer, verbatim: Verbatim): CallToolResult {
  return {
    ...(refused === undefined ? {} : { isError: true }),
    content: [{ type: "text", text: json }],
    structuredContent: verbatim.put(json),
  };
}

/** What a model may do about an error. */
const NEXT_STEPS: Readonly<Partial<Record<ErrorCode, string>>> = {
  validation_error: "Correct what details names, and call again; a create with the same idempotency_key.",
  missing_field: "Call again with url.",
  invalid_url: "Use another URL, or ask whoever runs Outgate to allow this target.",
  invalid_sync: "Call again without sync, and tell the person that the action waits for them.",
  invalid_query: "Correct what details names, and call again.",
  invalid_request: "Correct what details names, and call again.",
  forbidden: "Do not try again with this key; tell the person.",
  unauthorized: "The key is not valid any more; tell the person.",
  rate_limited: "Wait a second, and call again; a create with the same idempotency_key.",
  not_found: "Check the id; list finds actions.",
  not_approvable: "Look at it with get: its actions say what may be done.",
  not_cancellable: "Look at it with get: its actions say what may be done.",
  not_retryable: "Look at it with get: its actions say what may be done.",
  too_many_held: "Tell the person that their approval is needed; cancel what is not needed any more.",
  unavailable: "Call again in a second; a create with the same idempotency_key.",
  internal_error: "Call again once, a create with the same idempotency_key; then tell the person.",
};
const NEXT_STEP = "Read the message; do not repeat the same call.";

/** An error as a tool tells it: our code, what is wrong, and what to do about it. */
export function errorOf({ code, message, issues }: DomainError) {
  const details = issues.map(({ field, message: what }) => ({ field, message: what, code: "invalid" }));
  return {
    code,
    message,
    ...(details.length === 0 ? {} : { details }),
    next_step: NEXT_STEPS[code] ?? NEXT_STEP,
  };
}

/** A result that is nothing but an error. */
export function errorResult(broken: DomainError): CallToolResult {
  const structuredContent = { error: errorOf(broken) };
  return { isError: true, content: [{ type: "text", text: JSON.stringify(structuredContent) }], structuredContent };
}

export interface TellDeps {
  readonly log: Log;
  readonly ids: Pick<Ids, "request">;
}

/** Any error as one that may be told. What is no broken rule is a bug: the log gets it, the caller an id to find it by. */
export function asTold(error: unknown, tool: string, { log, ids }: TellDeps): DomainError {
  if (error instanceof DomainError) return error;
  if (error instanceof StoreBusy) {
    return new DomainError("unavailable", "Too much waits to be stored just now.");
  }
  if (error instanceof StoreUnavailable) {
    return new DomainError("unavailable", "The service can't store or read just now.");
  }
  const id = ids.request();
  const frames = error instanceof Error ? (error.stack ?? "").split("\n").slice(1, 1 + FRAMES_MAX) : [];
  // Not the message: it may quote what somebody sent.
  log.error("mcp.failed", {
    error_id: id,
    tool,
    error: error instanceof Error ? error.name : typeof error,
    frames: frames.join("\n"),
  });
  return new DomainError("internal_error", `Something went wrong in the service; ${id} finds it in the log.`);
}

const FRAMES_MAX = 8;
