import type { Action, ActionRequest } from "./action.ts";

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
