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
import { type SignInAudit, throttleAndAudit, type Throttle } from "./throttle.ts";
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
 * Starts a session. Throws `invalid_credentials`, with the same text and after the same time whether the address is unknown
 * or the password is wrong, and `RetryLater` after too many failures.
 */
export function createLogIn({ people, passwords, secrets, clock, throttle, sessionRegistry, signInAudit }: LogInDeps) {
  const recognize = createRecognize({ people, secrets, clock });
  return async ({ email, password }: Credentials, source: RequestSource): Promise<Entered> => {
    const { client } = source;
    const recognized = await recognize(email, source);
    const attempt = { email, client, device: recognized?.device.deviceId ?? null };
    const uncount = throttleAndAudit(throttle, attempt, signInAudit);
    const verifyMember = async () => {
      const member = recognized?.member ?? (await people.find(email));
      const turn = turnOf(source, recognized?.device.personId ?? null);
      const isRight = await passwords.verify(password, member?.person.passwordHash ?? null, turn);
      return isRight ? member : null;
    };
    const member = await verifyMember().catch((error: unknown) => {
      // The password was not checked, so don't count it as wrong.
      uncount();
      throw error;
    });
    if (member === null) {
      signInAudit("sign_in_failed", email, client);
      throw invalidCredentials();
    }
    uncount();
    const { row, entered } = newSession(secrets, { ...member, sessionSecret: source.sessionSecret }, clock.now());
    const audit = auditOf(
      { ...entered.person.caller, client },
      { kind: "signed_in", subject: entered.person.email },
      row.createdAt,
    );
    // The password may have been changed while this one was checked.
    if (!(await people.addSession(row, member.person.passwordHash, audit))) throw invalidCredentials();
    // Above `SESSIONS_PER_PERSON_MAX` the new session ended the oldest.
    await sessionRegistry.look(member.person.id);
    return entered;
  };
}

function invalidCredentials(): DomainError {
  return new DomainError("invalid_credentials", "Incorrect email or password.");
}

interface ChangePasswordDeps {
  readonly people: Pick<PeopleStore, "changePassword">;
  readonly passwords: Pick<Passwords, "hash">;
  readonly secrets: Pick<Secrets, "deviceToken" | "hash" | "newToken">;
  readonly clock: Pick<Clock, "now">;
  readonly checkCurrentPassword: CheckCurrentPassword;
  readonly sessionRegistry: Pick<SessionRegistry, "look">;
}

/** A validated change of password. */
interface PasswordChange {
  readonly current: string;
  readonly next: string;
}

/**
 * Changes a person's password and ends all their sessions, the present one included, since any cookie may be stolen.
 * Returns a new session. Throws `invalid_credentials` if the current password is wrong, `RetryLater` after too many
 * failures.
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
    // The password may have been changed elsewhere meanwhile.
    const audit = auditOf({ ...caller, client }, { kind: "password_changed", subject: email }, row.createdAt);
    if (!(await people.changePassword(row, person.passwordHash, passwordHash, audit))) throw wrongPassword();
    await sessionRegistry.look(person.id);
    return entered;
  };
}
