import { DomainError } from "../domain/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import type { Passwords } from "../ports/passwords.ts";
import type { PeopleStore } from "../ports/people.ts";
import type { Secrets } from "../ports/secrets.ts";
import { keyRow } from "./key-row.ts";
import { newAccount } from "./new-account.ts";
import { type Entered, newSession } from "./new-session.ts";

/** An address and a password, as somebody gave them; the contract has checked their form. */
export interface Credentials {
  readonly email: string;
  readonly password: string;
}

export interface SignUpDeps {
  readonly people: Pick<PeopleStore, "find" | "signUp">;
  readonly passwords: Pick<Passwords, "hash">;
  readonly secrets: Pick<Secrets, "hash" | "newApiKey" | "newRootSecret" | "newToken" | "seal">;
  readonly ids: Pick<Ids, "account" | "key" | "person">;
  readonly clock: Pick<Clock, "now">;
  /** The setting SIGNUPS. */
  readonly signupsOpen: boolean;
}

/** Makes an account with its first person and an owner key, which is handed out this once. */
export interface SignUp {
  (credentials: Credentials): Promise<Entered & { readonly apiKey: string }>;
  readonly isOpen: boolean;
  /** Throws `forbidden` where nobody may sign up; asked before anything else is looked at. */
  readonly requireOpen: () => void;
}

/** Throws `email_taken` when somebody has the address, in any case. */
export function createSignUp({ people, passwords, secrets, ids, clock, signupsOpen }: SignUpDeps): SignUp {
  const requireOpen = () => {
    if (signupsOpen) return;
    throw new DomainError("forbidden", "Nobody may sign up here; SIGNUPS is the setting that says so.");
  };
  const signUp = async ({ email, password }: Credentials) => {
    requireOpen();
    // Before the hash, which costs a hundred times as much; the write decides between two that race.
    if ((await people.find(email)) !== null) throw emailTaken();
    const passwordHash = await passwords.hash(password);
    const now = clock.now();
    const account = newAccount({ secrets, ids }, now);
    const person = { id: ids.person(), email, passwordHash, createdAt: now };
    const apiKey = secrets.newApiKey();
    const key = { accountId: account.id, key: apiKey, name: "owner", role: "owner", hold: "none", now } as const;
    const session = newSession(secrets, { person, accountId: account.id }, now);
    const all = { account, key: keyRow({ secrets, ids }, key), person, session: session.row };
    if (!(await people.signUp(all))) throw emailTaken();
    return { ...session.entered, apiKey };
  };
  return Object.assign(signUp, { isOpen: signupsOpen, requireOpen });
}

/** The same sentence wherever an address is another person's. */
export function emailTaken(): DomainError {
  return new DomainError("email_taken", "Somebody has signed up with this address. Log in, or take another one.");
}
