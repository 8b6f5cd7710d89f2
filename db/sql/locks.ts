import type { KeyKind } from "../../src/core/dedupe.ts";
import type { Lock } from "./sql.ts";

/**
 * What writes of several processes must not do at the same time. A statement sees only what was committed before it, so
 * two that look for a row and then add it would both find none; a unique row or a revision needs no lock. They are taken
 * before the first statement of a commit.
 */

const STOPS = "stops";

/** Whoever takes or frees a dedupe or idempotency key. */
export function keyLock(accountId: string, kind: KeyKind, key: string): Lock {
  return exclusive(`${kind} ${accountId} ${key}`);
}

/** Whoever adds to the held actions of a key, which are counted. */
export function heldLock(accountId: string, keyId: string): Lock {
  return exclusive(`held ${accountId} ${keyId}`);
}

/** Whoever creates or retries with a key that has a daily limit: both are counted. */
export function budgetLock(keyId: string): Lock {
  return exclusive(`budget ${keyId}`);
}

/** Whoever adds to the rejections and repeated requests of a key, which are counted. */
export function rejectionLock(accountId: string, keyId: string): Lock {
  return exclusive(`rejections ${accountId} ${keyId}`);
}

/** Whoever sends a mail to a recipient, or of an account: those of the last hour are counted. */
export function mailLocks(recipient: string, accountId: string): readonly Lock[] {
  return [exclusive(`mail to ${recipient}`), exclusive(`mail of ${accountId}`)];
}

/** Claims share it: a pause that is committed is seen by every later claim. */
export function pauseLocks(accountIds: Iterable<string>): readonly Lock[] {
  return [shared(STOPS), ...Array.from(accountIds, (accountId) => shared(pauseName(accountId)))];
}

/** Whoever pauses actions of an account. */
export function pauseLock(accountId: string): Lock {
  return exclusive(pauseName(accountId));
}

/** Whoever stops accounts that were not allowed. */
export const stopLock = exclusive(STOPS);

/** Whoever changes what an account has set of one kind, which is counted. */
export function settingsLock(kind: string, accountId: string): Lock {
  return exclusive(`${kind} ${accountId}`);
}

/** Creates share it: rules that are committed decide on every later one. */
export const createLock = shared("rules");

/** Whoever writes rules of accounts. */
export const rulesLock = exclusive("rules");

/** Whoever creates by a grant, which counts its calls, or ends it. */
export function grantLock(id: string): Lock {
  return exclusive(`grant ${id}`);
}

/** Whoever adds to the channels of an account, which are counted. */
export function channelLock(accountId: string): Lock {
  return exclusive(`channels ${accountId}`);
}

/** Whoever adds to the bulk jobs of an account, which are counted. */
export function bulkLock(accountId: string): Lock {
  return exclusive(`bulk jobs ${accountId}`);
}

/** Whoever lets the first person into an account. */
export function firstPersonLock(accountId: string): Lock {
  return exclusive(`first person ${accountId}`);
}

/** Whoever changes who is in an account, or who owns it. */
export function teamLock(accountId: string): Lock {
  return exclusive(`team ${accountId}`);
}

/** Whoever lets a person into an account, or removes them: who is in none is forgotten. */
export function personLock(personId: string): Lock {
  return exclusive(`person ${personId}`);
}

/** Whoever creates the first account. */
export const firstStartLock = exclusive("first start");

/** Sign-ups that end with the first hold of a key share it. */
export const signUpLock = shared("holds");

/** Whoever adds a key with a hold. */
export const holdLock = exclusive("holds");

function pauseName(accountId: string): string {
  return `pause ${accountId}`;
}

function exclusive(name: string): Lock {
  return { name, mode: "exclusive" };
}

function shared(name: string): Lock {
  return { name, mode: "shared" };
}
