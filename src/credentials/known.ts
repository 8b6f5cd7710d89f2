import { AccountCache } from "../core/account-settings.ts";
import type { Credential, CredentialStore } from "../core/credential.ts";
import { CREDENTIAL_ALERT_MS } from "../core/limits.ts";
import type { Caller } from "../core/roles.ts";

/** The credentials of all accounts without their secrets, for creates. Whoever sends one asks the store again. */
export class KnownCredentials extends AccountCache<Credential, ReadonlyMap<string, Credential>> {
  constructor(store: Pick<CredentialStore, "list" | "version">) {
    super(store, (rows) => new Map(rows.map((row) => [row.name, row])));
  }

  /** Null: there is none of this name, as far as is known. */
  readonly find = (accountId: string, name: string): Credential | null => this.viewOf(accountId)?.get(name) ?? null;

  /** In the order of their names. */
  readonly of = (accountId: string): readonly Credential[] => [...(this.viewOf(accountId)?.values() ?? [])];
}

/** Owners may use every credential, and agents those that list their key. Others create nothing. */
export function mayUse({ role, keyId }: Pick<Caller, "role" | "keyId">, { keys }: Pick<Credential, "keys">): boolean {
  return role === "owner" || (role === "agent" && keyId !== null && keys.includes(keyId));
}

/** Whether owners should renew it: its end is near, and has not come. */
export function expiresSoon(expiresAt: Date, now: Date): boolean {
  const leftMs = expiresAt.getTime() - now.getTime();
  return leftMs > 0 && leftMs <= CREDENTIAL_ALERT_MS;
}

/** Whether it is refused from some time on that has come. */
export function hasExpired({ expiresAt }: Pick<Credential, "expiresAt">, now: Date): boolean {
  return expiresAt !== null && expiresAt <= now;
}
