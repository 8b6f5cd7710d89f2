import { auditOf } from "../domain/audit.ts";
import { DomainError } from "../domain/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Passwords, Turn } from "../ports/passwords.ts";
import type { PeopleStore } from "../ports/people.ts";
import type { Secrets } from "../ports/secrets.ts";
import { createRecognize, type RequestSource, turnOf } from "./device.ts";
import { type Entered, newSession } from "./new-session.ts";
import type { Person } from "./person.ts";
import type { Presence } from "./presence.ts";
import { type SignInAudit, throttleOrTell } from "./sign-in-audit.ts";
import type { Throttle } from "./throttle.ts";

export interface ChangePasswordDeps {
  readonly people: Pick<PeopleStore, "changePassword" | "find">;
  readonly passwords: Passwords;
  readonly secrets: Pick<Secrets, "deviceToken" | "hash" | "newToken" | "readDeviceToken">;
  readonly clock: Pick<Clock, "now">;
  /** The one of the log-in: whoever found a browser open guesses no faster than at its door. */
  readonly throttle: Throttle;
  readonly presence: Pick<Presence, "look">;
  readonly signInAudit: SignInAudit;
}

/** What somebody typed who wants another password; the contract has checked its form. */
export interface PasswordChange {
  readonly current: string;
  readonly next: string;
}

/**
 * Gives a person another password. Every session of theirs ends, the one that asked too: a cookie that was stolen is one of
 * them. The answer is a new one. Throws `invalid_credentials` where the current password is wrong, `RetryLater` after too
 * many of them.
 */
export function createChangePassword(deps: ChangePasswordDeps) {
  const { people, passwords, secrets, clock, throttle, presence, signInAudit } = deps;
  const recognize = createRecognize({ people, secrets, clock });
  return async (
    { caller, email }: Person,
    { current, next }: PasswordChange,
    source: RequestSource,
  ): Promise<Entered> => {
    const { client } = source;
    const recognized = await recognize(email, source);
    const attempt = { email, client, device: recognized?.device.deviceId ?? null };
    const takeBack = throttleOrTell(throttle, attempt, signInAudit);
    // Whoever has a session need not wait among strangers.
    const turn = turnOf(source, caller.personId ?? null);
    const person = await knownBy(current, email, turn).catch((error: unknown) => {
      // Nobody has looked at the password: that is no wrong one.
      takeBack();
      throw error;
    });
    if (person === null) {
      signInAudit("sign_in_failed", email, client);
      throw wrongPassword();
    }
    takeBack();
    const passwordHash = await passwords.hash(next, turn);
    const { row, entered } = newSession(secrets, { person, accountId: caller.accountId }, clock.now());
    // It may have been changed elsewhere while this was looked at.
    const audit = auditOf({ ...caller, client }, { kind: "password_changed", subject: email }, row.createdAt);
    if (!(await people.changePassword(row, person.passwordHash, passwordHash, audit))) throw wrongPassword();
    await presence.look(person.id);
    return entered;
  };

  async function knownBy(password: string, email: string, turn: Turn) {
    const member = await people.find(email);
    const isRight = await passwords.verify(password, member?.person.passwordHash ?? null, turn);
    return isRight ? (member?.person ?? null) : null;
  }
}

function wrongPassword(): DomainError {
  return new DomainError("invalid_credentials", "This is not your current password. Nothing was changed.");
}
