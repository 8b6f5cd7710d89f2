import Type from "typebox";
import { createApiRoutes, jsonBody, operation, pathParams } from "../http/operation.ts";
import { toJson } from "../api/serializer.ts";
import { MadeByQuery } from "./keys.ts";
import { jsonOf, noContent } from "../http/response.ts";
import type { TeamService } from "./team.ts";
import * as t from "../api/schema-helpers.ts";
import { bodyCheck } from "../api/schema-helpers.ts";
import { INVITATIONS_OPEN_MAX, PEOPLE_PER_ACCOUNT_MAX } from "../core/limits.ts";
import type { TeamMember } from "../core/team-store.ts";
import { MEMBER_ROLES } from "../core/roles.ts";

const PersonId = t.idSchema("per", "Id of a person.", "PersonId");

const InvitationId = t.idSchema("inv", "Id of an invitation.", "InvitationId");

const roleMember = t.choice(
  MEMBER_ROLES,
  "What the person may do. owner: everything; approver: read, approve, cancel; reader: read.",
  "approver",
);

const emailMember = t.plainText("The person's address.", "ann@example.com");

const PersonJson = t.answerObject("Person", "A person of the account.", {
  id: PersonId,
  email: emailMember,
  role: roleMember,
  joined_at: t.dateTime("When they joined the account."),
  last_seen_at: t.nullable(t.dateTime("When they last used the account, to some minutes; null: not yet.")),
});

const PersonList = t.answerObject("PersonList", "The people of the account.", {
  data: Type.Array(PersonJson, {
    description: `The people in the order in which they joined, at most ${PEOPLE_PER_ACCOUNT_MAX}.`,
  }),
});

const ChangePerson = t.requestObject("ChangePerson", "The new role of a person.", { role: roleMember });

export const CreateInvitation = t.requestObject("CreateInvitation", "A new invitation.", {
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
  void: t.yesNo("Whether its link lets nobody in, because its maker may no longer manage the account.", false),
});

const InvitationList = t.answerObject("InvitationList", "The open invitations of the account.", {
  data: Type.Array(InvitationJson, {
    description: `The open invitations, newest first, at most ${INVITATIONS_OPEN_MAX}.`,
  }),
});

const CreatedInvitation = t.answerObject("CreatedInvitation", "A new invitation. Only this answer contains its link.", {
  ...invitationMembers,
  link: t.url("The link to join. It is not stored and never shown again.", "https://outgate.example.com/join/3f9a0c"),
  mailed: t.yesNo("Whether a mail with the link is sent.", true),
});

export const checkRole = bodyCheck(ChangePerson);

const serializePerson = ({ personId: id, ...member }: TeamMember) => toJson(PersonJson, { ...member, id });

export const PersonParams = pathParams(Type.Object({ id: PersonId }), "There is no such person in this account.");

export const InvitationParams = pathParams(Type.Object({ id: InvitationId }), "There is no such invitation.");

export function teamRoutes({ teamService }: { readonly teamService: TeamService }) {
  return createApiRoutes()
    .get(
      "/v1/people",
      async ({ caller }) => jsonOf({ data: (await teamService.list(caller)).map(serializePerson) }),
      operation({
        operationId: "listPeople",
        permission: "manage",
        summary: "List the people of the account",
        description: "Lists the people of the account with their roles, in the order in which they joined.",
        answers: { 200: { description: "The people.", schema: PersonList } },
      }),
    )
    .patch(
      "/v1/people/:id",
      async ({ caller, params, body }) =>
        jsonOf(serializePerson(await teamService.changeRole(caller, params.id, body.role))),
      operation({
        operationId: "changePerson",
        permission: "manage",
        summary: "Change the role of a person",
        description: "Changes a person's role at once, also on open pages.",
        notes: ["The last owner can't be lowered: of two owners who lower each other at the same time, one stays."],
        params: PersonParams,
        body: jsonBody(ChangePerson),
        answers: { 200: { description: "The person with the new role.", schema: PersonJson } },
        errors: ["last_owner"],
      }),
    )
    .delete(
      "/v1/people/:id",
      ({ caller, params: { id } }) => noContent(teamService.remove(caller, id)),
      operation({
        operationId: "removePerson",
        permission: "manage",
        summary: "Remove a person from the account",
        description: "Removes a person, and ends their sessions in this account at once.",
        notes: [
          "Keys that they created or know stay: list the first with `GET /v1/keys?created_by=`, and revoke them.",
          "Open invitations that they made are void.",
          "The last owner can't be removed.",
        ],
        params: PersonParams,
        answers: { 204: { description: "The person is removed.", schema: null } },
        errors: ["last_owner"],
      }),
    )
    .get(
      "/v1/invitations",
      async ({ caller, query: { created_by: createdBy = null } }) => {
        const all = await teamService.invitations(caller, createdBy);
        const shown = createdBy === null ? all.filter(({ isVoid }) => !isVoid) : all;
        return jsonOf(toJson(InvitationList, { data: shown.map((row) => ({ ...row, void: row.isVoid })) }));
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
        query: MadeByQuery,
        answers: { 200: { description: "The invitations.", schema: InvitationList } },
      }),
    )
    .post(
      "/v1/invitations",
      async ({ caller, body: { email, role } }) => {
        const { invitation, link, isMailed } = await teamService.invite(caller, email, role);
        const created = toJson(CreatedInvitation, { ...invitation, link, mailed: isMailed });
        return jsonOf(created, 201, { "cache-control": "no-store" });
      },
      operation({
        operationId: "createInvitation",
        permission: "manage",
        summary: "Invite somebody to the account; the link is shown once",
        description: "Invites a person. Only this response shows the link.",
        notes: [
          "It works once, for this address, for seven days.",
          "Where mail is configured, the link is also mailed.",
          "Inviting an address again makes its earlier link void.",
        ],
        body: jsonBody(CreateInvitation),
        answers: {
          201: { description: "The new invitation.", schema: CreatedInvitation, headers: ["Cache-Control"] },
        },
      }),
    )
    .delete(
      "/v1/invitations/:id",
      ({ caller, params: { id } }) => noContent(teamService.withdraw(caller, id)),
      operation({
        operationId: "withdrawInvitation",
        permission: "manage",
        summary: "Withdraw an invitation",
        description: "Withdraws an invitation. Its link works no more.",
        params: InvitationParams,
        answers: { 204: { description: "The invitation is withdrawn.", schema: null } },
      }),
    );
}
