import type { Caller } from "../domain/caller.ts";
import type { Clock } from "../ports/clock.ts";
import type { PeopleStore, PersonRow } from "../ports/people.ts";
import type { Secrets } from "../ports/secrets.ts";

/** Somebody who is signed in. */
export interface Person {
  /** An owner of the account; decisions are written down under the person's address. */
  readonly caller: Caller;
  readonly email: string;
  /** Stands in every form that changes something: it proves that the page was made for this very session. */
  readonly formToken: string;
}

/** Whose session a token is; null when it has ended, or was none. */
export type Resume = (token: string) => Promise<Person | null>;

export interface ResumeDeps {
  readonly people: Pick<PeopleStore, "session">;
  readonly secrets: Pick<Secrets, "hash">;
  readonly clock: Pick<Clock, "now">;
}

/** Asks the store each time: it takes 20 us, and a session that ends has ended everywhere. */
export function createResume({ people, secrets, clock }: ResumeDeps): Resume {
  return async (token) => {
    const member = await people.session(secrets.hash(token), clock.now());
    if (member === null) return null;
    const { person, accountId } = member;
    return { caller: callerOf(person, accountId), email: person.email, formToken: secrets.hash(`form ${token}`) };
  };
}

function callerOf({ id, email }: PersonRow, accountId: string): Caller {
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
