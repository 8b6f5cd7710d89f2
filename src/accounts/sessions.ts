import { DEVICE_MS_MAX, SESSION_MS_MAX } from "../config/limits.ts";
import type { PersonRow, SessionRow, PeopleStore, Member } from "../../db/account-store.ts";
import type { Secrets, Turn, KnownDevice } from "../crypto/types.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Caller } from "./roles.ts";
import { auditOf } from "../audit/audit.ts";

/** A new session of a person. Only the cookies hold the tokens. */
export interface Entered {
  readonly person: Person;
  readonly sessionToken: string;
  /** Identifies this device at later log-ins. */
  readonly deviceToken: string;
}

/** The row of a new session, and what the person gets. */
interface NewSession {
  readonly row: SessionRow;
  readonly entered: Entered;
}

interface SessionOf {
  readonly person: Pick<PersonRow, "id" | "email">;
  readonly accountId: string;
  /** As in `RequestSource`. */
  readonly sessionSecret: string | null;
}

/** 128 bits. */
const DEVICE_ID_CHARS = 32;

/** Creates a session that lasts `SESSION_MS_MAX`. */
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

/** The person of a session token; null: the session has ended or never existed. */
export type Resume = (sessionToken: string) => Promise<Person | null>;

interface ResumeDeps {
  readonly people: Pick<PeopleStore, "session">;
  readonly secrets: Pick<Secrets, "hash">;
  readonly clock: Pick<Clock, "now">;
}

/** Reads the store each time (20 µs), so that an ended session has ended in every process. */
export function createResume({ people, secrets, clock }: ResumeDeps): Resume {
  return async (sessionToken) => {
    const member = await people.session(secrets.hash(sessionToken), clock.now());
    return member === null ? null : personWith(sessionToken, member, secrets);
  };
}

/** A watched session, for streams and other long answers. */
export interface SessionWatch {
  /** Its `revoked` is aborted when the session ends. */
  readonly caller: Caller;
  /** Call it when the answer has ended, or the watch is never freed. */
  readonly release: () => void;
}

/**
 * The sessions with open streams in this process, so that ending a session closes them at once. It does not notice sessions
 * that another process ended; streams check their session again from time to time.
 */
export interface SessionRegistry {
  /** Null: the session has ended or never existed. */
  readonly watchSession: (sessionToken: string) => Promise<SessionWatch | null>;
  /** Call it after the write that ended a session. */
  ended(sessionHash: string): void;
  /** Checks the sessions of a person against the store and ends those that are over. */
  look(personId: string): Promise<void>;
}

interface SessionRegistryDeps extends ResumeDeps {
  readonly people: Pick<PeopleStore, "session">;
  readonly secrets: Pick<Secrets, "hash">;
  readonly clock: Pick<Clock, "now">;
}

interface WatchedSession {
  readonly sessionHash: string;
  readonly personId: string | undefined;
  readonly end: () => void;
}

export function createSessionRegistry({ people, secrets, clock }: SessionRegistryDeps): SessionRegistry {
  const resume = createResume({ people, secrets, clock });
  const watched = new Set<WatchedSession>();

  return {
    async watchSession(sessionToken) {
      const person = await resume(sessionToken);
      if (person === null) return null;
      const { caller } = person;
      const session = new AbortController();
      const end = () => session.abort();
      const one = { sessionHash: secrets.hash(sessionToken), personId: caller.personId, end };
      const release = () => void watched.delete(one);
      watched.add(one);
      // Read again: it may have ended before it was added.
      const isStill = await resume(sessionToken).catch((error: unknown) => {
        release();
        throw error;
      });
      if (isStill !== null) return { caller: { ...caller, revoked: session.signal }, release };
      release();
      return null;
    },
    ended(sessionHash) {
      for (const one of watched) if (one.sessionHash === sessionHash) one.end();
    },
    async look(personId) {
      const ofPerson = [...watched].filter((one) => one.personId === personId);
      const now = clock.now();
      // A session that can't be checked is ended here too: its client reconnects and is checked then.
      const isOver = ({ sessionHash }: WatchedSession) => people.session(sessionHash, now).then((who) => who === null);
      await Promise.all(
        ofPerson.map(async (one) => {
          if (await isOver(one).catch(() => true)) one.end();
        }),
      );
    },
  };
}

