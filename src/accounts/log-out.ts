import { auditOf } from "../domain/audit.ts";
import type { Caller } from "../domain/caller.ts";
import type { Clock } from "../ports/clock.ts";
import type { PeopleStore } from "../ports/people.ts";
import type { Secrets } from "../ports/secrets.ts";
import type { SessionRegistry } from "./presence.ts";

export interface LogOutDeps {
  readonly people: Pick<PeopleStore, "endSession">;
  readonly secrets: Pick<Secrets, "hash">;
  readonly clock: Pick<Clock, "now">;
  readonly sessionRegistry: Pick<SessionRegistry, "ended">;
}

/** Ends the session of a token, which is the caller's (null: nobody's any more), everywhere, and what is still open by it; one that has ended before is no error. */
export function createLogOut({ people, secrets, clock, sessionRegistry }: LogOutDeps) {
  return async (sessionToken: string, caller: Caller | null): Promise<void> => {
    const hash = secrets.hash(sessionToken);
    const told =
      caller === null ? undefined : auditOf(caller, { kind: "signed_out", subject: caller.keyName }, clock.now());
    await people.endSession(hash, told);
    sessionRegistry.ended(hash);
  };
}
