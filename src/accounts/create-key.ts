import { type Audited, auditOf } from "../domain/audit.ts";
import { authorize, type Caller } from "../domain/caller.ts";
import { DomainError } from "../domain/errors.ts";
import { LIVE_KEYS_MAX } from "../domain/limits.ts";
import type { Hold, Role } from "../domain/roles.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import type { Secrets } from "../ports/secrets.ts";
import type { AccountStore, ApiKey } from "../ports/accounts.ts";
import { keyRow } from "./key-row.ts";

export interface CreateKeyDeps {
  readonly accounts: Pick<AccountStore, "addKey" | "keys">;
  readonly secrets: Pick<Secrets, "hash" | "newApiKey">;
  readonly ids: Pick<Ids, "key">;
  readonly clock: Pick<Clock, "now">;
}

export interface KeyRequest {
  readonly name: string;
  readonly role: Role;
  readonly hold: Hold;
}

/** A new key: what is kept of it, and the key in clear, which is handed out this once. */
export interface NewKey {
  readonly row: ApiKey;
  readonly key: string;
}

/** Makes a key (decisions 1). Throws `too_many_keys` when the account has its fill of live ones. */
export function createCreateKey({ accounts, secrets, ids, clock }: CreateKeyDeps) {
  return async (caller: Caller, request: KeyRequest): Promise<NewKey> => {
    authorize(caller, "manage");
    const { accountId } = caller;
    // Asked before the write and not in it: those that race pass the bound by their number, and the list has room for it.
    const live = (await accounts.keys(accountId, LIVE_KEYS_MAX)).filter(({ revokedAt }) => revokedAt === null);
    if (live.length >= LIVE_KEYS_MAX) throw tooMany();
    const key = secrets.newApiKey();
    const row = keyRow({ secrets, ids }, { ...request, accountId, key, now: clock.now() });
    await accounts.addKey(row, auditOf(caller, keyCreated(row), row.createdAt));
    return { row, key };
  };
}

function tooMany(): DomainError {
  return new DomainError("too_many_keys", `This account has ${LIVE_KEYS_MAX} live keys; revoke one of them first.`);
}

/** What the audit log tells of a new key. */
export function keyCreated({ id, name, role, hold, last4 }: ApiKey): Audited {
  return { kind: "key_created", subject: id, detail: { name, role, hold, last4 } };
}
