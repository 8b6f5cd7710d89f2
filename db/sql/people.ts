import {
  and,
  desc,
  eq,
  exists,
  getTableColumns,
  gt,
  inArray,
  isNull,
  lte,
  ne,
  type Placeholder,
  type SQL,
  sql,
} from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import { mayDo } from "../../src/core/roles.ts";
import type { AuditEntry } from "../../src/core/audit.ts";
import { SESSIONS_PER_PERSON_MAX } from "../../src/core/limits.ts";
import {
  type Member,
  type PeopleStore,
  type PersonRow,
  type SessionRow,
  type SignUp,
  type WelcomeLink,
  emailKey,
} from "../../src/core/account-store.ts";
import { hasNoHold, signedUpRows } from "./accounts.ts";
import { auditChange } from "./audit.ts";
import type { StoreContext } from "./context.ts";
import { always, isSame } from "./dialect.ts";
import { firstPersonLock, signUpLock } from "./locks.ts";
import { type Args, changed, insertWhere, prepare, query, typed, valuesOf } from "./query.ts";
import { accounts, members, people, sessions, welcomeLinks } from "../libsql/schema.ts";
import type { Lock, Statement } from "./sql.ts";

/** People, their sessions and welcome links: rarely read or written, so not optimised. */
export function createPeopleStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): PeopleStore {
  /** Whether the first statement wrote a row. */
  const isWritten = async (statements: readonly Statement[], locks: readonly Lock[] = []) =>
    (await writer.write(statements, locks))[0]?.changes === 1;
  const findLink = async (hash: string, now: Date) => (await LIVE_LINK.read(reader, { hash, now }))[0] ?? null;
  return {
    async find(email) {
      const [member] = await FIND.read(reader, { emailKey: emailKey(email) });
      return member === undefined ? null : memberOf(member);
    },
    async labelOf(accountId) {
      const [[named], [first]] = await Promise.all([
        ACCOUNT_NAME.read(reader, { accountId }),
        FIRST_EMAIL.read(reader, { accountId }),
      ]);
      return { name: named?.name ?? null, email: first?.email ?? null };
    },
    async renameAccount(accountId, name, audit) {
      await writer.write([RENAME.bind({ accountId, name }), ...auditChange(audit)]);
    },
    async mayApprove(accountId, email) {
      const [member] = await IS_IN.read(reader, { accountId, emailKey: emailKey(email) });
      return member !== undefined && mayDo(member.role, "approve");
    },
    signUp: (all) => isWritten(signUp(all), all.untilHold === true ? [signUpLock] : []),
    addSession: (session, passwordHash, audit) => isWritten(addSession(session, passwordHash, audit)),
    async session(hash, now) {
      const [found] = await SESSION.read(reader, { hash, now });
      if (found === undefined) return null;
      const { secretHash, lastSeenAt, hasOthers } = found;
      return { ...memberOf(found), secretHash, lastSeenAt, hasOthers };
    },
    async renewSessionSecret(hash, secretHash, passwordHash) {
      await writer.write([RENEW_SECRET.bind({ hash, secretHash, passwordHash })]);
    },
    async endSession(hash, audit) {
      await writer.write([END_SESSION.bind({ hash }), ...auditChange(audit)]);
    },
    ...ownSessions({ sql: reader, writer }),
    async offer(link) {
      const offer = [VOID_LINKS.bind({ ...link }), OFFER.bind({ ...link })];
      const [, offered] = await writer.write(offer, [firstPersonLock(link.accountId)]);
      return offered?.changes === 1;
    },
    link: findLink,
    async welcome(link, person, session, audit) {
      if (await isWritten(welcome(link, person, session, audit), [firstPersonLock(session.accountId)])) return "taken";
      // Nothing was written: the link can't be used, or the address is taken.
      return (await findLink(link, session.createdAt)) === null ? "gone" : "email_taken";
    },
    renewPassword: (link, passwordHash, session, audit) => isWritten(renewPassword(link, passwordHash, session, audit)),
    changePassword: (session, passwordHash, nextHash, audit) =>
      isWritten(changePassword(session, passwordHash, nextHash, audit)),
    async prune(now) {
      const pruned = await writer.write([PRUNE_SESSIONS.bind({ now }), PRUNE_LINKS.bind({ now })]);
      return pruned.some(({ changes }) => changes > 0);
    },
  };
}

