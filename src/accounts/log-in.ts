import { auditOf } from "../domain/audit.ts";
import { DomainError } from "../domain/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { Passwords } from "../ports/passwords.ts";
import type { PeopleStore } from "../ports/people.ts";
import type { Secrets } from "../ports/secrets.ts";
import { createRecognize, type RequestSource, turnOf } from "./device.ts";
import { type Entered, newSession } from "./new-session.ts";
import type { SessionRegistry } from "./presence.ts";
import { type SignInAudit, throttleOrTell } from "./sign-in-audit.ts";
import type { Credentials } from "./sign-up.ts";
import type { Throttle } from "./throttle.ts";

export interface LogInDeps {
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
