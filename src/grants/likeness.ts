import type { ActionRequest } from "../core/action.ts";
import { unknownExtras } from "../core/extras.ts";
import { bodyMemberOf, contentTypeOf, isJsonMember } from "../core/body.ts";
import { type JsonLeaf, jsonLeaves } from "../core/json-tree.ts";
import { GRANT_BODY_CHARS_MAX, GRANT_FIELDS_MAX } from "../core/limits.ts";
import { sentTarget } from "../core/target.ts";

/**
 * A digest of everything in a request that must be equal: the target as it is sent, method, headers, callback, when it is sent
 * and how it is retried, and the body without the members that may differ. The requester's texts may differ. Null: its body
 * can't be compared.
 */
export function describeLikeness(
  request: ActionRequest,
  vary: readonly string[],
  hashOf: (text: string) => string,
): string | null {
  const { method, url, headers, callback, onUnknown, retries, extras } = request;
  const body = bodyParts(request, new Set(vary));
  if (body === null) return null;
  const { hostname, host, path, query } = sentTarget(url);
  const pairs = Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), value] as const);
  const sorted = pairs.toSorted(([one], [other]) => (one < other ? -1 : 1));
  const { bodyKind, runAt, delaySeconds, timeoutMs, backoff, giveUpOn, credential } = extras;
  const repeating = [timeoutMs, onUnknown, retries, backoff, giveUpOn];
  const sending = [delaySeconds === undefined ? runAt : null, delaySeconds, ...repeating, unknownExtras(extras)];
  const scheme = url.slice(0, url.indexOf(":")).toLowerCase();
  const sent = [method, scheme, hostname, host, path, query, sorted, bodyKind, contentTypeOf(request), body];
  // Left out without a credential, so that digests of earlier versions stay the same.
  const by = credential === undefined ? [] : [{ credential: credential.id }];
  return hashOf(JSON.stringify([...sent, callback, ...sending, ...by]));
}

/** The value of a member that may differ, as it is written; null: it is missing, or no plain value. */
export function fieldText(request: ActionRequest, path: string): string | null {
  return requestFields(request)?.find((field) => field.path === path)?.text ?? null;
}

/** The number in a JSON text; null: it is none, or can't be compared exactly. */
export function plainNumber(text: string | null): number | null {
  return text !== null && PLAIN_NUMBER.test(text) ? Number(text) : null;
}

/** A decimal that is short enough for a double to hold exactly. */
const PLAIN_NUMBER = /^(0|[1-9]\d{0,11})(\.\d{1,3})?$/;

/** The body to compare, without the values of members that may differ, each of which must be there once. */
function bodyParts(request: ActionRequest, vary: ReadonlySet<string>): unknown {
  if (vary.size === 0) return [request.body];
  const fields = requestFields(request);
  if (fields === null || fields.filter(({ path }) => vary.has(path)).length !== vary.size) return null;
  return fields.map(({ path, text }) => (vary.has(path) ? [path] : [path, text]));
}

/** The plain values of a JSON body with their paths; null: it is no JSON body, or too large to compare. */
export function requestFields(request: ActionRequest): readonly JsonLeaf[] | null {
  const { body } = request;
  const member = bodyMemberOf(request);
  if (body === null || member === null || !isJsonMember(member) || body.length > GRANT_BODY_CHARS_MAX) return null;
  const fields = jsonLeaves(body, "body", GRANT_FIELDS_MAX);
  return fields === null || fields.length > GRANT_FIELDS_MAX ? null : fields;
}
