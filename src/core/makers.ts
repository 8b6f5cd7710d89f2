import type { ApiKey } from "./account-store.ts";
import type { Made } from "./roles.ts";

/**
 * Whether its maker may still manage the account. `managers`: the ids of those who may (`TeamStore.managers`). A person without
 * an id had left before ids were stored. Of other makers without an id nothing is known, so they pass.
 */
export function isByManager({ createdBy, createdById }: Made, managers: ReadonlySet<string>): boolean {
  if (createdById !== null) return managers.has(createdById);
  return createdBy?.startsWith("user:") !== true;
}

/** The live keys whose makers may no longer manage the account: people who left or were lowered, owner keys that have ended. */
export function keysOfFormer<Key extends Made & Pick<ApiKey, "revokedAt" | "expiresAt">>(
  keys: readonly Key[],
  managers: ReadonlySet<string>,
  now: Date,
): readonly Key[] {
  return keys.filter((key) => !hasEnded(key, now) && !isByManager(key, managers));
}

/** Whether a key works no more. */
export function hasEnded({ revokedAt, expiresAt }: Pick<ApiKey, "revokedAt" | "expiresAt">, now: Date): boolean {
  return revokedAt !== null || (expiresAt !== null && expiresAt <= now);
}