/** The origin of a request to sign up or log in. */
export interface RequestSource {
  /** The network address, as `clientOf` names it. */
  readonly client: string;
  /** The device token as sent, not yet verified; null: none. */
  readonly deviceToken: string | null;
  /** The session secret of the browser's storage (`SessionSecret`); null: no script ran, or no page sent this. */
  readonly sessionSecret: string | null;
}

interface DeviceDeps {
  readonly people: Pick<PeopleStore, "find">;
  readonly secrets: Pick<Secrets, "readDeviceToken">;
  readonly clock: Pick<Clock, "now">;
}

/** A known device and its person. */
interface Recognized {
  readonly member: Member;
  readonly device: KnownDevice;
}

/** The device if the person of this address has logged in on it before; null: unknown device. */
export function createRecognize({ people, secrets, clock }: DeviceDeps) {
  return async (email: string, { deviceToken }: RequestSource): Promise<Recognized | null> => {
    const device = deviceToken === null ? null : secrets.readDeviceToken(deviceToken);
    if (device === null || device.expiresAt <= clock.now()) return null;
    const member = await people.find(email);
    return member?.person.id === device.personId ? { member, device } : null;
  };
}

/** The queue in which a password waits to be hashed. */
export function turnOf({ client }: RequestSource, personId: string | null): Turn {
  return personId === null ? { lane: client, isKnown: false } : { lane: personId, isKnown: true };
}

interface LogOutDeps {
  readonly people: Pick<PeopleStore, "endSession">;
  readonly secrets: Pick<Secrets, "hash">;
  readonly clock: Pick<Clock, "now">;
  readonly sessionRegistry: Pick<SessionRegistry, "ended">;
}

/** Ends the session of a token and its open streams. Idempotent. `caller`: whose session it is; null: it has ended. */
export function createLogOut({ people, secrets, clock, sessionRegistry }: LogOutDeps) {
  return async (sessionToken: string, caller: Caller | null): Promise<void> => {
    const hash = secrets.hash(sessionToken);
    const audit =
      caller === null ? undefined : auditOf(caller, { kind: "signed_out", subject: caller.keyName }, clock.now());
    await people.endSession(hash, audit);
    sessionRegistry.ended(hash);
  };
}

/** A person who is logged in. */
export interface Person {
  /** An owner of the account; decisions are recorded under the person's address. */
  readonly caller: Caller;
  readonly email: string;
  /** The CSRF token of every form that changes something. */
  readonly formToken: string;
  /** Hash of the session token. */
  readonly sessionHash: string;
  /** Hash of the session secret; null: none. */
  readonly secretHash: string | null;
}

/** A person in an account. */
interface Who {
  readonly person: Pick<PersonRow, "id" | "email">;
  readonly accountId: string;
  readonly secretHash: string | null;
}

/** The person of a session token. The form token is derived from it and reveals neither the token nor its hash. */
export function personWith(sessionToken: string, who: Who, secrets: Pick<Secrets, "hash">): Person {
  return {
    caller: callerOf(who),
    email: who.person.email,
    formToken: secrets.hash(`form ${sessionToken}`),
    sessionHash: secrets.hash(sessionToken),
    secretHash: who.secretHash,
  };
}

function callerOf({ person: { id, email }, accountId }: Pick<Who, "person" | "accountId">): Caller {
  return {
    accountId,
    keyId: null,
    keyName: email,
    personId: id,
    role: "owner",
    hold: "none",
    actor: `user:${email}`,
  };
}
