import type { Caller } from "../domain/caller.ts";
import type { PersonRow } from "../ports/people.ts";
import type { Secrets } from "../ports/secrets.ts";

/** Somebody who is logged in. */
export interface Person {
  /** An owner of the account; decisions are written down under the person's address. */
  readonly caller: Caller;
  readonly email: string;
  /** Stands in every form that changes something: it proves that the page was made for this very session. */
  readonly formToken: string;
  /** Of the token of their session. */
  readonly sessionHash: string;
  /** Of the secret that their browser's storage holds; null: none is known. */
  readonly secretHash: string | null;
}

/** A person in an account. */
interface Who {
  readonly person: Pick<PersonRow, "id" | "email">;
  readonly accountId: string;
  readonly secretHash: string | null;
}

/** Who has the session of this token. The form's token follows from it, and says nothing about it or its stored hash. */
export function personWith(sessionToken: string, who: Who, secrets: Pick<Secrets, "hash">): Person {
  return {
    caller: callerOf(who),
    email: who.person.email,
    formToken: secrets.hash(`form ${sessionToken}`),
    sessionHash: secrets.hash(sessionToken),
    secretHash: who.secretHash,
  };
}

function callerOf({ person: { id, email }, accountId }: Pick<Who, "person" | "accountId">): Caller {
  return {
    accountId,
    keyId: null,
    keyName: email,
    personId: id,
    role: "owner",
    hold: "none",
    actor: `user:${email}`,
  };
}
