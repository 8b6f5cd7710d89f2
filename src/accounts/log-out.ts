import type { PeopleStore } from "../ports/people.ts";
import type { Secrets } from "../ports/secrets.ts";
import type { Presence } from "./presence.ts";

export interface LogOutDeps {
  readonly people: Pick<PeopleStore, "endSession">;
  readonly secrets: Pick<Secrets, "hash">;
  readonly presence: Pick<Presence, "ended">;
}

/** Ends the session of a token, everywhere, and what is still open by it; one that has ended before is no error. */
export function createLogOut({ people, secrets, presence }: LogOutDeps) {
  return async (sessionToken: string): Promise<void> => {
    const hash = secrets.hash(sessionToken);
    await people.endSession(hash);
    presence.ended(hash);
  };
}
