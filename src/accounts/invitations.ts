import Type from "typebox";
import * as t from "../api/schema-helpers.ts";
import { toJson } from "../api/serializer.ts";
import { type AccountLabel, emailKey, type PersonRow, isByManager } from "../core/account-store.ts";
import { type Audited, auditEntry } from "../core/audit.ts";
import { DomainError, invalidField, LinkGone, notFound } from "../core/domain-error.ts";
import { INVITATION_MS_MAX, INVITATIONS_OF_ADDRESS_READ_MAX, INVITATIONS_OPEN_MAX } from "../core/limits.ts";
import { notificationHost } from "../core/notification-events.ts";
import { authorize, type Caller, madeBy, type MemberRole } from "../core/roles.ts";
import type { Person, RequestSource, SessionSource, StartedSession } from "../core/session.ts";
import {
  type Identity,
  type Invitation,
  invitationLink,
  type Joining,
  type StoredInvitation,
} from "../core/team-store.ts";
import type { Secrets } from "../crypto/secrets.ts";
import { createApiRoutes, jsonBody, operation, pathParams } from "../http/operation.ts";
import { jsonResponse, noContent } from "../http/response.ts";
import type { AppPart } from "../runtime/app-context.ts";
import { MadeByParameters } from "./key-schemas.ts";
import { NO_PASSWORD, type PeopleService } from "./people.ts";
import { newSession, type SessionService } from "./sessions.ts";
import { emailMember, roleMember } from "./team.ts";

/** An open invitation as its link shows it. */
export interface OpenInvitation {
  readonly email: string;
  readonly role: MemberRole;
  readonly account: AccountLabel;
  /** A person with this address exists already, who logs in instead of choosing a password. */
  readonly isKnown: boolean;
}

export type InvitationService = ReturnType<typeof createInvitationService>;

