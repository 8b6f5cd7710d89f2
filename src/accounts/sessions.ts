import { DEVICE_MS_MAX, SESSION_MS_MAX } from "../config/limits.ts";
import type { PersonRow, SessionRow, PeopleStore, Member } from "../../db/account-store.ts";
import type { Secrets, Turn, KnownDevice } from "../crypto/types.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Caller } from "./roles.ts";
import { auditOf } from "../audit/audit.ts";

/** Somebody who has just come in, and the token of the session that began: only its cookie holds it. */
export interface Entered {
  readonly person: Person;
  readonly sessionToken: string;
  /** By which this device is known from now on: only its cookie holds it. */
  readonly deviceToken: string;
}

/** A session that begins: what is kept of it, and what its beginner gets. */
interface NewSession {
  readonly row: SessionRow;
  readonly entered: Entered;
}

/** Whose session it is. */
interface SessionOf {
  readonly person: Pick<PersonRow, "id" | "email">;
  readonly accountId: string;
  /** As in `RequestSource`. */
  readonly sessionSecret: string | null;
}

/** 128 bits. */
const DEVICE_ID_CHARS = 32;

/** A session of 7 days. */
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

/** Whose session a token is; null when it has ended, or was none. */
export type Resume = (sessionToken: string) => Promise<Person | null>;

interface ResumeDeps {
  readonly people: Pick<PeopleStore, "session">;
  readonly secrets: Pick<Secrets, "hash">;
  readonly clock: Pick<Clock, "now">;
}

/** Asks the store each time: it takes 20 us, and a session that ends has ended everywhere. */
export function createResume({ people, secrets, clock }: ResumeDeps): Resume {
  return async (sessionToken) => {
    const member = await people.session(secrets.hash(sessionToken), clock.now());
    return member === null ? null : personWith(sessionToken, member, secrets);
  };
}

/** Somebody whose answer goes on after it began. */
export interface SessionWatch {
  /** Who it is; `revoked` is aborted when their session ends. */
  readonly caller: Caller;
  /** To be called once they are gone, or they are remembered for good. */
  readonly release: () => void;
}

/**
 * Who stays, by their session: so that its end counts at once for what is still open by it, as the end of a key does. What
 * another process ended is not heard of here; whoever stays is judged again now and then.
 */
export interface SessionRegistry {
  /** Null: the session has ended, or was none. */
  readonly watchSession: (sessionToken: string) => Promise<SessionWatch | null>;
  /** A session was ended; after the write, so that nobody comes in by it any more. */
  ended(sessionHash: string): void;
  /** Sessions of a person may have ended; which of them the store knows. */
  look(personId: string): Promise<void>;
}

interface SessionRegistryDeps extends ResumeDeps {
  readonly people: Pick<PeopleStore, "session">;
  readonly secrets: Pick<Secrets, "hash">;
  readonly clock: Pick<Clock, "now">;
}

interface Staying {
  readonly sessionHash: string;
  readonly personId: string | undefined;
  readonly end: () => void;
}

export function createSessionRegistry({ people, secrets, clock }: SessionRegistryDeps): SessionRegistry {
  const resume = createResume({ people, secrets, clock });
  const watched = new Set<Staying>();

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
      // Once more: it may have ended between the look and the line before.
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
      const theirs = [...watched].filter((one) => one.personId === personId);
      const now = clock.now();
      // One that can't be asked about is ended too: whoever has it comes back and is judged then.
      const isOver = ({ sessionHash }: Staying) => people.session(sessionHash, now).then((who) => who === null);
      await Promise.all(
        theirs.map(async (one) => {
          if (await isOver(one).catch(() => true)) one.end();
        }),
      );
    },
  };
}

/** Where a request of somebody who wants in comes from. */
export interface RequestSource {
  /** The network that it comes from, as `clientOf` names it. */
  readonly client: string;
  /** The token of a device, as it was sent; null: none. */
  readonly deviceToken: string | null;
  /** What the browser's storage holds for the session, as its page sent it; null: no script ran, or no page sent this. */
  readonly sessionSecret: string | null;
}

interface DeviceDeps {
  readonly people: Pick<PeopleStore, "find">;
  readonly secrets: Pick<Secrets, "readDeviceToken">;
  readonly clock: Pick<Clock, "now">;
}

/** The person of an address, looked up only for whoever proves to have logged in by this device before. */
interface Recognized {
  readonly member: Member;
  readonly device: KnownDevice;
}

/** Whether somebody has logged in as the person of this address on this device before; null: not that we know. */
export function createRecognize({ people, secrets, clock }: DeviceDeps) {
  return async (email: string, { deviceToken }: RequestSource): Promise<Recognized | null> => {
    const device = deviceToken === null ? null : secrets.readDeviceToken(deviceToken);
    if (device === null || device.expiresAt <= clock.now()) return null;
    const member = await people.find(email);
    return member?.person.id === device.personId ? { member, device } : null;
  };
}

/** In which line a password waits to be hashed. */
export function turnOf({ client }: RequestSource, personId: string | null): Turn {
  return personId === null ? { lane: client, isKnown: false } : { lane: personId, isKnown: true };
}

interface LogOutDeps {
  readonly people: Pick<PeopleStore, "endSession">;
  readonly secrets: Pick<Secrets, "hash">;
  readonly clock: Pick<Clock, "now">;
  readonly sessionRegistry: Pick<SessionRegistry, "ended">;
}

/** Ends the session of a token, which is the caller's (null: nobody's any more), everywhere, and what is still open by it; one that has ended before is no error. */
export function createLogOut({ people, secrets, clock, sessionRegistry }: LogOutDeps) {
  return async (sessionToken: string, caller: Caller | null): Promise<void> => {
    const hash = secrets.hash(sessionToken);
    const told =
      caller === null ? undefined : auditOf(caller, { kind: "signed_out", subject: caller.keyName }, clock.now());
    await people.endSession(hash, told);
    sessionRegistry.ended(hash);
  };
}

/** Somebody who is logged in. */
export interface Person {
  /** An owner of the account; decisions are written down under the person's address. */
  readonly caller: Caller;
  readonly email: string;
  /** Stands in every form that changes something: it proves that the page was made for this very session. */
  readonly formToken: string;
  /** Of the token of their session. */
  readonly sessionHash: string;
  /** Of the secret that their browser's storage holds; null: none is known. */
  readonly secretHash: string | null;
}

/** A person in an account. */
interface Who {
  readonly person: Pick<PersonRow, "id" | "email">;
  readonly accountId: string;
  readonly secretHash: string | null;
}

/** Who has the session of this token. The form's token follows from it, and says nothing about it or its stored hash. */
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
