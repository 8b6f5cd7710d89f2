import type { PeopleStore, PersonRow } from "../../db/account-store.ts";
import type { Secrets, Passwords } from "../crypto/types.ts";
import { type RequestSource, type Person, createRecognize, turnOf } from "./sessions.ts";
import { DomainError } from "../api/domain-error.ts";
import { PASSWORD_CHARS_MAX } from "../config/limits.ts";
import type { Clock } from "../runtime/clock.ts";
import { type SignInAudit, throttleAndAudit, type Throttle } from "./throttle.ts";

interface SessionSecretDeps {
  readonly people: Pick<PeopleStore, "renewSessionSecret">;
  readonly secrets: Pick<Secrets, "hash" | "isOfHash">;
  readonly checkCurrentPassword: CheckCurrentPassword;
}

/**
 * A second proof, beside the cookie, that a form was sent by a page of our own origin. Browsers send cookies of a plain http
 * address to every port of its host, so a server on another port gets them too; local storage is separated by port. The
 * page creates the secret and sends it when the session begins; only its hash is stored.
 */
interface SessionSecret {
  isRight(person: Pick<Person, "secretHash">, secret: string | null): boolean;
  /**
   * Accepts the password in place of the secret. The secret of `source`, if any, becomes that of the session. Throws
   * `invalid_credentials` or `RetryLater`.
   */
  confirm(person: Person, password: string, source: RequestSource): Promise<void>;
}

export function createSessionSecret({ people, secrets, checkCurrentPassword }: SessionSecretDeps): SessionSecret {
  return {
    isRight({ secretHash }, secret) {
      return secretHash !== null && secret !== null && secrets.isOfHash(secret, secretHash);
    },
    async confirm(person, password, source) {
      const { passwordHash } = await checkCurrentPassword(person, password, source);
      if (source.sessionSecret === null) return;
      await people.renewSessionSecret(person.sessionHash, secrets.hash(source.sessionSecret), passwordHash);
    },
  };
}

interface CurrentPasswordDeps {
  readonly people: Pick<PeopleStore, "find">;
  readonly passwords: Pick<Passwords, "verify">;
  readonly secrets: Pick<Secrets, "readDeviceToken">;
  readonly clock: Pick<Clock, "now">;
  /** Shared with log-in, so that a session does not allow guessing the password faster. */
  readonly throttle: Throttle;
  readonly signInAudit: SignInAudit;
}

/**
 * Checks the password of a person who is logged in. Throws `invalid_credentials` if it is wrong, `RetryLater` after too many
 * failures.
 */
export type CheckCurrentPassword = (person: Person, password: string, source: RequestSource) => Promise<PersonRow>;

export function createCheckCurrentPassword(deps: CurrentPasswordDeps): CheckCurrentPassword {
  const { people, passwords, throttle, signInAudit } = deps;
  const recognize = createRecognize(deps);
  return async ({ caller, email }, password, source) => {
    const { client } = source;
    const recognized = await recognize(email, source);
    const attempt = { email, client, device: recognized?.device.deviceId ?? null };
    const uncount = throttleAndAudit(throttle, attempt, signInAudit);
    const verifyPerson = async () => {
      const member = await people.find(email);
      // A person with a session waits in the queue of known people.
      const turn = turnOf(source, caller.personId ?? null);
      if (password.length > PASSWORD_CHARS_MAX) return null;
      const isRight = await passwords.verify(password, member?.person.passwordHash ?? null, turn);
      return isRight ? (member?.person ?? null) : null;
    };
    const person = await verifyPerson().catch((error: unknown) => {
      // The password was not checked, so don't count it as wrong.
      uncount();
      throw error;
    });
    if (person === null) {
      signInAudit("sign_in_failed", email, client);
      throw wrongPassword();
    }
    uncount();
    return person;
  };
}

export function wrongPassword(): DomainError {
  return new DomainError("invalid_credentials", "This is not your current password. Nothing was changed.");
}
