import type { Action, ActionRequest } from "./action.ts";

/** SHA-256 of a text, hex. The law has no cryptography of its own. */
export type HashOf = (text: string) => string;

/** Names exactly what is sent: method, URL, headers and body, and nothing that changes from attempt to attempt. */
export function requestDigest({ method, url, headers, body }: ActionRequest, hashOf: HashOf): string {
  return hashOf(JSON.stringify([method, url, Object.entries(headers ?? {}), body]));
}

/**
 * Whether an action may be sent as it is: a person's yes holds for the bytes that were approved and no others
 * (hostile 7). Of what needed no yes only that is looked at which is sealed.
 */
export function isAsApproved(action: Action, hashOf: HashOf): boolean {
  if (action.isAltered === true) return false;
  return !action.approve || requestDigest(action, hashOf) === action.approvedDigest;
}
