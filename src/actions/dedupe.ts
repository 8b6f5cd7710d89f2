import type { Action, ActionRequest, ActionStatus } from "./action.ts";
import { DEDUPE_WINDOW_MS } from "../config/limits.ts";

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

/** SHA-256 of a text, hex. The law has no cryptography of its own. */
export type HashOf = (text: string) => string;

/** Begins a digest that covers the callback; those before it are the bare hash of the request. */
const WITH_CALLBACK = "2:";

/**
 * Names exactly what is approved: method, URL, headers, body and the callback, and nothing that changes from attempt to
 * attempt.
 */
export function requestDigest(request: ActionRequest, hashOf: HashOf): string {
  return WITH_CALLBACK + hashOf(JSON.stringify([...sentParts(request), request.callback]));
}

/** As digests were made before they covered the callback: what was approved then is still to be sent. */
function firstDigest(request: ActionRequest, hashOf: HashOf): string {
  return hashOf(JSON.stringify(sentParts(request)));
}

function sentParts({ method, url, headers, body }: ActionRequest): readonly unknown[] {
  return [method, url, Object.entries(headers ?? {}), body];
}

/**
 * Whether an action may be sent as it is: a person's yes holds for the bytes that were approved and no others
 * (hostile 7). Of what needed no yes only that is looked at which is sealed.
 */
export function isAsApproved(action: Action, hashOf: HashOf): boolean {
  if (action.isAltered === true) return false;
  if (!action.approve) return true;
  const { approvedDigest } = action;
  const digestOf = approvedDigest?.startsWith(WITH_CALLBACK) === true ? requestDigest : firstDigest;
  return digestOf(action, hashOf) === approvedDigest;
}
