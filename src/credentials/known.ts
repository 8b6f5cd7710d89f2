import { AccountCache } from "../core/account-settings.ts";
import type { Credential, CredentialStore } from "../core/credential.ts";
import { CREDENTIAL_ALERT_MS } from "../core/limits.ts";
import type { Caller } from "../core/roles.ts";

/** The credentials of all accounts, without their secrets, for creates. A send asks the store again. */
export class KnownCredentials extends AccountCache<Credential, ReadonlyMap<string, Credential>> {
  constructor(store: Pick<CredentialStore, "list" | "version">) {
    super(store, (rows) => new Map(rows.map((row) => [row.name, row])));
  }

  /** Finds a credential by name. Null: none is known here. */
  readonly find = (accountId: string, name: string): Credential | null => this.viewOf(accountId)?.get(name) ?? null;

  /** The credentials of an account, by name. */
  readonly of = (accountId: string): readonly Credential[] => [...(this.viewOf(accountId)?.values() ?? [])];
}

/** Owners may use every credential; agents only those that list their key. Others create nothing. */
export function mayUse({ role, keyId }: Pick<Caller, "role" | "keyId">, { keys }: Pick<Credential, "keys">): boolean {
  return role === "owner" || (role === "agent" && keyId !== null && keys.includes(keyId));
}

/** Whether owners should renew it, because its end is near. */
export function expiresSoon(expiresAt: Date, now: Date): boolean {
  const leftMs = expiresAt.getTime() - now.getTime();
  return leftMs > 0 && leftMs <= CREDENTIAL_ALERT_MS;
}
