import type { AppPart } from "../runtime/app-context.ts";
import type { Person, StartedSession, SessionSource, SessionWatch } from "../core/session.ts";
import { auditEntry } from "../core/audit.ts";
import { DomainError } from "../core/domain-error.ts";
import {
  ACCOUNTS_OF_PERSON_SHOWN_MAX,
  DEVICE_MS_MAX,
  SESSION_MS_MAX,
  SESSION_SEEN_EVERY_MS,
  SESSIONS_READ_AT_ONCE_MAX,
} from "../core/limits.ts";
import type { PeopleStore, PersonRow, SessionRow } from "../core/account-store.ts";
import type { Secrets } from "../crypto/secrets.ts";
import type { Clock } from "../core/clock.ts";
import type { Caller, MemberRole, Role } from "../core/roles.ts";

interface SessionOwner {
  readonly person: Pick<PersonRow, "id" | "email">;
  readonly accountId: string;
  readonly role: MemberRole;
}

/** 128 bits. */
const DEVICE_ID_CHARS = 32;

/** A session of `SESSION_MS_MAX`: its row, and what the person gets. Its caller contains the client, for the audit log. */
export function newSession(
  secrets: Pick<Secrets, "deviceToken" | "hash" | "newToken">,
  { person: { id: personId, email }, accountId, role }: SessionOwner,
  { sessionSecret: secret, client, browser }: SessionSource,
  now: Date,
): { readonly row: SessionRow; readonly started: StartedSession } {
  const sessionToken = secrets.newToken();
  const secretHash = secret === null ? null : secrets.hash(secret);
  const owner = { person: { id: personId, email }, accountId, role, secretHash };
  const { caller, ...person } = personOfSession(sessionToken, owner, secrets);
  const deviceToken = secrets.deviceToken({
    personId,
    deviceId: secrets.newToken().slice(0, DEVICE_ID_CHARS),
    expiresAt: new Date(now.getTime() + DEVICE_MS_MAX),
  });
  return {
    row: {
      hash: person.sessionHash,
      personId,
      accountId,
      createdAt: now,
      expiresAt: new Date(now.getTime() + SESSION_MS_MAX),
      secretHash,
      client: client === "" ? null : client,
      browser,
      lastSeenAt: null,
    },
    started: { person: { ...person, caller: { ...caller, client } }, sessionToken, deviceToken },
  };
}

/**
 * The person of a session token. The form token is derived from it and reveals neither the token nor its hash. It is for one
 * account, so that a form loaded before the session switched to another account changes nothing there.
 */
export function personOfSession(
  sessionToken: string,
  {
    person: { id, email },
    accountId,
    role,
    secretHash,
    hasOthers = false,
  }: SessionOwner & Pick<Person, "secretHash"> & { readonly hasOthers?: boolean },
  secrets: Pick<Secrets, "hash">,
): Person {
  return {
    caller: {
      accountId,
      keyId: null,
      keyName: email,
      personId: id,
      role,
      hold: "none",
      actor: `user:${email}`,
    },
    email,
    role,
    hasOthers,
    formToken: secrets.hash(`form ${sessionToken} ${accountId}`),
    sessionHash: secrets.hash(sessionToken),
    secretHash,
  };
}

export type SessionService = ReturnType<typeof createSessionService>;

/** What people do with their sessions. A change closes the open streams that it affects. */
export function createSessionService(
  { store: { people, team }, clock }: AppPart<"clock", "people" | "team">,
  { secrets }: Pick<SessionDeps, "secrets">,
) {
  const registry = createSessionRegistry({ people, secrets, clock });
  const sessionId = ({ hash }: Pick<SessionRow, "hash">) => secrets.hash(`session ${hash}`).slice(0, SESSION_ID_CHARS);
  return {
    ...registry,

    /** The sessions of a person in all their accounts, newest first. */
    async list({ caller, sessionHash }: Person) {
      const rows = await people.sessionsOf(caller.personId ?? "", clock.now());
      return rows.map((row) => {
        const { createdAt, lastSeenAt, client, browser } = row;
        // Forms use this id. Without being logged in, nothing can be done with it.
        return { id: sessionId(row), createdAt, lastSeenAt, client, browser, isCurrent: row.hash === sessionHash };
      });
    },

    /** Logs out. Idempotent. `caller`: the session's person; null: it has ended. */
    async logOut(sessionToken: string, caller: Caller | null): Promise<void> {
      const hash = secrets.hash(sessionToken);
      const audit =
        caller === null ? undefined : auditEntry(caller, { kind: "signed_out", subject: caller.keyName }, clock.now());
      await people.endSession(hash, audit);
      registry.sessionEnded(hash);
    },

    /** Ends a session of the person; `id` null: all other sessions. Does nothing for one that has ended. */
    async end({ caller, email, sessionHash }: Person, id: string | null): Promise<void> {
      const now = clock.now();
      const personId = caller.personId ?? "";
      const one = (await people.sessionsOf(personId, now)).find((row) => sessionId(row) === id);
      if (id !== null && one === undefined) return;
      const which = one === undefined ? { except: sessionHash } : { only: one.hash };
      const detail = { which: id === null ? "others" : "one" };
      await people.endSessions(
        personId,
        which,
        auditEntry(caller, { kind: "sessions_ended", subject: email, detail }, now),
      );
      await registry.recheckPerson(personId);
    },

    /** The accounts of a person, the one used last first. */
    accountsOf: ({ caller }: Person) => team.accountsOf(caller.personId ?? "", ACCOUNTS_OF_PERSON_SHOWN_MAX),

    /** Switches the session to another account of its person. Throws `not_found` unless they are in it. */
    async switchTo({ caller, sessionHash }: Person, accountId: string): Promise<void> {
      if (!(await people.switchAccount(sessionHash, accountId, clock.now()))) {
        throw new DomainError("not_found", "You are not in this account.");
      }
      // Streams of this session show the account that it has left.
      await registry.recheckPerson(caller.personId ?? "");
    },
  };
}