/** What a person does with their own sessions. */
function ownSessions({
  sql: reader,
  writer,
}: Pick<StoreContext, "sql" | "writer">): Pick<
  PeopleStore,
  "sessionsOf" | "endSessions" | "sessionSeen" | "switchAccount"
> {
  return {
    sessionsOf: (personId, now) => SESSIONS.read(reader, { personId, now }),
    async endSessions(personId, which, audit) {
      const end =
        "only" in which
          ? END_ONE.bind({ personId, hash: which.only })
          : END_REST.bind({ personId, hash: which.except });
      const [ended] = await writer.write([end, ...auditChange(audit)]);
      return ended?.changes ?? 0;
    },
    async sessionSeen(hash, at) {
      await writer.write([SEE_SESSION.bind({ hash, at }), SEE_ACCOUNT.bind({ hash, at })]);
    },
    async switchAccount(hash, accountId, at) {
      const rows = [SWITCH.bind({ hash, accountId }), SEE_SWITCHED.bind({ hash, accountId, at })];
      return (await writer.write(rows))[0]?.changes === 1;
    },
  };
}

const PERSON = { id: people.id, email: people.email, passwordHash: people.passwordHash, createdAt: people.createdAt };

export const MEMBER = { ...PERSON, accountId: members.accountId, role: members.role };

export function memberOf(row: PersonRow & Omit<Member, "person">): Member {
  const { accountId, role, id, email, passwordHash, createdAt } = row;
  return { person: { id, email, passwordHash, createdAt }, accountId, role };
}

/** People with their accounts. */
const joined = () => query.select(MEMBER).from(people).innerJoin(members, eq(members.personId, people.id));

/** The account that somebody used last, else the one that they joined first, comes first. */
export const lastUsedFirst = [desc(sql`coalesce(${members.lastSeenAt}, 0)`), members.joinedAt, members.accountId];

const FIND = prepare((arg: Args<"emailKey">) =>
  joined()
    .where(eq(people.emailKey, arg.emailKey))
    .orderBy(...lastUsedFirst)
    .limit(1),
);

const IS_IN = prepare((arg: Args<"emailKey" | "accountId">) =>
  joined().where(and(eq(people.emailKey, arg.emailKey), eq(members.accountId, arg.accountId))),
);

const ACCOUNT_NAME = prepare((arg: Args<"accountId">) =>
  query.select({ name: accounts.name }).from(accounts).where(eq(accounts.id, arg.accountId)),
);

const RENAME = prepare((arg: Args<"accountId" | "name">) =>
  query
    .update(accounts)
    .set({ name: sql`${arg.name}` })
    .where(eq(accounts.id, arg.accountId)),
);

const FIRST_EMAIL = prepare((arg: Args<"accountId">) => {
  const first = joined().where(eq(members.accountId, arg.accountId));
  return first.orderBy(members.joinedAt, members.personId).limit(1);
});

/** The join ends a session of someone who left the account. */
const SESSION = prepare((arg: Args<"hash" | "now">) => {
  const isMember = and(eq(members.accountId, sessions.accountId), eq(members.personId, sessions.personId));
  const other = alias(members, "other");
  const others = query.select({ id: other.accountId }).from(other);
  const isOther = and(eq(other.personId, members.personId), ne(other.accountId, members.accountId));
  const hasOthers = sql<boolean>`${exists(others.where(isOther))}`.mapWith(Boolean).as("has_others");
  return query
    .select({ ...MEMBER, secretHash: sessions.secretHash, lastSeenAt: sessions.lastSeenAt, hasOthers })
    .from(sessions)
    .innerJoin(people, eq(people.id, sessions.personId))
    .innerJoin(members, isMember)
    .where(and(eq(sessions.hash, arg.hash), gt(sessions.expiresAt, arg.now)));
});

const isLive = (hash: Placeholder, now: Placeholder) =>
  and(eq(welcomeLinks.hash, hash), gt(welcomeLinks.expiresAt, now));

