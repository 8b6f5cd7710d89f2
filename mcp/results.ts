import type { CallToolResult } from "@modelcontextprotocol/server";
import { DomainError, type ErrorCode } from "../src/domain/errors.ts";
import type { Ids } from "../src/ports/ids.ts";
import type { Log } from "../src/ports/log.ts";
import { StoreUnavailable } from "../src/ports/store.ts";
import type { Verbatim } from "./verbatim.ts";

/** What a tool has to say: a sentence for the model, and the data as JSON text. */
export interface Told {
  readonly sentence: string;
  readonly json: string;
  /** What the data is, as a resource. */
  readonly uri: string;
}

/**
 * The sentence and the data apart (hostile M10). The data goes out twice, since not every client shows a model both:
 * as structured content, and as a resource for those that hand over the content alone.
 */
export function resultOf({ sentence, json, uri }: Told, verbatim: Verbatim): CallToolResult {
  return {
    content: [
      { type: "text", text: sentence },
      { type: "resource", resource: { uri, mimeType: "application/json", text: json } },
    ],
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
  forbidden: "Do not try again with this key; tell the person.",
  unauthorized: "The key is not valid any more; tell the person.",
  rate_limited: "Wait a second, and call again; a create with the same idempotency_key.",
  not_found: "Check the id; list finds actions.",
  not_approvable: "Look at it with get: its actions say what may be done.",
  not_cancellable: "Look at it with get: its actions say what may be done.",
  not_retryable: "Look at it with get: its actions say what may be done.",
  unavailable: "Call again in a second; a create with the same idempotency_key.",
  internal_error: "Call again once, a create with the same idempotency_key; then tell the person.",
};
const NEXT_STEP = "Read the message; do not repeat the same call.";

/** An error as a tool tells it: our code, what is wrong, and what to do about it. */
export function errorResult({ code, message, issues }: DomainError): CallToolResult {
  const details = issues.map(({ field, message: what }) => ({ field, message: what, code: "invalid" }));
  const error = {
    code,
    message,
    ...(details.length === 0 ? {} : { details }),
    next_step: NEXT_STEPS[code] ?? NEXT_STEP,
  };
  return { isError: true, content: [{ type: "text", text: JSON.stringify({ error }) }] };
}

export interface TellDeps {
  readonly log: Log;
  readonly ids: Pick<Ids, "request">;
}

/** Any error as one that may be told. What is no broken rule is a bug: the log gets it, the caller an id to find it by. */
export function asTold(error: unknown, tool: string, { log, ids }: TellDeps): DomainError {
  if (error instanceof DomainError) return error;
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
