import { authorize, type Caller } from "../domain/caller.ts";
import type { Secrets } from "../ports/secrets.ts";
import type { RootSecretOf } from "./root-secret.ts";

/** The secret that signs what this account sends to one origin (decisions 6). */
export interface SigningSecret {
  readonly origin: string;
  readonly secret: string;
  readonly previous: null;
}

/** Reads a signing secret; owner keys only. `origin` has been checked: scheme, host and port, nothing more. */
export function createReadSigningSecret(rootSecretOf: RootSecretOf, secrets: Pick<Secrets, "signingSecret">) {
  return async (caller: Caller, origin: string): Promise<SigningSecret> => {
    authorize(caller, "manage");
    const secret = secrets.signingSecret(await rootSecretOf(caller.accountId), origin);
    return { origin, secret, previous: null };
  };
}
