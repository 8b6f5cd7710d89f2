import Type, { type Static } from "typebox";
import { bodyCheck, dateTime, emailSchema, nullable, plainText, url, choice, yesNo } from "../api/schema-helpers.ts";
import { INVITATIONS_OPEN_MAX, PEOPLE_PER_ACCOUNT_MAX } from "../core/limits.ts";
import type { Invitation, TeamMember } from "../core/team-store.ts";
import { MEMBER_ROLES } from "../core/roles.ts";
import type { ListedInvitation } from "./team.ts";

export const PersonId = Type.String({
  title: "PersonId",
  pattern: "^per_[A-Za-z0-9_-]{1,64}$",
  description: "Id of a person.",
  examples: ["per_01kjwa5v00e7v8c9x2m4n6p8qr"],
});

export const InvitationId = Type.String({
  title: "InvitationId",
  pattern: "^inv_[A-Za-z0-9_-]{1,64}$",
  description: "Id of an invitation.",
  examples: ["inv_01kjwa5v00e7v8c9x2m4n6p8qr"],
});

const role = choice(
  MEMBER_ROLES,
  "What the person may do. owner: everything; approver: read, approve, cancel; reader: read.",
  "approver",
);

const email = plainText("The person's address.", "ann@example.com");

export const PersonJson = Type.Object(
  {
    id: PersonId,
    email,
    role,
    joined_at: dateTime("When they joined the account."),
    last_seen_at: nullable(dateTime("When they last used the account, to some minutes; null: not yet.")),
  },
  { title: "Person", description: "A person of the account." },
);

export type PersonJson = Static<typeof PersonJson>;

export const PersonList = Type.Object(
  {
    data: Type.Array(PersonJson, {
      description: `The people in the order in which they joined, at most ${PEOPLE_PER_ACCOUNT_MAX}.`,
    }),
  },
  { title: "PersonList", description: "The people of the account." },
);

export const ChangePerson = Type.Object(
  { role },
  { title: "ChangePerson", additionalProperties: false, description: "The new role of a person." },
);

export const CreateInvitation = Type.Object(
  { email: emailSchema("The address that is invited. The person joins with this address only."), role },
  { title: "CreateInvitation", additionalProperties: false, description: "A new invitation." },
);

const invitation = {
  id: InvitationId,
  email,
  role,
  created_at: dateTime("When it was created."),
  created_by: plainText("Who invited.", "user:ann@example.com"),
  expires_at: dateTime("Until when its link works: seven days."),
};

export const InvitationJson = Type.Object(
  {
    ...invitation,
    void: yesNo("Whether its link lets nobody in, since whoever made it may no longer manage the account.", false),
  },
  { title: "Invitation", description: "An invitation that was not accepted yet, without its link." },
);

export type InvitationJson = Static<typeof InvitationJson>;

export const InvitationList = Type.Object(
  {
    data: Type.Array(InvitationJson, {
      description: `The open invitations, newest first, at most ${INVITATIONS_OPEN_MAX}.`,
    }),
  },
  { title: "InvitationList", description: "The open invitations of the account." },
);

export const CreatedInvitation = Type.Object(
  {
    ...invitation,
    link: url("The link to join. It is not stored and never shown again.", "https://outgate.example.com/join/3f9a0c"),
    mailed: yesNo("Whether a mail with the link is sent.", true),
  },
  { title: "CreatedInvitation", description: "A new invitation. Only this answer contains its link." },
);

/** Checks the form that changes a role. Throws `validation_error`. */
export const checkRole = bodyCheck(ChangePerson);

export function serializePerson({ personId, email: address, role: has, joinedAt, lastSeenAt }: TeamMember): PersonJson {
  return {
    id: personId,
    email: address,
    role: has,
    joined_at: joinedAt.toISOString(),
    last_seen_at: lastSeenAt?.toISOString() ?? null,
  };
}

export function serializeListedInvitation(row: ListedInvitation): InvitationJson {
  return { ...serializeInvitation(row), void: row.isVoid };
}

export function serializeInvitation(row: Invitation) {
  return {
    id: row.id,
    email: row.email,
    role: row.role,
    created_at: row.createdAt.toISOString(),
    created_by: row.createdBy,
    expires_at: row.expiresAt.toISOString(),
  };
}
