import type { PeopleStore } from "../ports/people.ts";
import type { Secrets } from "../ports/secrets.ts";
import type { CheckCurrentPassword } from "./current-password.ts";
import type { RequestSource } from "./device.ts";
import type { Person } from "./person.ts";

export interface SessionSecretDeps {
  readonly people: Pick<PeopleStore, "renewSessionSecret">;
  readonly secrets: Pick<Secrets, "hash" | "isOfHash">;
  readonly checkCurrentPassword: CheckCurrentPassword;
}

/**
 * What proves, beside a session's cookie, that a form was sent by a page of our own origin. Browsers send a cookie of a
 * plain http address to every port of its host, so whatever listens on another port has it too; their storage is kept by
 * origin, port and all. The page makes the secret and sends it along when the session begins; only its hash is stored.
 */
export interface SessionSecret {
  isRight(person: Pick<Person, "secretHash">, secret: string | null): boolean;
  /**
   * The password in place of the secret; the one of `source`, if there is any, is the session's from now on. Throws
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
