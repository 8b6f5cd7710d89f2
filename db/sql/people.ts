import { and, desc, eq, exists, gt, ne, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import { emailKey, type Member, type PeopleStore, type PersonRow } from "../../src/core/account-store.ts";
import { SESSIONS_PER_PERSON_MAX } from "../../src/core/limits.ts";
import { mayDo } from "../../src/core/roles.ts";
import * as commands from "../commands/people.ts";
import { readFirstId } from "./accounts.ts";
import type { StoreContext } from "./context.ts";
import { type Args, prepare, query } from "./query.ts";
import { accounts, members, people, sessions, welcomeLinks } from "../libsql/schema.ts";

/** People, their sessions and welcome links. */
export function createPeopleStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): PeopleStore {
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
    renameAccount: (accountId, name, audit) => writer.run(commands.rename, { accountId, name, audit }),
    async mayApprove(accountId, email) {
      const [member] = await IS_IN.read(reader, { accountId, emailKey: emailKey(email) });
      return member !== undefined && mayDo(member.role, "approve");
    },
    async signUp(signUp) {
      const firstAccountId = signUp.untilHold === true ? await readFirstId(reader) : null;
      return writer.run(commands.signUp, { ...signUp, firstAccountId });
    },
    addSession: (session, passwordHash, audit) => writer.run(commands.beginSession, { session, passwordHash, audit }),
    async session(hash, now) {
      const [found] = await SESSION.read(reader, { hash, now });
      if (found === undefined) return null;
      const { secretHash, lastSeenAt, hasOthers } = found;
      return { ...memberOf(found), secretHash, lastSeenAt, hasOthers };
    },
    renewSessionSecret: (hash, secretHash, passwordHash) =>
      writer.run(commands.renewSecret, { hash, secretHash, passwordHash }),
    endSession: (hash, audit) => writer.run(commands.endSession, { hash, audit }),
    sessionsOf: (personId, now) => SESSIONS.read(reader, { personId, now }),
    endSessions: (personId, which, audit) => writer.run(commands.endSessions, { personId, which, audit }),
    sessionSeen: (hash, at) => writer.run(commands.seeSession, { hash, at }),
    switchAccount: (hash, accountId, at) => writer.run(commands.switchAccount, { hash, accountId, at }),
    offer: (link) => writer.run(commands.offer, link),
    link: async (hash, now) => (await LIVE_LINK.read(reader, { hash, now }))[0] ?? null,
    welcome: (link, person, session, audit) => writer.run(commands.welcome, { link, person, session, audit }),
    renewPassword: (link, passwordHash, session, audit) =>
      writer.run(commands.renewPassword, { link, passwordHash, session, audit }),
    changePassword: (session, passwordHash, nextHash, audit) =>
      writer.run(commands.changePassword, { session, passwordHash, nextHash, audit }),
    prune: (now) => writer.run(commands.prune, { now }),
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
    .where(and(eq(welcomeLinks.hash, arg.hash), gt(welcomeLinks.expiresAt, arg.now))),
);

const SESSIONS = prepare((arg: Args<"personId" | "now">) =>
  query
    .select()
    .from(sessions)
    .where(and(eq(sessions.personId, arg.personId), gt(sessions.expiresAt, arg.now)))
    .orderBy(desc(sessions.createdAt), desc(sessions.hash))
    .limit(SESSIONS_PER_PERSON_MAX),
);