const SESSION_ID_CHARS = 32;

interface SessionDeps {
  readonly people: Pick<PeopleStore, "session" | "sessionSeen">;
  readonly secrets: Pick<Secrets, "hash">;
  readonly clock: Pick<Clock, "now">;
}

/** A session with an open stream, which is for one account and shows what one role may see. */
interface Watched {
  readonly hash: string;
  readonly personId: string | undefined;
  readonly accountId: string;
  readonly role: Role;
  readonly session: AbortController;
}

/**
 * Reads sessions, and keeps those with open streams in this process, so that ending a session closes them at once.
 * `recheckSessions` notices sessions that another process ended; streams also check their session from time to time.
 */
export function createSessionRegistry({ people, secrets, clock }: SessionDeps) {
  const watched = new Set<Watched>();
  /** The person of a session, or null. Reads the store each time (20 µs), so that a session ends in every process at once. */
  const resume = async (sessionToken: string): Promise<Person | null> => {
    const [hash, now] = [secrets.hash(sessionToken), clock.now()];
    const member = await people.session(hash, now);
    if (member === null) return null;
    see(hash, member.lastSeenAt, now);
    return personOfSession(sessionToken, member, secrets);
  };

  /** Sessions whose last use is being written. */
  const seeing = new Set<string>();
  /** Notes the last use, in the background and not at each request: a full disk must not refuse anybody. */
  const see = (hash: string, lastSeenAt: Date | null, now: Date): void => {
    const isSeen = lastSeenAt !== null && Math.abs(now.getTime() - lastSeenAt.getTime()) < SESSION_SEEN_EVERY_MS;
    if (isSeen || seeing.has(hash)) return;
    seeing.add(hash);
    void people
      .sessionSeen(hash, now)
      .catch(() => {})
      .finally(() => seeing.delete(hash));
  };

  /** Closes the streams of a session that has ended, or has another account or role. Rejects if that can't be read. */
  const checkOne = async ({ hash, accountId, role, session }: Watched): Promise<void> => {
    const member = await people.session(hash, clock.now());
    if (member === null || member.accountId !== accountId || member.role !== role) session.abort();
  };

  return {
    resume,
    /** Null: the session has ended or never existed. */
    async watchSession(sessionToken: string): Promise<SessionWatch | null> {
      const person = await resume(sessionToken);
      if (person === null) return null;
      const { caller, sessionHash } = person;
      const { personId, accountId, role } = caller;
      const one = { hash: sessionHash, personId, accountId, role, session: new AbortController() };
      const release = () => void watched.delete(one);
      watched.add(one);
      // Read again: it may have ended before it was added.
      const still = await resume(sessionToken).catch((error: unknown) => {
        release();
        throw error;
      });
      if (still?.caller.accountId === accountId && still.role === person.role)
        return { caller: { ...caller, revoked: one.session.signal }, release };
      release();
      return null;
    },
    /** Closes the streams of a session. Call it after the write that ended the session. */
    sessionEnded(sessionHash: string): void {
      for (const { hash, session } of watched) if (hash === sessionHash) session.abort();
    },
    /** Closes the streams of a person that their sessions, accounts or roles don't allow any more. */
    async recheckPerson(personId: string): Promise<void> {
      const own = [...watched].filter((one) => one.personId === personId);
      // A session that can't be checked is also ended here: its client reconnects and is checked then.
      await Promise.all(own.map((one) => checkOne(one).catch(() => one.session.abort())));
    },
    /** Closes the streams of all sessions that other processes have ended. Rejects if that can't be read. */
    recheckSessions: async (): Promise<void> => {
      const all = [...watched];
      for (let at = 0; at < all.length; at += SESSIONS_READ_AT_ONCE_MAX) {
        await Promise.all(all.slice(at, at + SESSIONS_READ_AT_ONCE_MAX).map(checkOne));
      }
    },
  };
}
