import type { PeopleStore } from "../ports/people.ts";
import type { Secrets } from "../ports/secrets.ts";

export interface LogOutDeps {
  readonly people: Pick<PeopleStore, "endSession">;
  readonly secrets: Pick<Secrets, "hash">;
}

/** Ends the session of a token, everywhere; one that has ended before is no error. */
export function createLogOut({ people, secrets }: LogOutDeps) {
  return (sessionToken: string): Promise<void> => people.endSession(secrets.hash(sessionToken));
}
