import { authorize, type Caller } from "../domain/caller.ts";
import type { Secrets } from "../ports/secrets.ts";
import type { RootSecretOf } from "./root-secret.ts";

/** The secret that signs what this account sends to one origin (decisions 6). */
export interface SigningSecret {
  readonly origin: string;
  readonly secret: string;
  readonly previous: null;
}

/** The secret of an account and an origin, as `URL.origin` spells it. */
export type SigningSecretOf = (accountId: string, origin: string) => Promise<string>;

const REMEMBERED_MAX = 10_000;

/** Derives signing secrets and remembers them: each attempt signs, and most go to few origins. */
export function createSigningSecretOf(
  rootSecretOf: RootSecretOf,
  secrets: Pick<Secrets, "signingSecret">,
): SigningSecretOf {
  const derived = new Map<string, string>();
  return async (accountId, origin) => {
    const name = `${accountId} ${origin}`;
    const known = derived.get(name);
    if (known !== undefined) return known;
    const secret = secrets.signingSecret(await rootSecretOf(accountId), origin);
    if (derived.size >= REMEMBERED_MAX) derived.clear();
    derived.set(name, secret);
    return secret;
  };
}

/** Reads a signing secret; owner keys only. `origin` has been checked: scheme, host and port, nothing more. */
export function createReadSigningSecret(signingSecretOf: SigningSecretOf) {
  return async (caller: Caller, origin: string): Promise<SigningSecret> => {
    authorize(caller, "manage");
    return { origin, secret: await signingSecretOf(caller.accountId, origin), previous: null };
  };
}