const LIVE_LINK = prepare((arg: Args<"hash" | "now">) =>
  query
    .select({
      personId: welcomeLinks.personId,
      accountId: welcomeLinks.accountId,
      email: people.email,
      role: members.role,
    })
    .from(welcomeLinks)
    .leftJoin(people, eq(people.id, welcomeLinks.personId))
    .leftJoin(members, and(eq(members.accountId, welcomeLinks.accountId), eq(members.personId, welcomeLinks.personId)))
    .where(isLive(arg.hash, arg.now)),
);

/**
 * A chain, like the change of an action: the first statement decides, and each following one writes only where the one
 * before did. Of two racing uses of one address or link, one wins.
 */
export const insertPerson = <Name extends string = never>(condition: (arg: Args<Name>) => SQL) =>
  prepare((arg: Args<keyof PersonRow | "emailKey" | Name>) =>
    insertWhere(people, condition(arg), {
      ...valuesOf(arg, ["id", "email", "passwordHash", "createdAt"]),
      emailKey: arg.emailKey,
    }).onConflictDoNothing({ target: people.emailKey }),
  );

// Safe: an object's own keys.
const SESSION_COLUMNS = Object.keys(getTableColumns(sessions)) as (keyof SessionRow)[];

const insertSession = <Name extends string = never>(condition: (arg: Args<Name | keyof SessionRow>) => SQL) =>
  prepare((arg: Args<keyof SessionRow | Name>) =>
    insertWhere(sessions, condition(arg), valuesOf<keyof SessionRow>(arg, SESSION_COLUMNS)),
  );

export const ADD_SESSION = insertSession(() => changed);

const ADD_MEMBER = prepare((arg: Args<"accountId" | "personId" | "joinedAt">) =>
  insertWhere(members, changed, valuesOf(arg, ["accountId", "personId", "joinedAt"])),
);

const SESSIONS = prepare((arg: Args<"personId" | "now">) =>
  query
    .select()
    .from(sessions)
    .where(and(eq(sessions.personId, arg.personId), gt(sessions.expiresAt, arg.now)))
    .orderBy(desc(sessions.createdAt), desc(sessions.hash))
    .limit(SESSIONS_PER_PERSON_MAX),
);

const END_ONE = prepare((arg: Args<"personId" | "hash">) =>
  query.delete(sessions).where(and(eq(sessions.personId, arg.personId), eq(sessions.hash, arg.hash))),
);

const END_REST = prepare((arg: Args<"personId" | "hash">) =>
  query.delete(sessions).where(and(eq(sessions.personId, arg.personId), ne(sessions.hash, arg.hash))),
);

const SEE_SESSION = prepare((arg: Args<"hash" | "at">) =>
  query
    .update(sessions)
    .set({ lastSeenAt: sql`${arg.at}` })
    .where(eq(sessions.hash, arg.hash)),
);

/** The account of the session. */
const SEE_ACCOUNT = prepare((arg: Args<"hash" | "at">) => {
  const account = query.select({ id: sessions.accountId }).from(sessions).where(eq(sessions.hash, arg.hash));
  const person = query.select({ id: sessions.personId }).from(sessions).where(eq(sessions.hash, arg.hash));
  return query
    .update(members)
    .set({ lastSeenAt: sql`${arg.at}` })
    .where(and(inArray(members.accountId, account), inArray(members.personId, person)));
});

/** The account that the statement before took the session to. */
const SEE_SWITCHED = prepare((arg: Args<"hash" | "accountId" | "at">) => {
  const person = query.select({ id: sessions.personId }).from(sessions).where(eq(sessions.hash, arg.hash));
  return query
    .update(members)
    .set({ lastSeenAt: sql`${arg.at}` })
    .where(and(eq(members.accountId, arg.accountId), inArray(members.personId, person), changed));
});

/** Only to an account that its person is in. */
export const SWITCH = prepare((arg: Args<"hash" | "accountId">) => {
  const memberships = query.select({ id: members.accountId }).from(members);
  const isOwn = sql`${members.accountId} = ${arg.accountId} and ${members.personId} = ${sessions.personId}`;
  return query
    .update(sessions)
    .set({ accountId: sql`${arg.accountId}` })
    .where(and(eq(sessions.hash, arg.hash), exists(memberships.where(isOwn))));
});

const SIGN_UP = insertPerson(() => always);

