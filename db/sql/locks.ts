import type { KeyKind } from "../../src/core/dedupe.ts";
import type { Lock } from "./sql.ts";

/**
 * What writes of several processes must not do at the same time. A statement sees only what was committed before it, so
 * two that look for a row and then add it would both find none; a unique row or a revision needs no lock. They are taken
 * before the first statement of a commit.
 */

const STOPS = "stops";

/** Whoever takes or frees a dedupe or idempotency key. */
export const keyLock = (accountId: string, kind: KeyKind, key: string) => exclusive(`${kind} ${accountId} ${key}`);

/** Whoever adds to what is counted for a key: held actions, the actions of a day, rejections and repeated requests. */
export const limitLock = (accountId: string, keyId: string) => exclusive(`limits ${accountId} ${keyId}`);

/** Whoever sends a mail to a recipient, or of an account: those of the last hour are counted. */
export const mailLocks = (recipient: string, accountId: string) => [
  exclusive(`mail to ${recipient}`),
  exclusive(`mail of ${accountId}`),
];

/** Claims share it: a pause that is committed is seen by every later claim. */
export const pauseLocks = (accountIds: Iterable<string>) => [
  shared(STOPS),
  ...Array.from(accountIds, (accountId) => shared(pauseName(accountId))),
];

/** Whoever pauses actions of an account. */
export const pauseLock = (accountId: string) => exclusive(pauseName(accountId));

/** Whoever stops accounts that were not allowed, as by adding a key with a hold. */
export const stopLock = exclusive(STOPS);

/** Sign-ups that end with the first hold of a key share it. */
export const signUpLock = shared(STOPS);

/** Whoever changes what an account has and what is counted: people, settings, credentials, channels, bulk jobs. They are rare. */
export const accountLock = (accountId: string) => exclusive(`account ${accountId}`);

/** Creates of an account share it: its rules that are committed decide on every later one. */
export const createLock = (accountId: string) => shared(rulesName(accountId));

/** Whoever writes the rules of an account. */
export const rulesLock = (accountId: string) => exclusive(rulesName(accountId));

/** Whoever creates by a grant, which counts its calls, or ends it. */
export function grantLock(id: string): Lock {
  return exclusive(`grant ${id}`);
}

/** Whoever adds to a count of a rule, or gives back what was counted. */
export const countLock = (ruleId: string, subject: string) => exclusive(`count ${ruleId} ${subject}`);

/** Whoever adds to a connection of OAuth or ends it, or adds to what is counted for an account, or for all. */
export const oauthLock = (of: string) => exclusive(`oauth ${of}`);

/** Whoever lets a person into an account, or removes them: who is in none is forgotten. */
export const personLock = (personId: string) => exclusive(`person ${personId}`);

/** Whoever creates the first account. */
export const firstStartLock = exclusive("first start");

function pauseName(accountId: string): string {
  return `pause ${accountId}`;
}

function rulesName(accountId: string): string {
  return `rules ${accountId}`;
}

function exclusive(name: string): Lock {
  return { name, mode: "exclusive" };
}

function shared(name: string): Lock {
  return { name, mode: "shared" };
}
