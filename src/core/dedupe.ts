import { type Action, type ActionRequest, unknownExtras } from "./action.ts";
import { BODY_MEMBERS, bodyAs, bodyContentType } from "./body.ts";
import type { Extras } from "./extras-schema.ts";

/**
 * The two kinds of keys by which a create can find an older action, for `DEDUPE_WINDOW_MS`. `Idempotency-Key` finds it whatever
 * its status is; `dedupe` doesn't find an action that failed, unless its target has answered 2xx too late.
 */
export type KeyKind = "idempotency" | "dedupe";

/**
 * The names of the request fields in which a repeated create differs from the stored action. Title, reason and metadata don't
 * count, since a repeat may say the same in other words.
 */
export function differs(stored: ActionRequest, requested: ActionRequest): readonly string[] {
  return COMPARED.filter(([, read]) => read(stored) !== read(requested)).map(([field]) => field);
}

const COMPARED: readonly (readonly [field: string, read: (request: ActionRequest) => unknown])[] = [
  ["url", (request) => request.url],
  ["method", (request) => request.method],
  ...BODY_MEMBERS.map((member) => [member, (request: ActionRequest) => bodyAs(request, member)] as const),
  ["headers", (request) => headersText(request.headers)],
  ["dedupe", (request) => request.dedupe],
  ["retries", (request) => request.retries],
  ["approve", (request) => request.approve],
  ["on_unknown", (request) => request.onUnknown],
  ["notify", (request) => request.notifyEmail],
  ["callback", (request) => request.callback],
  // Two creates with the same delay have different times.
  ["run_at", ({ extras }) => (extras.delaySeconds === undefined ? extras.runAt : undefined)],
  ["delay_seconds", ({ extras }) => extras.delaySeconds],
  ["expires_at", ({ expiresAt }) => expiresAt?.getTime()],
  ["timeout_ms", ({ extras }) => extras.timeoutMs],
  ["backoff", ({ extras }) => JSON.stringify(extras.backoff)],
  ["give_up_on", ({ extras }) => JSON.stringify(extras.giveUpOn)],
  ["credential", ({ extras }) => extras.credential?.id],
];

/** Header names are compared without case and order, as HTTP does. */
function headersText(headers: Action["headers"]): string {
  const pairs = Object.entries(headers ?? {}).map(([name, value]) => `${name.toLowerCase()}:${value}`);
  return pairs.toSorted().join("\n");
}

/** SHA-256 of a text, hex. Passed in, since the pure modules import no cryptography. */
export type HashText = (text: string) => string;

/** Prefix of digests that cover the callback. Digests of earlier versions have no prefix and do not cover it. */
const WITH_CALLBACK = "2:";

/** Prefix of digests that also cover the kind of body. Bodies that are JSON objects have no such digests. */
const WITH_KIND = "3:";

/** Prefix of digests that also cover further members of the extras: see `covered`. Requests without those have none. */
const WITH_MEMBERS = "4:";

/**
 * The digest of what is approved: method, URL, headers, body and callback; unless the body is a JSON object, its kind and
 * `Content-Type`; and members of the extras that only another version knows. It covers nothing that changes between attempts. A
 * version that adds such a member must keep covering it in this way, so that all versions agree on what was approved.
 */
export function requestDigest(request: ActionRequest, hashText: HashText): string {
  const { callback, extras } = request;
  const parts = [...sentParts(request), callback];
  const members = covered(extras);
  if (members.length > 0) {
    return (
      WITH_MEMBERS + hashText(JSON.stringify([...parts, extras.bodyKind ?? null, bodyContentType(request), members]))
    );
  }
  if (extras.bodyKind === undefined) return WITH_CALLBACK + hashText(JSON.stringify(parts));
  return WITH_KIND + hashText(JSON.stringify([...parts, extras.bodyKind, bodyContentType(request)]));
}

/** The covered members of the extras. For example, version 0.2 doesn't know `credential`, and so covers it as unknown. */
function covered(extras: Extras): readonly (readonly [name: string, value: unknown])[] {
  const { credential } = extras;
  const members = { ...unknownExtras(extras), ...(credential !== undefined && { credential }) };
  return Object.entries(members).toSorted(([one], [other]) => (one < other ? -1 : 1));
}

function sentParts({ method, url, headers, body }: ActionRequest): readonly unknown[] {
  return [method, url, Object.entries(headers ?? {}), body];
}

/**
 * Whether an action may be sent as it is stored: an approval holds only for the bytes that were approved.
 */
export function matchesApproval(action: Action, hashText: HashText): boolean {
  if (!action.approve) return true;
  const { approvedDigest, extras } = action;
  const isPlain = extras.bodyKind === undefined && covered(extras).length === 0;
  const isOfFirst = approvedDigest !== null && !/^\d:/.test(approvedDigest) && isPlain;
  // The digest of earlier versions, so that actions approved by them can still be sent.
  const digest = isOfFirst ? hashText(JSON.stringify(sentParts(action))) : requestDigest(action, hashText);
  return digest === approvedDigest;
}
