import { and, desc, eq, getTableColumns, gt, type Placeholder, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import { emailKey } from "../../src/core/account-store.ts";
import type { Invitation, StoredInvitation, TeamStore } from "../../src/core/team-store.ts";
import { managersOf } from "../commands/managers.ts";
import * as commands from "../commands/team.ts";
import type { StoreContext } from "./context.ts";
import type { Dialect } from "./dialect.ts";
import { lastUsedFirst, memberColumns, memberOf } from "./people.ts";
import { read } from "./read.ts";

/** The people of accounts, their invitations and identities. */
export function createTeamStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): TeamStore {
  return {
    members: (accountId, limit) => MEMBERS.all(reader, { accountId, limit }),
    member: (accountId, personId) => ONE.get(reader, { accountId, personId }),
    async managers(accountId, now) {
      return new Set((await MANAGERS.all(reader, { accountId, now })).map(({ id }) => id));
    },
    accountsOf: (personId, limit) => ACCOUNTS.all(reader, { personId, limit }),
    changeRole: (accountId, personId, role, audit) =>
      writer.run(commands.changeRole, { accountId, personId, role, audit }),
    remove: (accountId, personId, audit) => writer.run(commands.remove, { accountId, personId, audit }),
    invite: (invitation, mail, audit) => writer.run(commands.invite, { invitation, mail, audit }),
    async invitations(accountId, now, limit) {
      return (await INVITATIONS.all(reader, { accountId, now, limit })).map(withoutHash);
    },
    withdraw: (accountId, id, audit) => writer.run(commands.withdraw, { accountId, id, audit }),
    async invitation(by, now) {
      return "hash" in by ? BY_HASH.get(reader, { hash: by.hash, now }) : BY_ID.get(reader, { id: by.id, now });
    },
    invitationsOf: (email, now, limit) => OF_ADDRESS.all(reader, { emailKey: emailKey(email), now, limit }),
    join: (joining) => writer.run(commands.join, joining),
    async identified(identity) {
      const found = await IDENTIFIED.get(reader, identity);
      return found === null ? null : memberOf(found);
    },
    signIn: (session, identity, more) => writer.run(commands.signIn, { session, identity, ...more }),
    prune: (now) => writer.run(commands.prune, { now }),
  };
}

function withoutHash(stored: StoredInvitation): Invitation {
  const { hash: _, ...invitation } = stored;
  return invitation;
}

const listed = ({ db, tables: { members, people } }: Dialect) => {
  const { personId, role, joinedAt, lastSeenAt } = members;
  return db
    .select({ personId, email: people.email, role, joinedAt, lastSeenAt })
    .from(members)
    .innerJoin(people, eq(people.id, personId));
};

const MEMBERS = read({ accountId: "text", limit: "number" }, (dialect, arg) => {
  const { accountId, joinedAt, personId } = dialect.tables.members;
  return listed(dialect).where(eq(accountId, arg.accountId)).orderBy(joinedAt, personId).limit(arg.limit);
});

const ONE = read({ accountId: "text", personId: "text" }, (dialect, arg) => {
  const { accountId, personId } = dialect.tables.members;
  return listed(dialect).where(and(eq(accountId, arg.accountId), eq(personId, arg.personId)));
});

const ACCOUNTS = read({ personId: "text", limit: "number" }, ({ db, tables }, arg) => {
  const { members, people, accounts } = tables;
  const first = alias(members, "first_members");
  const emails = db.select({ email: people.email }).from(first).innerJoin(people, eq(people.id, first.personId));
  const email = emails.where(eq(first.accountId, members.accountId)).orderBy(first.joinedAt, first.personId).limit(1);
  return db
    .select({
      accountId: members.accountId,
      role: members.role,
      email: sql<string | null>`${email}`.as("first_email"),
      name: accounts.name,
    })
    .from(members)
    .leftJoin(accounts, eq(accounts.id, members.accountId))
    .where(eq(members.personId, arg.personId))
    .orderBy(...lastUsedFirst(tables))
    .limit(arg.limit);
});

/** Invitations that have not expired, the newest first. */
function live({ db, tables: { invitations } }: Dialect, condition: SQL, now: Placeholder) {
  const { emailKey: _, ...columns } = getTableColumns(invitations);
  return db
    .select(columns)
    .from(invitations)
    .where(and(condition, gt(invitations.expiresAt, now)))
    .orderBy(desc(invitations.createdAt), invitations.id);
}

const INVITATIONS = read({ accountId: "text", now: "time", limit: "number" }, (dialect, arg) =>
  live(dialect, eq(dialect.tables.invitations.accountId, arg.accountId), arg.now).limit(arg.limit),
);

const BY_HASH = read({ hash: "text", now: "time" }, (dialect, arg) =>
  live(dialect, eq(dialect.tables.invitations.hash, arg.hash), arg.now),
);

const BY_ID = read({ id: "text", now: "time" }, (dialect, arg) =>
  live(dialect, eq(dialect.tables.invitations.id, arg.id), arg.now),
);

const OF_ADDRESS = read({ emailKey: "text", now: "time", limit: "number" }, (dialect, arg) =>
  live(dialect, eq(dialect.tables.invitations.emailKey, arg.emailKey), arg.now).limit(arg.limit),
);

const MANAGERS = read({ accountId: "text", now: "time" }, ({ tables }, arg) =>
  managersOf(tables, arg.accountId, arg.now),
);

const IDENTIFIED = read({ issuer: "text", subject: "text" }, ({ db, tables }, arg) => {
  const { identities, people, members } = tables;
  return db
    .select(memberColumns(tables))
    .from(identities)
    .innerJoin(people, eq(people.id, identities.personId))
    .innerJoin(members, eq(members.personId, people.id))
    .where(and(eq(identities.issuer, arg.issuer), eq(identities.subject, arg.subject)))
    .orderBy(...lastUsedFirst(tables))
    .limit(1);
});
