import { type Audited, auditOf } from "../domain/audit.ts";
import { authorize, type Caller } from "../domain/caller.ts";
import { DomainError, type Issue } from "../domain/errors.ts";
import { LIVE_KEYS_MAX } from "../domain/limits.ts";
import { hasScope, type Hold, isWeakerHold, type KeyScope, type Role } from "../domain/roles.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import type { Secrets } from "../ports/secrets.ts";
import type { AccountStore, ApiKey } from "../ports/accounts.ts";
import { keyRow } from "./key-row.ts";
import type { SignUpGate } from "./sign-up-gate.ts";

export interface CreateKeyDeps {
  readonly accounts: Pick<AccountStore, "addKey" | "findKey" | "keys">;
  readonly secrets: Pick<Secrets, "hash" | "newApiKey">;
  readonly ids: Pick<Ids, "key">;
  readonly clock: Pick<Clock, "now">;
  readonly signUpGate: Pick<SignUpGate, "closed" | "stopFor">;
}

export interface KeyRequest {
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
export interface NewKey {
  readonly row: ApiKey;
  readonly key: string;
  /** It is the first of the first account with a hold, and nobody may sign up any more. */
  readonly closesSignUps: boolean;
}

/**
 * Makes a key (decisions 1). One that replaces another acts on what that created: nothing is copied, since what a key acts on
 * is found by going from key to key. Throws `validation_error`, and `too_many_keys` when the account has its fill of live
 * ones.
 */
export function createCreateKey({ accounts, secrets, ids, clock, signUpGate }: CreateKeyDeps) {
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
