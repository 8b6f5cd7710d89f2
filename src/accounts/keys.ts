import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import type { Secrets } from "../ports/secrets.ts";
import type { AccountStore } from "../ports/accounts.ts";
import type { Authenticate } from "./authenticate.ts";
import { createCreateKey } from "./create-key.ts";
import { createListKeys } from "./list-keys.ts";
import type { SignUpGate } from "./sign-up-gate.ts";
import { createRevokeKey, type PauseRevoked } from "./revoke-key.ts";

export interface KeyServiceDeps {
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