const SIGN_UP_WHILE_OPEN = insertPerson(() => hasNoHold);

/** The first statement writes one row if the address is free and sign-ups are open. */
function signUp(all: SignUp): readonly Statement[] {
  const { account, person, session, audit = [], untilHold = false } = all;
  return [
    (untilHold ? SIGN_UP_WHILE_OPEN : SIGN_UP).bind(personValues(person)),
    ...signedUpRows(all),
    ADD_MEMBER.bind({ accountId: account.id, personId: person.id, joinedAt: person.createdAt }),
    ADD_SESSION.bind({ ...session }),
    ...audit.flatMap(auditChange),
  ];
}

export function personValues(person: PersonRow) {
  return { ...person, emailKey: emailKey(person.email) };
}

const hasPassword = (arg: Args<"personId" | "passwordHash">) =>
  exists(
    query
      .select({ id: people.id })
      .from(people)
      .where(and(eq(people.id, arg.personId), eq(people.passwordHash, arg.passwordHash))),
  );

const BEGIN_SESSION = insertSession((arg: Args<"personId" | "passwordHash">) => hasPassword(arg));

/** The oldest sessions beyond the bound. Excludes the new session: after a clock was set back it would look like the oldest. */
export const END_OLDEST = prepare((arg: Args<"personId" | "hash">) => {
  const others = query.select({ hash: sessions.hash }).from(sessions);
  const isOther = and(eq(sessions.personId, arg.personId), ne(sessions.hash, arg.hash));
  const newestFirst = others.where(isOther).orderBy(desc(sessions.createdAt), desc(sessions.hash));
  return query
    .delete(sessions)
    .where(inArray(sessions.hash, newestFirst.limit(Number.MAX_SAFE_INTEGER).offset(SESSIONS_PER_PERSON_MAX - 1)));
});

/** The first statement writes one row while the password is the one that was checked. */
function addSession(session: SessionRow, passwordHash: string, audit?: AuditEntry): readonly Statement[] {
  const { personId, hash } = session;
  return [BEGIN_SESSION.bind({ ...session, passwordHash }), ...auditChange(audit), END_OLDEST.bind({ personId, hash })];
}

/** Only while the password is the one that was checked. */
const RENEW_SECRET = prepare((arg: Args<"hash" | "secretHash" | "passwordHash">) => {
  const isOfPerson = sql`${people.id} = ${sessions.personId}`;
  const owner = query.select({ id: people.id }).from(people);
  const isChecked = exists(owner.where(and(isOfPerson, eq(people.passwordHash, arg.passwordHash))));
  const secret = { secretHash: sql`${arg.secretHash}` };
  return query
    .update(sessions)
    .set(secret)
    .where(and(eq(sessions.hash, arg.hash), isChecked));
});

const END_SESSION = prepare((arg: Args<"hash">) => query.delete(sessions).where(eq(sessions.hash, arg.hash)));

const END_OTHERS = prepare((arg: Args<"personId" | "hash">) =>
  query.delete(sessions).where(and(eq(sessions.personId, arg.personId), ne(sessions.hash, arg.hash), changed)),
);

const VOID_LINKS = prepare((arg: Args<"accountId" | "personId">) =>
  query
    .delete(welcomeLinks)
    .where(and(eq(welcomeLinks.accountId, arg.accountId), isSame(welcomeLinks.personId, arg.personId))),
);

const hasMember = (arg: Args<"accountId">) =>
  exists(query.select({ personId: members.personId }).from(members).where(eq(members.accountId, arg.accountId)));

/** Writes one row unless it would invite a first person and the account has one. */
const OFFER = prepare((arg: Args<keyof WelcomeLink>) =>
  insertWhere(
    welcomeLinks,
    sql`(${typed(arg.personId, welcomeLinks.personId)} is not null or not ${hasMember(arg)})`,
    valuesOf(arg, ["hash", "personId", "accountId", "createdAt", "expiresAt"]),
  ),
);

const liveLink = (arg: Args<"link" | "now">, condition: SQL | undefined) =>
  exists(
    query
      .select({ hash: welcomeLinks.hash })
      .from(welcomeLinks)
      .where(and(isLive(arg.link, arg.now), condition)),
  );