/** Invitations to an account: owners make them, and whoever has the link joins by it. */
export function createInvitationService(
  { clock, ids, config, store: { team, people } }: AppPart<"clock" | "config" | "ids", "people" | "team">,
  peopleService: PeopleService,
  sessionService: SessionService,
  secrets: Secrets,
  /** Called when a mail waits for this address; null: no mail is sent. */
  onMail: ((accountId: string, host: string) => void) | null,
) {
  /** The first that is not void, because its maker may still manage its account. */
  const firstValid = async (some: readonly StoredInvitation[], now: Date) => {
    for (const invitation of some) {
      if (isByManager(invitation, await team.managers(invitation.accountId, now))) return invitation;
    }
    return null;
  };

  const openInvitation = async (token: string): Promise<StoredInvitation> => {
    const now = clock.now();
    const found = await team.invitation({ hash: secrets.hash(token) }, now);
    const invitation = found === null ? null : await firstValid([found], now);
    if (invitation === null) throw invitationGone();
    return invitation;
  };

  const enter = async (
    invitation: StoredInvitation,
    { source, ...joiner }: Pick<Joining, "person" | "isNew" | "identity"> & { readonly source: SessionSource },
  ): Promise<StartedSession> => {
    const { accountId, role } = invitation;
    const at = clock.now();
    const { row: session, started } = newSession(secrets, { person: joiner.person, accountId, role }, source, at);
    const audit = [auditEntry(started.person.caller, joinedBy(invitation), at)];
    if (!(await team.join({ invitation, session, at, audit, ...joiner }))) throw invitationGone();
    return joiner.isNew ? { ...started, isJoined: true } : started;
  };

  const newPerson = ({ email }: StoredInvitation, passwordHash: string): PersonRow => {
    const createdAt = clock.now();
    return { id: ids.person(createdAt), email, passwordHash, createdAt };
  };

  return {
    /** Invites an address, for owners. The link is shown once. Throws `validation_error` for a member and at the bound. */
    async invite(caller: Caller, email: string, role: MemberRole) {
      authorize(caller, "manage");
      const now = clock.now();
      const { accountId } = caller;
      const id = ids.invitation(now);
      const token = secrets.invitationToken(id);
      const expiresAt = new Date(now.getTime() + INVITATION_MS_MAX);
      const invitation: Invitation = {
        id,
        accountId,
        email,
        role,
        createdAt: now,
        ...madeBy(caller),
        expiresAt,
      };
      const host = notificationHost({ kind: "mail", target: email });
      const mail = onMail === null ? null : { id: ids.row(now), host };
      const audit = auditEntry(
        caller,
        { kind: "member_invited", subject: email, detail: { role, invitation: id } },
        now,
      );
      const invited = await team.invite({ ...invitation, hash: secrets.hash(token) }, mail, audit);
      if (invited !== "done") throw invalidField("email", MESSAGES[invited]);
      onMail?.(accountId, host);
      return { invitation, link: invitationLink(config.baseUrl, token), isMailed: mail !== null };
    },

    /**
     * Open invitations, newest first, without their links; for owners. An invitation is void while its maker may not manage the
     * account. `createdBy`: only those of this person or key; null: all.
     */
    async list(caller: Caller, createdBy: string | null = null) {
      authorize(caller, "manage");
      const now = clock.now();
      const [rows, managers] = await Promise.all([
        team.invitations(caller.accountId, now, INVITATIONS_OPEN_MAX),
        team.managers(caller.accountId, now),
      ]);
      return rows
        .filter(({ createdById }) => createdBy === null || createdById === createdBy)
        .map((row) => ({ ...row, isVoid: !isByManager(row, managers) }));
    },

    /** Makes the link of an invitation void; for owners. Throws `not_found`. */
    async withdraw(caller: Caller, id: string): Promise<void> {
      authorize(caller, "manage");
      const now = clock.now();
      const invitation = await team.invitation({ id }, now);
      const subject = invitation?.email ?? "";
      const audit = auditEntry(caller, { kind: "invitation_withdrawn", subject, detail: { invitation: id } }, now);
      if (await team.withdraw(caller.accountId, id, audit)) return;
      throw notFound("invitation");
    },

    /** Reads an invitation by its link and changes nothing. Throws `not_found` if it was used or has expired. */
    async find(token: string): Promise<OpenInvitation> {
      const { email, role, accountId } = await openInvitation(token);
      const [account, known] = await Promise.all([people.findLabel(accountId), people.find(email)]);
      return { email, role, account, isKnown: known !== null };
    },

    /** Accepts an invitation with a password: that of the person with its address, or a new person's first one. */
    async joinByPassword(token: string, password: string, source: RequestSource): Promise<StartedSession> {
      const invitation = await openInvitation(token);
      const { email, accountId } = invitation;
      if ((await people.find(email)) === null) {
        const person = newPerson(invitation, await peopleService.hashPassword(password, accountId));
        return enter(invitation, { person, isNew: true, source });
      }
      const { person } = await peopleService.authenticate({ email, password }, source);
      return enter(invitation, { person, isNew: false, source });
    },

    /** Accepts it for a logged-in person, whose session switches to the account. Throws `forbidden` for another address. */
    async joinAs(token: string, { caller, email, sessionHash: session }: Person): Promise<void> {
      const invitation = await openInvitation(token);
      const known = await people.find(email);
      if (known === null || emailKey(invitation.email) !== emailKey(email)) {
        throw new DomainError(
          "forbidden",
          `This invitation is for ${invitation.email}. Log out, and open its link again.`,
        );
      }
      const at = clock.now();
      const audit = [auditEntry({ ...caller, accountId: invitation.accountId }, joinedBy(invitation), at)];
      if (!(await team.join({ invitation, person: known.person, isNew: false, session, at, audit })))
        throw invitationGone();
      await sessionService.recheckPerson(known.person.id);
    },

    /** Lets in somebody new, whose address a provider vouches for, by the token's invitation or the newest. Null: none. */
    async joinByIdentity(
      email: string,
      identity: Identity,
      source: SessionSource,
      token: string | null,
    ): Promise<StartedSession | null> {
      const now = clock.now();
      const named = token === null ? null : await team.invitation({ hash: secrets.hash(token) }, now);
      const isForThem = named !== null && emailKey(named.email) === emailKey(email);
      const some = isForThem ? [named] : await team.invitationsOf(email, now, INVITATIONS_OF_ADDRESS_READ_MAX);
      const invitation = await firstValid(some, now);
      if (invitation === null) return null;
      return enter(invitation, { person: newPerson(invitation, NO_PASSWORD), isNew: true, source, identity });
    },
  };
}

const MESSAGES = {
  member: "A person with this address is already in the account. Change their role instead.",
  full: `This account has ${INVITATIONS_OPEN_MAX} open invitations. Withdraw one first.`,
} as const;

