import type { Caller, Role } from "../../src/core/roles.ts";
import { DomainError } from "../../src/core/domain-error.ts";
import { systemIds } from "../../src/core/ids.ts";
import type { Secrets } from "../../src/crypto/secrets.ts";
import type { Store } from "../../src/core/store.ts";
import { anAccount, anApiKey } from "../support/factory.ts";

/** An owner of an account of its own, beside the first one of the store. */
export async function anotherOwner({ store, secrets }: { store: Store; secrets: Secrets }): Promise<Caller> {
  const id = systemIds.account();
  const key = anApiKey({ accountId: id, name: "other" });
  const place = { table: "accounts", row: id, column: "sealed_root_secret" };
  await store.accounts.create(anAccount({ id, sealedRootSecret: secrets.seal(secrets.newRootSecret(), place) }), [key]);
  return { accountId: id, keyId: key.id, keyName: "other", role: "owner", hold: "none", actor: "key:other" };
}

/** The same account by a key of another role. */
export function as(role: Role, owner: Caller): Caller {
  return { ...owner, keyId: `key_${role}`, keyName: role, role, actor: `key:${role}` };
}

/** What a use case was refused with; a refusal that is none of ours fails the test. */
export async function refusalOf(work: Promise<unknown>): Promise<{ code: string; message: string } | null> {
  try {
    await work;
    return null;
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    return { code: error.code, message: error.message };
  }
}
