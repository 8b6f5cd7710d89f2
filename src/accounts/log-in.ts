import { DomainError } from "../domain/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Passwords } from "../ports/passwords.ts";
import type { PeopleStore } from "../ports/people.ts";
import type { Secrets } from "../ports/secrets.ts";
import { type Entered, newSession } from "./new-session.ts";
import type { Presence } from "./presence.ts";
import type { Credentials } from "./sign-up.ts";
import type { Throttle } from "./throttle.ts";

export interface LogInDeps {
  readonly people: Pick<PeopleStore, "addSession" | "find">;
  readonly passwords: Pick<Passwords, "verify">;
  readonly secrets: Pick<Secrets, "hash" | "newToken">;
  readonly clock: Pick<Clock, "now">;
  readonly throttle: Throttle;
  readonly presence: Pick<Presence, "look">;
}

/**
 * Begins a session. Throws `invalid_credentials`, in the same words and after the same time, whether nobody has the
 * address or the password is wrong; `rate_limited` after too many of them. `client` is where the request comes from.
 */
export function createLogIn({ people, passwords, secrets, clock, throttle, presence }: LogInDeps) {
  const whoseAre = async ({ email, password }: Credentials) => {
    const member = await people.find(email);
    const isRight = await passwords.verify(password, member?.person.passwordHash ?? null);
    return isRight ? member : null;
  };
  return async (credentials: Credentials, client: string): Promise<Entered> => {
    const takeBack = throttle({ email: credentials.email, client });
    const member = await whoseAre(credentials).catch((error: unknown) => {
      // Nobody has looked at the password: that is no wrong one.
      takeBack();
      throw error;
    });
    if (member === null) throw invalidCredentials();
    takeBack();
    const { row, entered } = newSession(secrets, member, clock.now());
    // The password may have been renewed while this one was looked at.
    if (!(await people.addSession(row, member.person.passwordHash))) throw invalidCredentials();
    // One session too many ends the oldest.
    await presence.look(member.person.id);
    return entered;
  };
}

function invalidCredentials(): DomainError {
  return new DomainError("invalid_credentials", "E-mail and password do not belong together.");
}
