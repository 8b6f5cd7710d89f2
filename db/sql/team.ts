import { and, desc, eq, getTableColumns, gt, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import { emailKey } from "../../src/core/account-store.ts";
import type { Invitation, StoredInvitation, TeamStore } from "../../src/core/team-store.ts";
import { managersOf } from "../commands/managers.ts";
import * as commands from "../commands/team.ts";
import type { StoreContext } from "./context.ts";
import { lastUsedFirst, MEMBER, memberOf } from "./people.ts";
import { type Args, prepare, query } from "./query.ts";
import { accounts, apiKeys, identities, invitations, members, people } from "../libsql/schema.ts";

/** The people of accounts, their invitations and identities. */
export function createTeamStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): TeamStore {
  return {
    members: (accountId, limit) => MEMBERS.read(reader, { accountId, limit }),
    member: async (accountId, personId) => (await ONE.read(reader, { accountId, personId }))[0] ?? null,
    async managers(accountId, now) {
      return new Set((await MANAGERS.read(reader, { accountId, now })).map(({ id }) => id));
    },
    accountsOf: (personId, limit) => ACCOUNTS.read(reader, { personId, limit }),
    changeRole: (accountId, personId, role, audit) =>
      writer.run(commands.changeRole, { accountId, personId, role, audit }),
    remove: (accountId, personId, audit) => writer.run(commands.remove, { accountId, personId, audit }),
    invite: (invitation, mail, audit) => writer.run(commands.invite, { invitation, mail, audit }),
    async invitations(accountId, now, limit) {
      return (await INVITATIONS.read(reader, { accountId, now, limit })).map(withoutHash);
    },
    withdraw: (accountId, id, audit) => writer.run(commands.withdraw, { accountId, id, audit }),
    async invitation(by, now) {
      const found =
        "hash" in by ? BY_HASH.read(reader, { hash: by.hash, now }) : BY_ID.read(reader, { id: by.id, now });
      return (await found)[0] ?? null;
    },
    invitationsOf: (email, now, limit) => OF_ADDRESS.read(reader, { emailKey: emailKey(email), now, limit }),
    join: (joining) => writer.run(commands.join, joining),
    async identified(identity) {
      const [found] = await IDENTIFIED.read(reader, { ...identity });
      return found === undefined ? null : memberOf(found);
    },
    signIn: (session, identity, more) => writer.run(commands.signIn, { session, identity, ...more }),
    prune: (now) => writer.run(commands.prune, { now }),
  };
}

function withoutHash(stored: StoredInvitation): Invitation {
  const { hash: _, ...invitation } = stored;
  return invitation;
}

const listed = () =>
  query
    .select({
      personId: members.personId,
      email: people.email,
      role: members.role,
      joinedAt: members.joinedAt,
      lastSeenAt: members.lastSeenAt,
    })
    .from(members)
    .innerJoin(people, eq(people.id, members.personId));

const MEMBERS = prepare((arg: Args<"accountId" | "limit">) =>
  listed().where(eq(members.accountId, arg.accountId)).orderBy(members.joinedAt, members.personId).limit(arg.limit),
);

const ONE = prepare((arg: Args<"accountId" | "personId">) =>
  listed().where(and(eq(members.accountId, arg.accountId), eq(members.personId, arg.personId))),
);

const ACCOUNTS = prepare((arg: Args<"personId" | "limit">) => {
  const first = alias(members, "first_members");
  const emails = query.select({ email: people.email }).from(first).innerJoin(people, eq(people.id, first.personId));
  const email = emails.where(eq(first.accountId, members.accountId)).orderBy(first.joinedAt, first.personId).limit(1);
  return query
    .select({
      accountId: members.accountId,
      role: members.role,
      email: sql<string | null>`${email}`.as("first_email"),
      name: accounts.name,
    })
    .from(members)
    .leftJoin(accounts, eq(accounts.id, members.accountId))
    .where(eq(members.personId, arg.personId))
    .orderBy(...lastUsedFirst)
    .limit(arg.limit);
});

const { emailKey: _, ...INVITATION_COLUMNS } = getTableColumns(invitations);

const INVITATIONS = prepare((arg: Args<"accountId" | "now" | "limit">) =>
  query
    .select(INVITATION_COLUMNS)
    .from(invitations)
    .where(and(eq(invitations.accountId, arg.accountId), gt(invitations.expiresAt, arg.now)))
    .orderBy(desc(invitations.createdAt), invitations.id)
    .limit(arg.limit),
);

const BY_HASH = prepare((arg: Args<"hash" | "now">) =>
  query
    .select(INVITATION_COLUMNS)
    .from(invitations)
    .where(and(eq(invitations.hash, arg.hash), gt(invitations.expiresAt, arg.now))),
);

const BY_ID = prepare((arg: Args<"id" | "now">) =>
  query
    .select(INVITATION_COLUMNS)
    .from(invitations)
    .where(and(eq(invitations.id, arg.id), gt(invitations.expiresAt, arg.now))),
);

const OF_ADDRESS = prepare((arg: Args<"emailKey" | "now" | "limit">) =>
  query
    .select(INVITATION_COLUMNS)
    .from(invitations)
    .where(and(eq(invitations.emailKey, arg.emailKey), gt(invitations.expiresAt, arg.now)))
    .orderBy(desc(invitations.createdAt), invitations.id)
    .limit(arg.limit),
);

const MANAGERS = prepare((arg: Args<"accountId" | "now">) => managersOf({ apiKeys, members }, arg.accountId, arg.now));

const IDENTIFIED = prepare((arg: Args<"issuer" | "subject">) =>
  query
    .select(MEMBER)
    .from(identities)
    .innerJoin(people, eq(people.id, identities.personId))
    .innerJoin(members, eq(members.personId, people.id))
    .where(and(eq(identities.issuer, arg.issuer), eq(identities.subject, arg.subject)))
    .orderBy(...lastUsedFirst)
    .limit(1),
);
