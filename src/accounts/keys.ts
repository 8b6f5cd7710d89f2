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
  /** Drops a revoked key from the cache and ends its open streams and waits. */
  readonly forget: Authenticate["forget"];
}

/** All use cases of keys, for owners; REST and pages call it. */
export type KeyService = ReturnType<typeof createKeyService>;

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
  /** Null: the hold of the replaced key, or none. */
  readonly hold: Hold | null;
  /** Null: the scope of the replaced key, or `own`. */
  readonly scope: KeyScope | null;
  /** Id of the key that it replaces: the new key acts on its actions too. */
  readonly replaces: string | null;
  /** Confirms a hold that is weaker than that of the replaced key. */
  readonly isWeakerMeant: boolean;
}

/** A new key: its row, and the key in clear text, which is shown only once. */
interface NewKey {
  readonly row: ApiKey;
  readonly key: string;
  /** It is the first key with a hold in the first account, which closes sign-ups. */
  readonly closesSignUps: boolean;
}

/**
 * Creates a key. A key that replaces another acts on the actions of that one too; these are found by following `replaces`
 * from key to key. Throws `validation_error`, and `too_many_keys` if the account has `LIVE_KEYS_MAX` live keys.
 */
function createCreateKey({ accounts, secrets, ids, clock, signUpGate }: CreateKeyDeps) {
  return async (caller: Caller, request: KeyRequest): Promise<NewKey> => {
    authorize(caller, "manage");
    const { accountId } = caller;
    const { name, role, replaces } = request;
    const before = replaces === null ? null : await accounts.findKey(accountId, replaces);
    refuseAny(issuesOf(request, before));
    // Checked before the write and not in it: concurrent creates may exceed the bound by their number, which is harmless.
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
      message: `Only keys with the role agent have a scope; leave it out with the role ${role}.`,
    });
  }
  if (replaces !== null && before === null) {
    issues.push({ field: "replaces", message: "This account has no key with this id." });
  }
  if (before !== null && hold !== null && isWeakerHold(hold, before.hold) && !isWeakerMeant) {
    const message = `Is weaker than the hold of the key that it replaces (${before.hold}). Set weaker_hold: true to confirm this, or leave hold out.`;
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

/** The audit entry of a new key. */
export function keyCreated({ id, name, role, hold, scope, replaces, last4 }: ApiKey): Audited {
  const more = { ...(hasScope(role) ? { scope } : {}), ...(replaces === null ? {} : { replaces }) };
  return { kind: "key_created", subject: id, detail: { name, role, hold, ...more, last4 } };
}

/** The account's keys, live ones first, without the keys themselves. */
function createListKeys(accounts: Pick<AccountStore, "keys">) {
  return async (caller: Caller): Promise<readonly ApiKey[]> => {
    authorize(caller, "manage");
    return accounts.keys(caller.accountId, KEYS_LISTED_MAX);
  };
}

/** The part of the pause service that revocation uses. */
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
 * Revokes a key of the caller's account for good. Idempotent. Throws `not_found`. Callers may revoke their own key and the
 * account's last one, so that a leaked key can always be revoked; `outgate new-owner-key` or a new `BOOTSTRAP_API_KEY` gives
 * access again. `unfinished` decides on the key's actions: with `pause` and `cancel` none is claimed after this resolves.
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
    // After the write, so that a read that starts now finds the key revoked.
    forget(revoked.hash);
    // In the background: the pause already keeps the actions from being sent.
    if (unfinished === "cancel") pauseService.beginCancelRest();
  };
}

interface NewKeyRow {
  readonly accountId: string;
  /** In clear text; the row has its hash and its last four characters. */
  readonly key: string;
  readonly name: string;
  readonly role: Role;
  readonly hold: Hold;
  readonly scope?: KeyScope;
  readonly replaces?: string | null;
  readonly now: Date;
}

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
 * Creates an owner key for an operator who has lost theirs: in the account of the person with this address, or in the first
 * account. Ignores `LIVE_KEYS_MAX`. Null: there is no such account.
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
