import { DomainError } from "../domain/errors.ts";
import { PASSWORD_CHARS_MAX } from "../domain/limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Passwords } from "../ports/passwords.ts";
import type { PeopleStore, PersonRow } from "../ports/people.ts";
import type { Secrets } from "../ports/secrets.ts";
import { createRecognize, type RequestSource, turnOf } from "./device.ts";
import type { Person } from "./person.ts";
import { type SignInAudit, throttleOrTell } from "./sign-in-audit.ts";
import type { Throttle } from "./throttle.ts";

export interface CurrentPasswordDeps {
  readonly people: Pick<PeopleStore, "find">;
  readonly passwords: Pick<Passwords, "verify">;
  readonly secrets: Pick<Secrets, "readDeviceToken">;
  readonly clock: Pick<Clock, "now">;
  /** The one of the log-in: whoever holds a session guesses no faster than somebody without one. */
  readonly throttle: Throttle;
  readonly signInAudit: SignInAudit;
}

/**
 * Checks the password of somebody who is logged in. Throws `invalid_credentials` where it is wrong, `RetryLater` after too
 * many wrong ones.
 */
export type CheckCurrentPassword = (person: Person, password: string, source: RequestSource) => Promise<PersonRow>;

export function createCheckCurrentPassword(deps: CurrentPasswordDeps): CheckCurrentPassword {
  const { people, passwords, throttle, signInAudit } = deps;
  const recognize = createRecognize(deps);
  return async ({ caller, email }, password, source) => {
    const { client } = source;
    const recognized = await recognize(email, source);
    const attempt = { email, client, device: recognized?.device.deviceId ?? null };
    const takeBack = throttleOrTell(throttle, attempt, signInAudit);
    const knownBy = async () => {
      const member = await people.find(email);
      // Whoever has a session need not wait among strangers.
      const turn = turnOf(source, caller.personId ?? null);
      if (password.length > PASSWORD_CHARS_MAX) return null;
      const isRight = await passwords.verify(password, member?.person.passwordHash ?? null, turn);
      return isRight ? (member?.person ?? null) : null;
    };
    const person = await knownBy().catch((error: unknown) => {
      // Nobody has looked at the password: that is no wrong one.
      takeBack();
      throw error;
    });
    if (person === null) {
      signInAudit("sign_in_failed", email, client);
      throw wrongPassword();
    }
    takeBack();
    return person;
  };
}

export function wrongPassword(): DomainError {
  return new DomainError("invalid_credentials", "This is not your current password. Nothing was changed.");
}
