import type { Clock } from "../runtime/clock.ts";
import type { Ids } from "../runtime/ids.ts";
import type { Secrets } from "../crypto/types.ts";
import type { AccountStore, ApiKey, Revocation, PeopleStore } from "../../db/account-store.ts";
import type { Authenticate } from "./authenticate.ts";
import type { SignUpGate } from "./sign-up-gate.ts";
import { type Audited, auditOf, auditOfSystem } from "../audit/audit.ts";
import { authorize, type Caller, hasScope, type Hold, isWeakerHold, type KeyScope, type Role } from "./roles.ts";
import { DomainError, type Issue } from "../api/domain-error.ts";
import { LIVE_KEYS_MAX, KEYS_LISTED_MAX } from "../config/limits.ts";
import type { UnfinishedOnRevoke } from "../pauses/pause.ts";

interface KeyServiceDeps {
  readonly accounts: Pick<AccountStore, "addKey" | "findKey" | "keys" | "revokeKey">;
  readonly secrets: Pick<Secrets, "hash" | "newApiKey">;
  readonly ids: Pick<Ids, "key">;
  readonly clock: Pick<Clock, "now">;
  readonly pauseService: PauseRevoked;
  readonly signUpGate: Pick<SignUpGate, "closed" | "stopFor">;
  /** Lets a revoked key in no more, and ends what came in by it and waits. */
  readonly forget: Authenticate["forget"];
}

/** Every use case of keys, all of them for owners; what REST and the pages call. */
export type KeyService = ReturnType<typeof createKeyService>;

/** Puts the verbs on one desk. */
export function createKeyService(deps: KeyServiceDeps) {
  return {
    list: createListKeys(deps.accounts),
    create: createCreateKey(deps),
    revoke: createRevokeKey(deps),
  };
}

interface CreateKeyDeps {
  readonly accounts: Pick<AccountStore, "addKey" | "findKey" | "keys">;
  readonly secrets: Pick<Secrets, "hash" | "newApiKey">;
  readonly ids: Pick<Ids, "key">;
  readonly clock: Pick<Clock, "now">;
  readonly signUpGate: Pick<SignUpGate, "closed" | "stopFor">;
}

interface KeyRequest {
  readonly name: string;
  readonly role: Role;
  /** Null: that of the key that it replaces, or none. */
  readonly hold: Hold | null;
  /** Null: that of the key that it replaces, or its own actions alone. */
  readonly scope: KeyScope | null;
  /** Id of the key whose actions are handed over to it. */
  readonly replaces: string | null;
  /** Its hold may be weaker than that of the key that it replaces. */
  readonly isWeakerMeant: boolean;
}

/** A new key: what is kept of it, and the key in clear, which is handed out this once. */
interface NewKey {
  readonly row: ApiKey;
  readonly key: string;
  /** It is the first of the first account with a hold, and nobody may sign up any more. */
  readonly closesSignUps: boolean;
}

/**
 * Makes a key. One that replaces another acts on what that created: nothing is copied, since what a key acts on
 * is found by going from key to key. Throws `validation_error`, and `too_many_keys` when the account has its fill of live
 * ones.
 */
function createCreateKey({ accounts, secrets, ids, clock, signUpGate }: CreateKeyDeps) {
  return async (caller: Caller, request: KeyRequest): Promise<NewKey> => {
    authorize(caller, "manage");
    const { accountId } = caller;
    const { name, role, replaces } = request;
    const before = replaces === null ? null : await accounts.findKey(accountId, replaces);
    refuseAny(issuesOf(request, before));
    // Asked before the write and not in it: those that race pass the bound by their number, and the list has room for it.
    const live = (await accounts.keys(accountId, LIVE_KEYS_MAX)).filter(({ revokedAt }) => revokedAt === null);
    if (live.length >= LIVE_KEYS_MAX) throw tooMany();
    const key = secrets.newApiKey();
    const hold = request.hold ?? before?.hold ?? "none";
    const scope = hasScope(role) ? (request.scope ?? before?.scope ?? "own") : "own";
    const row = keyRow({ secrets, ids }, { accountId, key, name, role, hold, scope, replaces, now: clock.now() });
    const stop = await signUpGate.stopFor(caller, hold, row.id);
    await accounts.addKey(row, auditOf(caller, keyCreated(row), row.createdAt), stop ?? undefined);
    if (stop !== null) await signUpGate.closed();
    return { row, key, closesSignUps: stop !== null };
  };
}

function issuesOf({ role, hold, scope, replaces, isWeakerMeant }: KeyRequest, before: ApiKey | null): readonly Issue[] {
  const issues: Issue[] = [];
  if (scope !== null && !hasScope(role)) {
    issues.push({
      field: "scope",
      message: `Only keys with the role agent have one; leave it out with the role ${role}.`,
    });
  }
  if (replaces !== null && before === null) {
    issues.push({ field: "replaces", message: "This account has no key of this id." });
  }
  if (before !== null && hold !== null && isWeakerHold(hold, before.hold) && !isWeakerMeant) {
    const message = `Is weaker than that of the key that it replaces (${before.hold}). Give weaker_hold: true if that is meant, or leave hold out.`;
    issues.push({ field: "hold", message });
  }
  return issues;
}

