import { DEVICE_MS_MAX, SESSION_MS_MAX } from "../domain/limits.ts";
import type { PersonRow, SessionRow } from "../ports/people.ts";
import type { Secrets } from "../ports/secrets.ts";
import { type Person, personWith } from "./person.ts";

/** Somebody who has just come in, and the token of the session that began: only its cookie holds it. */
export interface Entered {
  readonly person: Person;
  readonly sessionToken: string;
  /** By which this device is known from now on: only its cookie holds it. */
  readonly deviceToken: string;
}

/** A session that begins: what is kept of it, and what its beginner gets. */
export interface NewSession {
  readonly row: SessionRow;
  readonly entered: Entered;
}

/** Whose session it is. */
export interface SessionOf {
  readonly person: Pick<PersonRow, "id" | "email">;
  readonly accountId: string;
  /** As in `RequestSource`. */
  readonly sessionSecret: string | null;
}

/** 128 bits. */
const DEVICE_ID_CHARS = 32;

/** A session of 7 days (hostile 7). */
export function newSession(
  secrets: Pick<Secrets, "deviceToken" | "hash" | "newToken">,
  whose: SessionOf,
  now: Date,
): NewSession {
  const { person, accountId, sessionSecret } = whose;
  const sessionToken = secrets.newToken();
  const expiresAt = new Date(now.getTime() + SESSION_MS_MAX);
  const secretHash = sessionSecret === null ? null : secrets.hash(sessionSecret);
  return {
    row: { hash: secrets.hash(sessionToken), personId: person.id, accountId, createdAt: now, expiresAt, secretHash },
    entered: {
      person: personWith(sessionToken, { person, accountId, secretHash }, secrets),
      sessionToken,
      deviceToken: secrets.deviceToken({
        personId: person.id,
        deviceId: secrets.newToken().slice(0, DEVICE_ID_CHARS),
        expiresAt: new Date(now.getTime() + DEVICE_MS_MAX),
      }),
    },
  };
}
