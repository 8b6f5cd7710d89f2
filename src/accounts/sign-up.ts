import { SYSTEM } from "./roles.ts";
import { auditOf } from "../audit/audit.ts";
import { DomainError } from "../api/domain-error.ts";
import { signUpsClosedWords, type SignUpGate } from "./sign-up-gate.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Ids } from "../runtime/ids.ts";
import type { Passwords, Secrets } from "../crypto/types.ts";
import type { PeopleStore, Account } from "../../db/account-store.ts";
import { keyCreated, keyRow } from "./keys.ts";
import { type RequestSource, turnOf, type Entered, newSession } from "./sessions.ts";
import type { SignUpThrottle } from "./throttle.ts";

/** An address and a password whose form is valid. */
export interface Credentials {
  readonly email: string;
  readonly password: string;
}

interface SignUpDeps {
  readonly people: Pick<PeopleStore, "find" | "signUp">;
  readonly passwords: Pick<Passwords, "hash">;
  readonly secrets: Pick<Secrets, "deviceToken" | "hash" | "newApiKey" | "newRootSecret" | "newToken" | "seal">;
  readonly ids: Pick<Ids, "account" | "key" | "person">;
  readonly clock: Pick<Clock, "now">;
  readonly throttle: SignUpThrottle;
  readonly signUpGate: Pick<SignUpGate, "signUps" | "closedBy">;
}

/** Creates an account with its first person and an owner key, which is shown only once. */
export interface SignUp {
  (credentials: Credentials, source: RequestSource): Promise<Entered & { readonly apiKey: string }>;
  readonly isOpen: () => Promise<boolean>;
  /** Throws `forbidden` if sign-ups are closed. Call it before checking anything else. */
  readonly requireOpen: () => Promise<void>;
}

/** Throws `forbidden` if sign-ups are closed, `email_taken` (case ignored), `RetryLater` if a client tries too often. */
export function createSignUp(deps: SignUpDeps): SignUp {
  const { people, passwords, secrets, ids, clock, throttle, signUpGate } = deps;
  const { signUps } = signUpGate;
  const isOpen = async () => (await signUpGate.closedBy()) === null;
  const requireOpen = async () => {
    const closedBy = await signUpGate.closedBy();
    if (closedBy !== null) throw new DomainError("forbidden", signUpsClosedWords(closedBy));
  };
  const signUp = async ({ email, password }: Credentials, source: RequestSource) => {
    await requireOpen();
    // Attempts with a taken address count too, or a list of addresses could be tested at any speed.
    const uncount = throttle(source.client);
    // Before the hash, which costs a hundred times as much. The write below decides races.
    if ((await people.find(email)) !== null) throw emailTaken();
    const passwordHash = await passwords.hash(password, turnOf(source, null)).catch((error: unknown) => {
      uncount();
      throw error;
    });
    const now = clock.now();
    const account = newAccount({ secrets, ids }, now);
    const person = { id: ids.person(), email, passwordHash, createdAt: now };
    const apiKey = secrets.newApiKey();
    const key = { accountId: account.id, key: apiKey, name: "owner", role: "owner", hold: "none", now } as const;
    const whose = { person, accountId: account.id, sessionSecret: source.sessionSecret };
    const session = newSession(secrets, whose, now);
    const row = keyRow({ secrets, ids }, key);
    const caller = { ...session.entered.person.caller, client: source.client };
    const audited = [{ kind: "signed_up", subject: email } as const, keyCreated(row)];
    const audit = audited.map((entry) => auditOf(caller, entry, now));
    // With SIGNUPS=open the account stays allowed when sign-ups close later.
    const rules = signUps === "open" ? { allowedBy: SYSTEM } : { endsWithHold: signUps === "until_hold" };
    const all = { account, key: row, person, session: session.row, audit, ...rules };
    if (!(await people.signUp(all))) {
      // They may have closed while the password was hashed.
      await requireOpen();
      throw emailTaken();
    }
    return { ...session.entered, apiKey };
  };
  return Object.assign(signUp, { isOpen, requireOpen });
}

export function emailTaken(): DomainError {
  return new DomainError("email_taken", "Somebody has signed up with this address. Log in, or take another one.");
}

interface NewAccountDeps {
  readonly secrets: Pick<Secrets, "seal" | "newRootSecret">;
  readonly ids: Pick<Ids, "account">;
}

/** The row of a new account with a new root secret. */
export function newAccount({ secrets, ids }: NewAccountDeps, now: Date): Account {
  const id = ids.account();
  const place = { table: "accounts", row: id, column: "sealed_root_secret" };
  return { id, sealedRootSecret: secrets.seal(secrets.newRootSecret(), place), createdAt: now };
}
