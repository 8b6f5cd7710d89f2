import { type ActionRequest, unknownExtras } from "../core/action.ts";
import { bodyMemberOf, contentTypeOf, isJsonMember } from "../core/body.ts";
import { type JsonLeaf, jsonLeaves } from "../core/json-tree.ts";
import { GRANT_BODY_CHARS_MAX, GRANT_FIELDS_MAX } from "../core/limits.ts";
import { sentTarget } from "../core/target.ts";

/**
 * A digest of all of a request that has to be equal: the target as it is sent, method, headers, callback, when it is sent and how it
 * is repeated, and the body without the members that may differ. What its requester says of it may be other words. Null: its
 * body can't be compared.
 */
export function likenessOf(
  request: ActionRequest,
  vary: readonly string[],
  hashOf: (text: string) => string,
): string | null {
  const { method, url, headers, callback, onUnknown, retries, extras } = request;
  const target = sentTarget(url);
  const body = bodyParts(request, new Set(vary));
  if (target === null || body === null) return null;
  const { hostname, host, path, query } = target;
  const pairs = Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), value] as const);
  const sorted = pairs.toSorted(([one], [other]) => (one < other ? -1 : 1));
  const { bodyKind, runAt, delaySeconds, timeoutMs, backoff, giveUpOn, credential } = extras;
  const repeating = [timeoutMs, onUnknown, retries, backoff, giveUpOn];
  const sending = [delaySeconds === undefined ? runAt : null, delaySeconds, ...repeating, unknownExtras(extras)];
  const scheme = url.slice(0, url.indexOf(":")).toLowerCase();
  const sent = [method, scheme, hostname, host, path, query, sorted, bodyKind, contentTypeOf(request), body];
  // Not at all without one, so that grants of earlier versions stay alike.
  const by = credential === undefined ? [] : [{ credential: credential.id }];
  return hashOf(JSON.stringify([...sent, callback, ...sending, ...by]));
}

/** The value of a member that may differ, as it is written; null: there is none, or it is no plain value. */
export function fieldOf(request: ActionRequest, path: string): string | null {
  return fieldsOf(request)?.find((field) => field.path === path)?.text ?? null;
}

/** The number that a JSON text is; null: none that can be compared exactly. */
export function numberOf(text: string | null): number | null {
  return text !== null && PLAIN_NUMBER.test(text) ? Number(text) : null;
}

/** Decimal, and short enough that a double holds it. */
const PLAIN_NUMBER = /^(0|[1-9]\d{0,11})(\.\d{1,3})?$/;

/** The whole body, or its members without the values of those that may differ; each of these has to be there once. */
function bodyParts(request: ActionRequest, vary: ReadonlySet<string>): unknown {
  if (vary.size === 0) return [request.body];
  const fields = fieldsOf(request);
  if (fields === null || fields.filter(({ path }) => vary.has(path)).length !== vary.size) return null;
  return fields.map(({ path, text }) => (vary.has(path) ? [path] : [path, text]));
}

/** The plain values of a JSON body under their paths; null: it is another body, or too large to be compared. */
export function fieldsOf(request: ActionRequest): readonly JsonLeaf[] | null {
  const { body } = request;
  const member = bodyMemberOf(request);
  if (body === null || member === null || !isJsonMember(member) || body.length > GRANT_BODY_CHARS_MAX) return null;
  const fields = jsonLeaves(body, "body", GRANT_FIELDS_MAX);
  return fields === null || fields.length > GRANT_FIELDS_MAX ? null : fields;
}