function joinedBy({ id, email, role, createdBy }: StoredInvitation): Audited {
  return { kind: "member_joined", subject: email, detail: { role, invitation: id, invited_by: createdBy } };
}

/** The same error for every link that can't be used, so that it reveals nothing. */
function invitationGone(): DomainError {
  return new LinkGone(
    "This invitation was used or withdrawn, or has expired. Ask an owner of the account for another one.",
  );
}

const InvitationId = t.idSchema("inv", "Id of an invitation.", "InvitationId");

export const CreateInvitationBody = t.requestObject("CreateInvitation", "A new invitation.", {
  email: t.emailSchema("The address that is invited. The person joins with this address only."),
  role: roleMember,
});

const invitationMembers = {
  id: InvitationId,
  email: emailMember,
  role: roleMember,
  created_at: t.dateTime("When it was created."),
  created_by: t.plainText("Who invited.", "user:ann@example.com"),
  expires_at: t.dateTime("Until when its link works: seven days."),
};

const InvitationJson = t.answerObject("Invitation", "An invitation that was not accepted yet, without its link.", {
  ...invitationMembers,
  void: t.yesNo("Whether its link lets no one in, because its maker may no longer manage the account.", false),
});

export const InvitationListJson = t.answerObject("InvitationList", "The open invitations of the account.", {
  data: Type.Array(InvitationJson, {
    description: `The open invitations, newest first, at most ${INVITATIONS_OPEN_MAX}.`,
  }),
});

export const CreatedInvitationJson = t.answerObject(
  "CreatedInvitation",
  "A new invitation. Only this answer contains its link.",
  {
    ...invitationMembers,
    link: t.url("The link to join. It is not stored and never shown again.", "https://outgate.example.com/join/3f9a0c"),
    mailed: t.yesNo("Whether a mail with the link is sent.", true),
  },
);

export const InvitationParams = pathParams(Type.Object({ id: InvitationId }), "There is no such invitation.");

export function invitationRoutes({ invitationService }: { readonly invitationService: InvitationService }) {
  return createApiRoutes()
    .get(
      "/v1/invitations",
      async ({ caller, query: { created_by: createdBy = null } }) => {
        const all = await invitationService.list(caller, createdBy);
        const shown = createdBy === null ? all.filter(({ isVoid }) => !isVoid) : all;
        return jsonResponse(toJson(InvitationListJson, { data: shown.map((row) => ({ ...row, void: row.isVoid })) }));
      },
      operation({
        operationId: "listInvitations",
        permission: "manage",
        summary: "List the open invitations of the account",
        description: "Lists open invitations, newest first.",
        notes: [
          "Their links are never shown again.",
          "An invitation is void while its maker may not manage the account: only `created_by` lists those too.",
        ],
        query: MadeByParameters,
        answers: { 200: { description: "The invitations.", schema: InvitationListJson } },
      }),
    )
    .post(
      "/v1/invitations",
      async ({ caller, body: { email, role } }) => {
        const { invitation, link, isMailed } = await invitationService.invite(caller, email, role);
        const created = toJson(CreatedInvitationJson, { ...invitation, link, mailed: isMailed });
        return jsonResponse(created, 201, { "cache-control": "no-store" });
      },
      operation({
        operationId: "createInvitation",
        permission: "manage",
        summary: "Invite someone to the account; the link is shown once",
        description: "Invites a person. Only this response shows the link.",
        notes: [
          "It works once, for this address, for seven days.",
          "Where mail is configured, the link is also mailed.",
          "Inviting an address again makes its earlier link void.",
        ],
        body: jsonBody(CreateInvitationBody),
        answers: {
          201: { description: "The new invitation.", schema: CreatedInvitationJson, headers: ["Cache-Control"] },
        },
      }),
    )
    .delete(
      "/v1/invitations/:id",
      ({ caller, params: { id } }) => noContent(invitationService.withdraw(caller, id)),
      operation({
        operationId: "withdrawInvitation",
        permission: "manage",
        summary: "Withdraw an invitation",
        description: "Withdraws an invitation. Its link stops working.",
        params: InvitationParams,
        answers: { 204: { description: "The invitation is withdrawn.", schema: null } },
      }),
    );
}
