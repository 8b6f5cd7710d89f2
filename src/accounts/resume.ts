import type { Clock } from "../ports/clock.ts";
import type { PeopleStore } from "../ports/people.ts";
import type { Secrets } from "../ports/secrets.ts";
import { type Person, personWith } from "./person.ts";

/** Whose session a token is; null when it has ended, or was none. */
export type Resume = (sessionToken: string) => Promise<Person | null>;

export interface ResumeDeps {
  readonly people: Pick<PeopleStore, "session">;
  readonly secrets: Pick<Secrets, "hash">;
  readonly clock: Pick<Clock, "now">;
}

/** Asks the store each time: it takes 20 us, and a session that ends has ended everywhere. */
export function createResume({ people, secrets, clock }: ResumeDeps): Resume {
  return async (sessionToken) => {
    const member = await people.session(secrets.hash(sessionToken), clock.now());
    return member === null ? null : personWith(sessionToken, member, secrets);
  };
}
