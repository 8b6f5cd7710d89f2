import { and, desc, eq, exists, gt, ne, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import { emailKey, type Member, type PeopleStore, type PersonRow } from "../../src/core/account-store.ts";
import { SESSIONS_PER_PERSON_MAX } from "../../src/core/limits.ts";
import { mayDo } from "../../src/core/roles.ts";
import * as commands from "../commands/people.ts";
import { readFirstId } from "./accounts.ts";
import type { Tables } from "../commands/command.ts";
import type { StoreContext } from "./context.ts";
import type { Dialect } from "./dialect.ts";
import { read } from "./read.ts";

/** People, their sessions and welcome links. */
export function createPeopleStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): PeopleStore {
  return {
    async find(email) {
      const member = await FIND.get(reader, { emailKey: emailKey(email) });
      return member === null ? null : memberOf(member);
    },
    async labelOf(accountId) {
      const [named, first] = await Promise.all([
        ACCOUNT_NAME.get(reader, { accountId }),
        FIRST_EMAIL.get(reader, { accountId }),
      ]);
      return { name: named?.name ?? null, email: first?.email ?? null };
    },
    renameAccount: (accountId, name, audit) => writer.run(commands.rename, { accountId, name, audit }),
    async mayApprove(accountId, email) {
      const member = await IS_IN.get(reader, { accountId, emailKey: emailKey(email) });
      return member !== null && mayDo(member.role, "approve");
    },
    async signUp(signUp) {
      const firstAccountId = signUp.untilHold === true ? await readFirstId(reader) : null;
      return writer.run(commands.signUp, { ...signUp, firstAccountId });
    },
    addSession: (session, passwordHash, audit) => writer.run(commands.beginSession, { session, passwordHash, audit }),
    async session(hash, now) {
      const found = await SESSION.get(reader, { hash, now });
      if (found === null) return null;
      const { secretHash, lastSeenAt, hasOthers } = found;
      return { ...memberOf(found), secretHash, lastSeenAt, hasOthers };
    },
    renewSessionSecret: (hash, secretHash, passwordHash) =>
      writer.run(commands.renewSecret, { hash, secretHash, passwordHash }),
    endSession: (hash, audit) => writer.run(commands.endSession, { hash, audit }),
    sessionsOf: (personId, now) => SESSIONS.all(reader, { personId, now }),
    endSessions: (personId, which, audit) => writer.run(commands.endSessions, { personId, which, audit }),
    sessionSeen: (hash, at) => writer.run(commands.seeSession, { hash, at }),
    switchAccount: (hash, accountId, at) => writer.run(commands.switchAccount, { hash, accountId, at }),
    offer: (link) => writer.run(commands.offer, link),
    link: (hash, now) => LIVE_LINK.get(reader, { hash, now }),
    welcome: (link, person, session, audit) => writer.run(commands.welcome, { link, person, session, audit }),
    renewPassword: (link, passwordHash, session, audit) =>
      writer.run(commands.renewPassword, { link, passwordHash, session, audit }),
    changePassword: (session, passwordHash, nextHash, audit) =>
      writer.run(commands.changePassword, { session, passwordHash, nextHash, audit }),
    prune: (now) => writer.run(commands.prune, { now }),
  };
}

export function memberColumns({ people, members }: Tables) {
  const { id, email, passwordHash, createdAt } = people;
  return { id, email, passwordHash, createdAt, accountId: members.accountId, role: members.role };
}

export function memberOf(row: PersonRow & Omit<Member, "person">): Member {
  const { accountId, role, id, email, passwordHash, createdAt } = row;
  return { person: { id, email, passwordHash, createdAt }, accountId, role };
}

/** People with their accounts. */
const joined = ({ db, tables }: Dialect) =>
  db
    .select(memberColumns(tables))
    .from(tables.people)
    .innerJoin(tables.members, eq(tables.members.personId, tables.people.id));

/** The account that somebody used last, else the one that they joined first, comes first. */
export function lastUsedFirst({ members: { lastSeenAt, joinedAt, accountId } }: Tables) {
  return [desc(sql`coalesce(${lastSeenAt}, 0)`), joinedAt, accountId];
}

const FIND = read({ emailKey: "text" }, (dialect, arg) =>
  joined(dialect)
    .where(eq(dialect.tables.people.emailKey, arg.emailKey))
    .orderBy(...lastUsedFirst(dialect.tables))
    .limit(1),
);

const IS_IN = read({ emailKey: "text", accountId: "text" }, (dialect, arg) => {
  const { people, members } = dialect.tables;
  return joined(dialect).where(and(eq(people.emailKey, arg.emailKey), eq(members.accountId, arg.accountId)));
});

const ACCOUNT_NAME = read({ accountId: "text" }, ({ db, tables: { accounts } }, arg) =>
  db.select({ name: accounts.name }).from(accounts).where(eq(accounts.id, arg.accountId)),
);

const FIRST_EMAIL = read({ accountId: "text" }, (dialect, arg) => {
  const { accountId, joinedAt, personId } = dialect.tables.members;
  return joined(dialect).where(eq(accountId, arg.accountId)).orderBy(joinedAt, personId).limit(1);
});

/** The join ends a session of someone who left the account. */
const SESSION = read({ hash: "text", now: "time" }, ({ db, tables }, arg) => {
  const { members, sessions, people } = tables;
  const isMember = and(eq(members.accountId, sessions.accountId), eq(members.personId, sessions.personId));
  const other = alias(members, "other");
  const others = db.select({ id: other.accountId }).from(other);
  const isOther = and(eq(other.personId, members.personId), ne(other.accountId, members.accountId));
  const hasOthers = sql<boolean>`${exists(others.where(isOther))}`.mapWith(Boolean).as("has_others");
  return db
    .select({ ...memberColumns(tables), secretHash: sessions.secretHash, lastSeenAt: sessions.lastSeenAt, hasOthers })
    .from(sessions)
    .innerJoin(people, eq(people.id, sessions.personId))
    .innerJoin(members, isMember)
    .where(and(eq(sessions.hash, arg.hash), gt(sessions.expiresAt, arg.now)));
});

const LIVE_LINK = read({ hash: "text", now: "time" }, ({ db, tables: { welcomeLinks, people, members } }, arg) =>
  db
    .select({
      personId: welcomeLinks.personId,
      accountId: welcomeLinks.accountId,
      email: people.email,
      role: members.role,
    })
    .from(welcomeLinks)
    .leftJoin(people, eq(people.id, welcomeLinks.personId))
    .leftJoin(members, and(eq(members.accountId, welcomeLinks.accountId), eq(members.personId, welcomeLinks.personId)))
    .where(and(eq(welcomeLinks.hash, arg.hash), gt(welcomeLinks.expiresAt, arg.now))),
);

const SESSIONS = read({ personId: "text", now: "time" }, ({ db, tables: { sessions } }, arg) =>
  db
    .select()
    .from(sessions)
    .where(and(eq(sessions.personId, arg.personId), gt(sessions.expiresAt, arg.now)))
    .orderBy(desc(sessions.createdAt), desc(sessions.hash))
    .limit(SESSIONS_PER_PERSON_MAX),
);
