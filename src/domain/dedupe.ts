import type { Action, ActionRequest, ActionStatus } from "./action.ts";
import { DEDUPE_WINDOW_MS } from "./limits.ts";

/** The two ways in which a create can mean an action that is there already (spec "Deduplication rules"). */
export type KeyKind = "idempotency" | "dedupe";

/** Whether a key first used then still means its action now. */
export function isInWindow(usedAt: Date, now: Date): boolean {
  return now.getTime() - usedAt.getTime() < DEDUPE_WINDOW_MS;
}

/** `Idempotency-Key` matches whatever became of the action; `dedupe` ignores one that failed. */
export function answersFor(kind: KeyKind, status: ActionStatus): boolean {
  return kind === "idempotency" || status !== "failed";
}

/** The names of the request fields in which a repeated create differs from what is stored (decisions 3). */
export function differs(stored: ActionRequest, asked: ActionRequest): readonly string[] {
  return COMPARED.filter(([, read]) => read(stored) !== read(asked)).map(([field]) => field);
}

const COMPARED: readonly (readonly [field: string, read: (request: ActionRequest) => unknown])[] = [
  ["url", (request) => request.url],
  ["method", (request) => request.method],
  ["body", (request) => request.body],
  ["headers", (request) => headersText(request.headers)],
  ["dedupe", (request) => request.dedupe],
  ["retries", (request) => request.retries],
  ["approve", (request) => request.approve],
  ["on_unknown", (request) => request.onUnknown],
  ["notify", (request) => request.notifyEmail],
  ["callback", (request) => request.callback],
];

/** Header names are compared without case and order, as HTTP does. */
function headersText(headers: Action["headers"]): string {
  const pairs = Object.entries(headers ?? {}).map(([name, value]) => `${name.toLowerCase()}:${value}`);
  return pairs.toSorted().join("\n");
}