function refuseAny(issues: readonly Issue[]): void {
  if (issues.length === 0) return;
  throw new DomainError("validation_error", "The request has fields that are not valid.", issues);
}

function tooMany(): DomainError {
  return new DomainError("too_many_keys", `This account has ${LIVE_KEYS_MAX} live keys; revoke one of them first.`);
}

/** What the audit log tells of a new key. */
export function keyCreated({ id, name, role, hold, scope, replaces, last4 }: ApiKey): Audited {
  const more = { ...(hasScope(role) ? { scope } : {}), ...(replaces === null ? {} : { replaces }) };
  return { kind: "key_created", subject: id, detail: { name, role, hold, ...more, last4 } };
}

/** The account's keys, live ones first. The keys themselves are nowhere to be read. */
function createListKeys(accounts: Pick<AccountStore, "keys">) {
  return async (caller: Caller): Promise<readonly ApiKey[]> => {
    authorize(caller, "manage");
    return accounts.keys(caller.accountId, KEYS_LISTED_MAX);
  };
}

/** What becomes of the actions of a key that is revoked. */
interface PauseRevoked {
  forRevoked(caller: Caller, keyId: string, cancels: boolean): NonNullable<Revocation["pause"]>;
  whileRevoking<T>(caller: Caller, keyId: string, revoke: () => Promise<T>): Promise<T>;
  /** Returns before anything is cancelled. */
  beginCancelRest(): void;
}

interface RevokeKeyDeps {
  readonly accounts: Pick<AccountStore, "revokeKey">;
  readonly pauseService: PauseRevoked;
  readonly clock: Pick<Clock, "now">;
  readonly forget: Authenticate["forget"];
}

/**
 * Revokes a key of the caller's account, for good; twice is the same as once. Throws `not_found` for any other. The caller's
 * own key is no exception, and neither is the account's last: one that leaked has to go at once. `outgate new-owner-key`
 * makes another on the server's machine, and so does a new `BOOTSTRAP_API_KEY`; a revoked one stays revoked. What the key
 * created goes on unless `unfinished` says otherwise: paused or cancelled, nothing of it is claimed after this resolves.
 */
function createRevokeKey({ accounts, pauseService, clock, forget }: RevokeKeyDeps) {
  return async (caller: Caller, id: string, unfinished: UnfinishedOnRevoke = "keep"): Promise<void> => {
    authorize(caller, "manage");
    const { accountId } = caller;
    const now = clock.now();
    const audit = auditOf(caller, { kind: "key_revoked", subject: id, detail: { unfinished } }, now);
    const pause = unfinished === "keep" ? {} : { pause: pauseService.forRevoked(caller, id, unfinished === "cancel") };
    const write = () => accounts.revokeKey(accountId, id, now, { audit, ...pause });
    const revoked = await (unfinished === "keep" ? write() : pauseService.whileRevoking(caller, id, write));
    if (revoked === null) throw new DomainError("not_found", "There is no such key.");
    // After the write: whoever asks the store from now on is told that it is revoked.
    forget(revoked.hash);
    // However much it is, nothing of it is sent any more: nobody has to wait for it.
    if (unfinished === "cancel") pauseService.beginCancelRest();
  };
}

interface NewKeyRow {
  readonly accountId: string;
  /** In clear; the row holds its hash and its last four characters. */
  readonly key: string;
  readonly name: string;
  readonly role: Role;
  readonly hold: Hold;
  readonly scope?: KeyScope;
  readonly replaces?: string | null;
  readonly now: Date;
}

/** The row of a new key. */
export function keyRow(
  { secrets, ids }: { readonly secrets: Pick<Secrets, "hash">; readonly ids: Pick<Ids, "key"> },
  { key, now, scope = "own", replaces = null, ...rest }: NewKeyRow,
): ApiKey {
  return {
    ...rest,
    scope,
    replaces,
    id: ids.key(),
    hash: secrets.hash(key),
    last4: key.slice(-4),
    createdAt: now,
    lastUsedAt: null,
    revokedAt: null,
  };
}

interface NewOwnerKeyDeps {
  readonly accounts: Pick<AccountStore, "addKey" | "first">;
  readonly people: Pick<PeopleStore, "find">;
  readonly secrets: Pick<Secrets, "hash" | "newApiKey">;
  readonly ids: Pick<Ids, "key">;
  readonly clock: Pick<Clock, "now">;
}

/**
 * Makes another owner key for whoever holds the machine and has lost theirs: of the account of the person with this
 * address, or of the first account. The other keys stay as they are, and however many there are: a lost one is revoked
 * with this one. Null: there is no such account.
 */
export function createNewOwnerKey({ accounts, people, secrets, ids, clock }: NewOwnerKeyDeps) {
  return async (email: string | null): Promise<string | null> => {
    const accountId = email === null ? (await accounts.first())?.id : (await people.find(email))?.accountId;
    if (accountId === undefined) return null;
    const key = secrets.newApiKey();
    const row = { accountId, key, name: "owner", role: "owner", hold: "none", now: clock.now() } as const;
    const made = keyRow({ secrets, ids }, row);
    await accounts.addKey(made, auditOfSystem(accountId, keyCreated(made), made.createdAt));
    return key;
  };
}
