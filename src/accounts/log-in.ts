import { auditOf } from "../audit/audit.ts";
import { DomainError } from "../api/domain-error.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Passwords, Secrets } from "../crypto/types.ts";
import type { PeopleStore } from "../../db/account-store.ts";
import {
  createRecognize,
  type RequestSource,
  turnOf,
  type Entered,
  newSession,
  type SessionRegistry,
  type Person,
} from "./sessions.ts";
import { type SignInAudit, throttleOrTell, type Throttle } from "./throttle.ts";
import type { Credentials } from "./sign-up.ts";
import { type CheckCurrentPassword, wrongPassword } from "./session-secret.ts";

interface LogInDeps {
  readonly people: Pick<PeopleStore, "addSession" | "find">;
  readonly passwords: Pick<Passwords, "verify">;
  readonly secrets: Pick<Secrets, "deviceToken" | "hash" | "newToken" | "readDeviceToken">;
  readonly clock: Pick<Clock, "now">;
  readonly throttle: Throttle;
  readonly sessionRegistry: Pick<SessionRegistry, "look">;
  readonly signInAudit: SignInAudit;
}

/**
 * Begins a session. Throws `invalid_credentials`, in the same words and after the same time, whether nobody has the
 * address or the password is wrong; `RetryLater` after too many of them.
 */
export function createLogIn({ people, passwords, secrets, clock, throttle, sessionRegistry, signInAudit }: LogInDeps) {
  const recognize = createRecognize({ people, secrets, clock });
  return async ({ email, password }: Credentials, source: RequestSource): Promise<Entered> => {
    const { client } = source;
    const recognized = await recognize(email, source);
    const attempt = { email, client, device: recognized?.device.deviceId ?? null };
    const takeBack = throttleOrTell(throttle, attempt, signInAudit);
    const whoseAre = async () => {
      const member = recognized?.member ?? (await people.find(email));
      const turn = turnOf(source, recognized?.device.personId ?? null);
      const isRight = await passwords.verify(password, member?.person.passwordHash ?? null, turn);
      return isRight ? member : null;
    };
    const member = await whoseAre().catch((error: unknown) => {
      // Nobody has looked at the password: that is no wrong one.
      takeBack();
      throw error;
    });
    if (member === null) {
      signInAudit("sign_in_failed", email, client);
      throw invalidCredentials();
    }
    takeBack();
    const { row, entered } = newSession(secrets, { ...member, sessionSecret: source.sessionSecret }, clock.now());
    const audit = auditOf(
      { ...entered.person.caller, client },
      { kind: "signed_in", subject: entered.person.email },
      row.createdAt,
    );
    // The password may have been renewed while this one was looked at.
    if (!(await people.addSession(row, member.person.passwordHash, audit))) throw invalidCredentials();
    // One session too many ends the oldest.
    await sessionRegistry.look(member.person.id);
    return entered;
  };
}

function invalidCredentials(): DomainError {
  return new DomainError("invalid_credentials", "E-mail and password do not belong together.");
}

interface ChangePasswordDeps {
  readonly people: Pick<PeopleStore, "changePassword">;
  readonly passwords: Pick<Passwords, "hash">;
  readonly secrets: Pick<Secrets, "deviceToken" | "hash" | "newToken">;
  readonly clock: Pick<Clock, "now">;
  readonly checkCurrentPassword: CheckCurrentPassword;
  readonly sessionRegistry: Pick<SessionRegistry, "look">;
}

/** What somebody typed who wants another password; the contract has checked its form. */
interface PasswordChange {
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
