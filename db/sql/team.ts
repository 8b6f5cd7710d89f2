import { emailKey } from "../../src/core/account-store.ts";
import {
  and,
  count,
  desc,
  eq,
  exists,
  getTableColumns,
  gt,
  inArray,
  lte,
  ne,
  notExists,
  or,
  sql,
  type SQL,
} from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import { INVITATIONS_OPEN_MAX, PEOPLE_PER_ACCOUNT_MAX } from "../../src/core/limits.ts";
import type {
  Identity,
  Invitation,
  Joining,
  MemberChange,
  StoredInvitation,
  TeamStore,
} from "../../src/core/team-store.ts";
import { auditChange } from "./audit.ts";
import type { StoreContext } from "./context.ts";
import { personLock, teamLock } from "./locks.ts";
import {
  ADD_SESSION,
  END_OLDEST,
  insertPerson,
  lastUsedFirst,
  MEMBER,
  memberOf,
  personValues,
  SWITCH,
} from "./people.ts";
import { allOf, type Args, changed, insertWhere, prepare, query, valuesOf } from "./query.ts";
import {
  accounts,
  apiKeys,
  identities,
  invitations,
  members,
  outbox,
  people,
  sessions,
  welcomeLinks,
} from "../libsql/schema.ts";
import type { Lock, Statement } from "./sql.ts";

/** The people of accounts, their invitations and identities: rarely written, so not optimised. */
export function createTeamStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): TeamStore {
  /** Whether the first statement wrote a row. */
  const isWritten = async (statements: readonly Statement[], locks: readonly Lock[]) =>
    (await writer.write(statements, locks))[0]?.changes === 1;
  const member = async (accountId: string, personId: string) =>
    (await ONE.read(reader, { accountId, personId }))[0] ?? null;
  /** Why nothing was written. */
  const refusal = async (accountId: string, personId: string): Promise<MemberChange> =>
    (await member(accountId, personId)) === null ? "gone" : "last_owner";
  return {
    members: (accountId, limit) => MEMBERS.read(reader, { accountId, limit }),
    member,
    async managers(accountId, now) {
      return new Set((await MANAGERS.read(reader, { accountId, now })).map(({ id }) => id));
    },
    accountsOf: (personId, limit) => ACCOUNTS.read(reader, { personId, limit }),
    async changeRole(accountId, personId, role, audit) {
      const rows = [CHANGE_ROLE.bind({ accountId, personId, role }), ...auditChange(audit)];
      return (await isWritten(rows, [teamLock(accountId)])) ? "done" : refusal(accountId, personId);
    },
    async remove(accountId, personId, audit) {
      const of = { accountId, personId };
      const forgotten = [FORGET, FORGET_SESSIONS, FORGET_IDENTITIES].map((each) => each.bind({ personId }));
      const rows = [REMOVE.bind(of), ...auditChange(audit), END_SESSIONS.bind(of), FORGET_LINKS.bind(of), ...forgotten];
      const locks = [teamLock(accountId), personLock(personId)];
      return (await isWritten(rows, locks)) ? "done" : refusal(accountId, personId);
    },
    ...createInvitationStore({ sql: reader, writer }),
    join: (joining) =>
      isWritten(join(joining), [teamLock(joining.invitation.accountId), personLock(joining.person.id)]),
    async identified(identity) {
      const [found] = await IDENTIFIED.read(reader, { ...identity });
      return found === undefined ? null : memberOf(found);
    },
    async signIn(session, identity, { audit, dropsPassword }) {
      const { accountId, personId, hash, createdAt } = session;
      const rows = [
        IDENTIFY.bind({ ...identity, personId, createdAt }),
        BEGIN.bind({ ...session, ...identity }),
        ...audit.flatMap(auditChange),
        SEE.bind({ accountId, personId, at: createdAt }),
        ...(dropsPassword ? [DROP_PASSWORD.bind({ personId, hash }), END_OTHERS.bind({ personId, hash })] : []),
        END_OLDEST.bind({ personId, hash }),
      ];
      const [, begun] = await writer.write(rows, [personLock(personId)]);
      return begun?.changes === 1;
    },
    async prune(now) {
      const pruned = await writer.write([PRUNE.bind({ now }), PRUNE_MAILS.bind({})]);
      return pruned.some(({ changes }) => changes > 0);
    },
  };
}

type InvitationStore = Pick<TeamStore, "invite" | "invitations" | "withdraw" | "invitation" | "invitationsOf">;

function createInvitationStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): InvitationStore {
  return {
    async invite(invitation, mail, audit) {
      const { accountId, email, createdAt: now } = invitation;
      const key = { accountId, emailKey: emailKey(email) };
      const [known] = await IS_MEMBER.read(reader, key);
      if (known !== undefined) return "member";
      const invited = INVITE.bind({ ...invitation, ...key, now });
      const sent =
        mail === null ? [] : [MAIL.bind({ ...mail, actionId: invitation.id, target: email, accountId, at: now })];
      const rows = [REPLACE.bind({ ...key, id: invitation.id }), invited, ...sent, ...auditChange(audit)];
      const [, written] = await writer.write(rows, [teamLock(accountId)]);
      return written?.changes === 1 ? "done" : "full";
    },
    async invitations(accountId, now, limit) {
      return (await INVITATIONS.read(reader, { accountId, now, limit })).map(withoutHash);
    },
    async withdraw(accountId, id, audit) {
      const rows = [WITHDRAW.bind({ accountId, id }), ...auditChange(audit)];
      return (await writer.write(rows, [teamLock(accountId)]))[0]?.changes === 1;
    },
    async invitation(by, now) {
      const found =
        "hash" in by ? BY_HASH.read(reader, { hash: by.hash, now }) : BY_ID.read(reader, { id: by.id, now });
      return (await found)[0] ?? null;
    },
    invitationsOf: (email, now, limit) => OF_ADDRESS.read(reader, { emailKey: emailKey(email), now, limit }),
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

type MemberArgs = Args<"accountId" | "personId">;

const isMember = (arg: MemberArgs) => and(eq(members.accountId, arg.accountId), eq(members.personId, arg.personId));

const ONE = prepare((arg: MemberArgs) => listed().where(isMember(arg)));

const IS_MEMBER = prepare((arg: Args<"accountId" | "emailKey">) =>
  listed().where(and(eq(members.accountId, arg.accountId), eq(people.emailKey, arg.emailKey))),
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

/** Holds while somebody else owns the account, or this one does not. */
function keepsOwner(arg: MemberArgs): SQL | undefined {
  const other = alias(members, "other_owners");
  const owners = query.select({ id: other.personId }).from(other);
  const isOther = and(eq(other.accountId, arg.accountId), eq(other.role, "owner"), ne(other.personId, arg.personId));
  return or(ne(members.role, "owner"), exists(owners.where(isOther)));
}

const CHANGE_ROLE = prepare((arg: MemberArgs & Args<"role">) =>
  query
    .update(members)
    .set({ role: sql`${arg.role}` })
    .where(and(isMember(arg), or(sql`${arg.role} = 'owner'`, keepsOwner(arg)))),
);

const REMOVE = prepare((arg: MemberArgs) => query.delete(members).where(and(isMember(arg), keepsOwner(arg))));

const left = (arg: MemberArgs) => notExists(query.select({ id: members.personId }).from(members).where(isMember(arg)));

const END_SESSIONS = prepare((arg: MemberArgs) =>
  query
    .delete(sessions)
    .where(and(eq(sessions.accountId, arg.accountId), eq(sessions.personId, arg.personId), left(arg))),
);

/** Whoever is in no account: their address is free again. */
const isNowhere = (arg: Args<"personId">) =>
  notExists(query.select({ id: members.personId }).from(members).where(eq(members.personId, arg.personId)));

const FORGET = prepare((arg: Args<"personId">) =>
  query.delete(people).where(and(eq(people.id, arg.personId), isNowhere(arg))),
);

const FORGET_SESSIONS = prepare((arg: Args<"personId">) =>
  query.delete(sessions).where(and(eq(sessions.personId, arg.personId), isNowhere(arg))),
);

const FORGET_IDENTITIES = prepare((arg: Args<"personId">) =>
  query.delete(identities).where(and(eq(identities.personId, arg.personId), isNowhere(arg))),
);

/** Those of other accounts went when the person left them. */
const FORGET_LINKS = prepare((arg: MemberArgs) =>
  query
    .delete(welcomeLinks)
    .where(and(eq(welcomeLinks.accountId, arg.accountId), eq(welcomeLinks.personId, arg.personId), left(arg))),
);

// Safe: an object's own keys.
const INVITATION = Object.keys(getTableColumns(invitations)) as (keyof StoredInvitation | "emailKey")[];

const { emailKey: _, ...INVITATION_COLUMNS } = getTableColumns(invitations);

/** The older invitation of the same address. */
const REPLACE = prepare((arg: Args<"accountId" | "emailKey" | "id">) =>
  query
    .delete(invitations)
    .where(
      and(eq(invitations.accountId, arg.accountId), eq(invitations.emailKey, arg.emailKey), ne(invitations.id, arg.id)),
    ),
);

const INVITE = prepare((arg: Args<keyof StoredInvitation | "emailKey" | "now">) => {
  const open = query.select({ n: count() }).from(invitations);
  const isOpen = and(eq(invitations.accountId, arg.accountId), gt(invitations.expiresAt, arg.now));
  return insertWhere(invitations, sql`${open.where(isOpen)} < ${INVITATIONS_OPEN_MAX}`, valuesOf(arg, INVITATION));
});

const MAIL = prepare((arg: Args<"id" | "actionId" | "accountId" | "target" | "host" | "at">) =>
  insertWhere(outbox, changed, {
    ...valuesOf(arg, ["id", "actionId", "accountId", "target", "host"]),
    run: 1,
    revision: 1,
    kind: "mail",
    event: "invited",
    status: "pending",
    attempts: 0,
    dueAt: arg.at,
    scheduledAt: arg.at,
    createdAt: arg.at,
  }),
);

const INVITATIONS = prepare((arg: Args<"accountId" | "now" | "limit">) =>
  query
    .select(INVITATION_COLUMNS)
    .from(invitations)
    .where(and(eq(invitations.accountId, arg.accountId), gt(invitations.expiresAt, arg.now)))
    .orderBy(desc(invitations.createdAt), invitations.id)
    .limit(arg.limit),
);

const WITHDRAW = prepare((arg: Args<"accountId" | "id">) =>
  query.delete(invitations).where(and(eq(invitations.id, arg.id), eq(invitations.accountId, arg.accountId))),
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

type JoinArgs = Args<"invitation" | "accountId" | "now">;

/** See `TeamStore.managers`. The builder has no recursion; `union` ends it, even if rows were altered into a cycle. */
function managers({ accountId, now }: Args<"accountId" | "now">) {
  const { id, replaces, role, revokedAt, expiresAt } = apiKeys;
  return sql<{ readonly id: string }>`with recursive managers (id) as (
      select ${id} from ${apiKeys} where ${apiKeys.accountId} = ${accountId} and ${role} = 'owner'
        and ${revokedAt} is null and (${expiresAt} is null or ${expiresAt} > ${now})
      union
      select ${replaces} from managers join ${apiKeys} on ${id} = managers.id where ${replaces} is not null)
    select managers.id as id from managers
    union all
    select ${members.personId} as id from ${members} where ${members.accountId} = ${accountId} and ${members.role} = 'owner'`;
}

const MANAGERS = prepare((arg: Args<"accountId" | "now">) => managers(arg));

/** `src/core/makers.ts` has the same rule for one. */
function isByManager(arg: Args<"accountId" | "now">): SQL {
  const { createdBy, createdById } = invitations;
  return sql`case when ${createdById} is null then ${createdBy} not like 'user:%' else ${createdById} in (${managers(arg)}) end`;
}

/** Holds while the invitation can be used and the account has room. */
function mayJoin(arg: JoinArgs): SQL {
  const open = query.select({ id: invitations.id }).from(invitations);
  const inside = query.select({ n: count() }).from(members).where(eq(members.accountId, arg.accountId));
  const isOpen = and(eq(invitations.id, arg.invitation), gt(invitations.expiresAt, arg.now), isByManager(arg));
  return allOf(exists(open.where(isOpen)), sql`${inside} < ${PEOPLE_PER_ACCOUNT_MAX}`);
}

const NEW_PERSON = insertPerson((arg: JoinArgs) => mayJoin(arg));

const MEMBERSHIP = ["accountId", "personId", "joinedAt", "role", "lastSeenAt"] as const;

const ADD_MEMBER = prepare((arg: Args<(typeof MEMBERSHIP)[number]>) =>
  insertWhere(members, changed, valuesOf(arg, MEMBERSHIP)),
);

/** Only a person whose password is the one that was checked. */
const JOIN = prepare((arg: Args<(typeof MEMBERSHIP)[number] | "passwordHash"> & JoinArgs) => {
  const known = query.select({ id: people.id }).from(people);
  const isSame = and(eq(people.id, arg.personId), eq(people.passwordHash, arg.passwordHash));
  const condition = allOf(mayJoin(arg), exists(known.where(isSame)));
  return insertWhere(members, condition, valuesOf(arg, MEMBERSHIP)).onConflictDoNothing();
});

const SPEND = prepare((arg: Args<"invitation">) =>
  query.delete(invitations).where(and(eq(invitations.id, arg.invitation), changed)),
);

const LINK = prepare((arg: Args<"issuer" | "subject" | "personId" | "createdAt">) =>
  insertWhere(identities, changed, valuesOf(arg, ["issuer", "subject", "personId", "createdAt"])),
);

/** The first statement writes one row if the invitation can be used by this person. */
function join({ invitation, person, isNew, session, identity, at, audit }: Joining): readonly Statement[] {
  const { accountId, role } = invitation;
  const use = { invitation: invitation.id, accountId, now: at };
  const membership = { accountId, personId: person.id, joinedAt: at, role, lastSeenAt: at };
  const joined = isNew
    ? [NEW_PERSON.bind({ ...personValues(person), ...use }), ADD_MEMBER.bind(membership)]
    : [JOIN.bind({ ...membership, ...use, passwordHash: person.passwordHash })];
  return [
    ...joined,
    SPEND.bind(use),
    ...(identity === undefined ? [] : [LINK.bind({ ...identity, personId: person.id, createdAt: at })]),
    ...(typeof session === "string" ? [] : [ADD_SESSION.bind({ ...session })]),
    ...audit.flatMap(auditChange),
    ...(typeof session === "string" ? [SWITCH.bind({ hash: session, accountId })] : []),
  ];
}

const isIdentity = (arg: Args<"issuer" | "subject">) =>
  and(eq(identities.issuer, arg.issuer), eq(identities.subject, arg.subject));

const IDENTIFIED = prepare((arg: Args<"issuer" | "subject">) =>
  query
    .select(MEMBER)
    .from(identities)
    .innerJoin(people, eq(people.id, identities.personId))
    .innerJoin(members, eq(members.personId, people.id))
    .where(isIdentity(arg))
    .orderBy(...lastUsedFirst)
    .limit(1),
);

/** Not where the person has another subject of the provider, or the subject is of another person. */
const IDENTIFY = prepare((arg: Args<keyof Identity | "personId" | "createdAt">) => {
  const known = query.select({ id: people.id }).from(people).where(eq(people.id, arg.personId));
  const values = valuesOf(arg, ["issuer", "subject", "personId", "createdAt"]);
  return insertWhere(identities, exists(known), values).onConflictDoNothing();
});

// Safe: an object's own keys.
const SESSION = Object.keys(getTableColumns(sessions)) as (keyof typeof sessions.$inferSelect)[];

const BEGIN = prepare((arg: Args<keyof typeof sessions.$inferSelect | keyof Identity>) => {
  const own = query.select({ id: identities.personId }).from(identities);
  const isOwn = and(isIdentity(arg), eq(identities.personId, arg.personId));
  const inside = query.select({ id: members.personId }).from(members).where(isMember(arg));
  return insertWhere(
    sessions,
    allOf(exists(own.where(isOwn)), exists(inside)),
    valuesOf<keyof typeof sessions.$inferSelect>(arg, SESSION),
  );
});

const hasBegun = (arg: Args<"hash">) =>
  exists(query.select({ hash: sessions.hash }).from(sessions).where(eq(sessions.hash, arg.hash)));

const DROP_PASSWORD = prepare((arg: Args<"personId" | "hash">) =>
  query
    .update(people)
    .set({ passwordHash: "" })
    .where(and(eq(people.id, arg.personId), hasBegun(arg))),
);

const END_OTHERS = prepare((arg: Args<"personId" | "hash">) => {
  const begun = alias(sessions, "begun");
  const isBegun = exists(query.select({ hash: begun.hash }).from(begun).where(eq(begun.hash, arg.hash)));
  return query.delete(sessions).where(and(eq(sessions.personId, arg.personId), ne(sessions.hash, arg.hash), isBegun));
});

const SEE = prepare((arg: MemberArgs & Args<"at">) =>
  query
    .update(members)
    .set({ lastSeenAt: sql`${arg.at}` })
    .where(isMember(arg)),
);

/** Rows deleted per pass and table, so that it never blocks the writer for long. */
const PRUNE_ROWS = 500;

const PRUNE = prepare((arg: Args<"now">) => {
  const ended = query.select({ id: invitations.id }).from(invitations).where(lte(invitations.expiresAt, arg.now));
  return query.delete(invitations).where(inArray(invitations.id, ended.limit(PRUNE_ROWS)));
});

/** Mails of invitations that were accepted, withdrawn or have expired. An attempt that is under way ends first. */
const PRUNE_MAILS = prepare(() => {
  const open = query.select({ id: invitations.id }).from(invitations);
  const isOver = and(ne(outbox.status, "active"), notExists(open.where(sql`${invitations.id} = ${outbox.actionId}`)));
  const isInvitation = sql`${outbox.actionId} >= 'inv_' and ${outbox.actionId} < 'inv\`'`;
  const over = query.select({ id: outbox.id }).from(outbox).where(and(isInvitation, isOver));
  return query.delete(outbox).where(inArray(outbox.id, over.limit(PRUNE_ROWS)));
});
