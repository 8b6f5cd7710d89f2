import { DomainError } from "../domain/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Passwords } from "../ports/passwords.ts";
import type { PeopleStore } from "../ports/people.ts";
import type { Secrets } from "../ports/secrets.ts";
import { type Entered, newSession } from "./new-session.ts";
import type { Person } from "./person.ts";
import type { Presence } from "./presence.ts";
import type { Throttle } from "./throttle.ts";

export interface ChangePasswordDeps {
  readonly people: Pick<PeopleStore, "changePassword" | "find">;
  readonly passwords: Passwords;
  readonly secrets: Pick<Secrets, "hash" | "newToken">;
  readonly clock: Pick<Clock, "now">;
  /** The one of the log-in: whoever found a browser open guesses no faster than at its door. */
  readonly throttle: Throttle;
  readonly presence: Pick<Presence, "look">;
}

/** What somebody typed who wants another password; the contract has checked its form. */
export interface PasswordChange {
  readonly current: string;
  readonly next: string;
}

/**
 * Gives a person another password. Every session of theirs ends, the one that asked too: a cookie that was stolen is one of
 * them. The answer is a new one. Throws `invalid_credentials` where the current password is wrong, `rate_limited` after too
 * many of them. `client` is where the request comes from.
 */
export function createChangePassword(deps: ChangePasswordDeps) {
  const { people, passwords, secrets, clock, throttle, presence } = deps;
  return async ({ caller, email }: Person, { current, next }: PasswordChange, client: string): Promise<Entered> => {
    const takeBack = throttle({ email, client });
    const person = await knownBy(current, email).catch((error: unknown) => {
      // Nobody has looked at the password: that is no wrong one.
      takeBack();
      throw error;
    });
    if (person === null) throw wrongPassword();
    takeBack();
    const passwordHash = await passwords.hash(next);
    const { row, entered } = newSession(secrets, { person, accountId: caller.accountId }, clock.now());
    // It may have been changed elsewhere while this was looked at.
    if (!(await people.changePassword(row, person.passwordHash, passwordHash))) throw wrongPassword();
    await presence.look(person.id);
    return entered;
  };

  async function knownBy(password: string, email: string) {
    const member = await people.find(email);
    const isRight = await passwords.verify(password, member?.person.passwordHash ?? null);
    return isRight ? (member?.person ?? null) : null;
  }
}

function wrongPassword(): DomainError {
  return new DomainError("invalid_credentials", "This is not your current password. Nothing was changed.");
}
