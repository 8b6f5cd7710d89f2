import type { KeyKind } from "../../src/core/dedupe.ts";
import type { Lock } from "./sql.ts";

/**
 * Locks for writes that several processes must not run at the same time. A statement sees only what was committed before it, so
 * two writes that look for a row and then add it would both find none. A unique index or a revision needs no lock. A commit takes
 * all its locks before its first statement.
 */

const STOPS = "stops";

/** For taking or freeing a dedupe or idempotency key. */
export const keyLock = (accountId: string, kind: KeyKind, key: string) => exclusive(`${kind} ${accountId} ${key}`);

/** For adding to the counts of a key: held actions, actions of a day, rejections, repeated requests. */
export const limitLock = (accountId: string, keyId: string) => exclusive(`limits ${accountId} ${keyId}`);

/** For sending a mail: those of the last hour are counted by recipient and by account. */
export const mailLocks = (recipient: string, accountId: string) => [
  exclusive(`mail to ${recipient}`),
  exclusive(`mail of ${accountId}`),
];

/** Shared by claims, so that every claim sees the pauses that were committed before it. */
export const pauseLocks = (accountIds: Iterable<string>) => [
  shared(STOPS),
  ...Array.from(accountIds, (accountId) => shared(pauseName(accountId))),
];

/** For pausing actions of an account. */
export const pauseLock = (accountId: string) => exclusive(pauseName(accountId));

/** For allowing an account, or stopping those that were not allowed, as adding a key with a hold does. */
export const stopLock = exclusive(STOPS);

/** Shared by sign-ups that are open only until a key has a hold. */
export const signUpLock = shared(STOPS);

/**
 * For rare changes of what an account has a limited number of: people, settings, credentials, channels, bulk jobs. Also for
 * adding a grant, which ends with its maker's right to approve, and for revoking a key.
 */
export const accountLock = (accountId: string) => exclusive(`account ${accountId}`);

/** Shared by creates, so that every create is decided by the rules that were committed before it. */
export const createLock = (accountId: string) => shared(rulesName(accountId));

/** For writing the rules of an account. */
export const rulesLock = (accountId: string) => exclusive(rulesName(accountId));

/** For ending a grant, or creating an action by it, which counts its calls. */
export function grantLock(id: string): Lock {
  return exclusive(`grant ${id}`);
}

/** For adding to a count of a rule, or giving back what was counted. */
export const countLock = (ruleId: string, subject: string) => exclusive(`count ${ruleId} ${subject}`);

/** For adding to an OAuth connection, ending it, or adding to what is counted of an account or of all. */
export const oauthLock = (of: string) => exclusive(`oauth ${of}`);

/** For letting a person into an account or removing them: whoever is in no account is forgotten. */
export const personLock = (personId: string) => exclusive(`person ${personId}`);

/** For creating the first account. */
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