const WELCOME = insertPerson((arg: Args<"link" | "now" | "accountId">) => {
  const isInvitation = and(eq(welcomeLinks.accountId, arg.accountId), isNull(welcomeLinks.personId));
  return sql`${liveLink(arg, isInvitation)} and not ${hasMember(arg)}`;
});

const SPEND = prepare((arg: Args<"link">) =>
  query.delete(welcomeLinks).where(and(eq(welcomeLinks.hash, arg.link), changed)),
);

/** The first statement writes one row if the link can be used and the address is free. */
function welcome(link: string, person: PersonRow, session: SessionRow, audit?: AuditEntry): readonly Statement[] {
  const { accountId, createdAt } = session;
  return [
    WELCOME.bind({ ...personValues(person), link, now: createdAt, accountId }),
    ADD_MEMBER.bind({ accountId, personId: person.id, joinedAt: createdAt }),
    ADD_SESSION.bind({ ...session }),
    SPEND.bind({ link }),
    ...auditChange(audit),
  ];
}

const RENEW_PASSWORD = prepare((arg: Args<"link" | "now" | "personId" | "passwordHash">) => {
  const isReset = liveLink(arg, eq(welcomeLinks.personId, arg.personId));
  const password = { passwordHash: sql`${arg.passwordHash}` };
  return query
    .update(people)
    .set(password)
    .where(and(eq(people.id, arg.personId), isReset));
});

/** The first statement writes one row if the link can be used. Sessions opened with the old password end. */
function renewPassword(
  link: string,
  passwordHash: string,
  session: SessionRow,
  audit?: AuditEntry,
): readonly Statement[] {
  const { personId, createdAt, hash } = session;
  return [
    RENEW_PASSWORD.bind({ link, now: createdAt, personId, passwordHash }),
    ADD_SESSION.bind({ ...session }),
    SPEND.bind({ link }),
    ...auditChange(audit),
    END_OTHERS.bind({ personId, hash }),
  ];
}

const CHANGE_PASSWORD = prepare((arg: Args<"personId" | "passwordHash" | "nextHash">) =>
  query
    .update(people)
    .set({ passwordHash: sql`${arg.nextHash}` })
    .where(and(eq(people.id, arg.personId), eq(people.passwordHash, arg.passwordHash))),
);

/** Where the chain wrote its session: the statement before may have had nothing to delete. */
const VOID_RESETS = prepare((arg: Args<"personId" | "hash">) => {
  const ofPerson = query.select({ id: members.accountId }).from(members).where(eq(members.personId, arg.personId));
  const isOfPerson = and(inArray(welcomeLinks.accountId, ofPerson), eq(welcomeLinks.personId, arg.personId));
  const session = query.select({ hash: sessions.hash }).from(sessions).where(eq(sessions.hash, arg.hash));
  return query.delete(welcomeLinks).where(and(isOfPerson, exists(session)));
});

/** The first statement writes one row while the password is the one that was checked. */
function changePassword(
  session: SessionRow,
  passwordHash: string,
  nextHash: string,
  audit?: AuditEntry,
): readonly Statement[] {
  const { personId, hash } = session;
  return [
    CHANGE_PASSWORD.bind({ personId, passwordHash, nextHash }),
    ADD_SESSION.bind({ ...session }),
    ...auditChange(audit),
    END_OTHERS.bind({ personId, hash }),
    VOID_RESETS.bind({ personId, hash }),
  ];
}

/** Rows deleted per pass and table, so that it never blocks the writer for long. */
const PRUNE_ROWS = 500;

const PRUNE_SESSIONS = prepare((arg: Args<"now">) => {
  const ended = query.select({ hash: sessions.hash }).from(sessions).where(lte(sessions.expiresAt, arg.now));
  return query.delete(sessions).where(inArray(sessions.hash, ended.limit(PRUNE_ROWS)));
});

const PRUNE_LINKS = prepare((arg: Args<"now">) => {
  const ended = query
    .select({ hash: welcomeLinks.hash })
    .from(welcomeLinks)
    .where(lte(welcomeLinks.expiresAt, arg.now));
  return query.delete(welcomeLinks).where(inArray(welcomeLinks.hash, ended.limit(PRUNE_ROWS)));
});
