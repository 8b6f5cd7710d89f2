import { auditOf } from "../domain/audit.ts";
import type { Clock } from "../ports/clock.ts";
import type { Passwords } from "../ports/passwords.ts";
import type { PeopleStore } from "../ports/people.ts";
import type { Secrets } from "../ports/secrets.ts";
import { type CheckCurrentPassword, wrongPassword } from "./current-password.ts";
import { type RequestSource, turnOf } from "./device.ts";
import { type Entered, newSession } from "./new-session.ts";
import type { Person } from "./person.ts";
import type { SessionRegistry } from "./presence.ts";

export interface ChangePasswordDeps {
  readonly people: Pick<PeopleStore, "changePassword">;
  readonly passwords: Pick<Passwords, "hash">;
  readonly secrets: Pick<Secrets, "deviceToken" | "hash" | "newToken">;
  readonly clock: Pick<Clock, "now">;
  readonly checkCurrentPassword: CheckCurrentPassword;
  readonly sessionRegistry: Pick<SessionRegistry, "look">;
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
  const { people, passwords, secrets, clock, checkCurrentPassword, sessionRegistry } = deps;
  return async (who: Person, { current, next }: PasswordChange, source: RequestSource): Promise<Entered> => {
    const { caller, email } = who;
    const { client, sessionSecret } = source;
    const person = await checkCurrentPassword(who, current, source);
    const passwordHash = await passwords.hash(next, turnOf(source, caller.personId ?? null));
    const whose = { person, accountId: caller.accountId, sessionSecret };
    const { row, entered } = newSession(secrets, whose, clock.now());
    // It may have been changed elsewhere while this was looked at.
    const audit = auditOf({ ...caller, client }, { kind: "password_changed", subject: email }, row.createdAt);
    if (!(await people.changePassword(row, person.passwordHash, passwordHash, audit))) throw wrongPassword();
    await sessionRegistry.look(person.id);
    return entered;
  };
}
