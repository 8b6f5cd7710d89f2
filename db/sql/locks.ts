/**
 * Locks for writes that several processes must not run at the same time. A statement sees only what was committed before it, so
 * two writes that look for a row and then add it would both find none. Writes that a unique index or a revision guards need no
 * lock. A commit takes all its locks before its first statement.
 */
import type { KeyKind } from "../../src/core/dedupe.ts";

/** A lock held until the commit. Shared locks don't exclude each other. SQLite ignores locks: a file has one writer. */
export interface Lock {
  readonly name: string;
  readonly mode: "exclusive" | "shared";
}

const STOPS = "stops";

/** Take it to use or free a dedupe or idempotency key. */
export const keyLock = (accountId: string, kind: KeyKind, key: string) => exclusive(`${kind} ${accountId} ${key}`);

/** Take it to add to the counts of a key: held actions, actions of a day, rejections, repeated requests. */
export const limitLock = (accountId: string, keyId: string) => exclusive(`limits ${accountId} ${keyId}`);

/** Take them to send a mail: mails of the last hour are counted by recipient and by account. */
export const mailLocks = (recipient: string, accountId: string) => [
  exclusive(`mail to ${recipient}`),
  exclusive(`mail of ${accountId}`),
];

/** Claims share these, so that every claim sees the pauses committed before it. */
export const pauseLocks = (accountIds: Iterable<string>) => [
  shared(STOPS),
  ...Array.from(accountIds, (accountId) => shared(pauseName(accountId))),
];

/** Take it to pause actions of an account. */
export const pauseLock = (accountId: string) => exclusive(pauseName(accountId));

/** Take it to allow an account, or to stop those that were not allowed, as adding a key with a hold does. */
export const stopLock = exclusive(STOPS);

/** Sign-ups that are open only until a key has a hold share this. */
export const signUpLock = shared(STOPS);

/**
 * Take it to add something of which an account may have only so many: people, settings, credentials, channels, bulk jobs. Also
 * to add a grant, which ends with its maker's right to approve, and to revoke a key.
 */
export const accountLock = (accountId: string) => exclusive(`account ${accountId}`);

/**
 * Creates share this, so that every create is decided by the rules committed before it, and by nobody's grant who lost the right. So do
 * decisions and ends of pauses, so that none is of somebody who has left, or of a revoked key.
 */
export const createLock = (accountId: string) => shared(rulesName(accountId));

/** Take it to write the rules of an account, to revoke a key, and to remove a person or change their role. */
export const rulesLock = (accountId: string) => exclusive(rulesName(accountId));

/** Take it to end a grant, or to create an action by it, which counts its calls. */
export function grantLock(id: string): Lock {
  return exclusive(`grant ${id}`);
}

/** Take it to add to a count of a rule, or to give back what was counted. */
export const countLock = (ruleId: string, subject: string) => exclusive(`count ${ruleId} ${subject}`);

/** Take it to add to an OAuth connection, to end it, or to add what is counted per account or for all accounts. */
export const oauthLock = (of: string) => exclusive(`oauth ${of}`);

/** Take it to add a person to an account or remove them: a person in no account is deleted. */
export const personLock = (personId: string) => exclusive(`person ${personId}`);

/** Take it to create the first account. */
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
