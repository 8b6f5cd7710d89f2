import type { Caller } from "../../src/core/roles.ts";

/** Somebody who may do everything in an account. */
export function ownerOf(accountId: string): Caller {
  return { accountId, keyId: null, keyName: "ann", role: "owner", hold: "none", actor: "user:ann@example.com" };
}
