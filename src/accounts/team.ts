import Type from "typebox";
import * as t from "../api/schema-helpers.ts";
import { toJson } from "../api/serializer.ts";
import { auditEntry } from "../core/audit.ts";
import { DomainError, notFound } from "../core/domain-error.ts";
import { PEOPLE_PER_ACCOUNT_MAX } from "../core/limits.ts";
import { authorize, type Caller, madeBy, MEMBER_ROLES, type MemberRole, notManager } from "../core/roles.ts";
import type { Person } from "../core/session.ts";
import type { MemberChange, TeamMember } from "../core/team-store.ts";
import { createApiRoutes, jsonBody, operation, pathParams } from "../http/operation.ts";
import { jsonResponse, noContent } from "../http/response.ts";
import type { AppPart } from "../runtime/app-context.ts";
import type { SessionService } from "./sessions.ts";

export type TeamService = ReturnType<typeof createTeamService>;

/** The people of an account and their roles. Each change applies to their open pages and connections at once. */
export function createTeamService(
  { store: { team }, clock }: AppPart<"clock", "team">,
  sessionService: Pick<SessionService, "recheckPerson">,
  /** Applies revocations of keys at once: of the connections of a person who may no longer make any. */
  recheckKeys: () => Promise<void>,
  /** Takes an address out of the account's channels. */
  forgetAddress: (caller: Caller, email: string) => Promise<void>,
) {
  const findMember = async ({ accountId }: Caller, personId: string) => {
    const member = await team.member(accountId, personId);
    if (member === null) throw notFound("person in this account");
    return member;
  };

  const removed = async (caller: Caller, personId: string, kind: "member_left" | "member_removed") => {
    const member = await findMember(caller, personId);
    const entry = { kind, subject: member.email, detail: { role: member.role } };
    // Who leaves needs no right to it.
    const by = kind === "member_left" ? undefined : madeBy(caller);
    requireDone(caller, await team.remove(caller.accountId, personId, auditEntry(caller, entry, clock.now()), by));
    await sessionService.recheckPerson(personId);
    await recheckKeys();
    await forgetAddress(caller, member.email);
  };

  return {
    /** The people of the account, in the order in which they joined; for owners. */
    async list(caller: Caller) {
      authorize(caller, "manage");
      return team.members(caller.accountId, PEOPLE_PER_ACCOUNT_MAX);
    },

    /** Changes a role, for owners. Applies to open pages at once. Throws `not_found` and `last_owner`. */
    async changeRole(caller: Caller, personId: string, role: MemberRole): Promise<TeamMember> {
      authorize(caller, "manage");
      const member = await findMember(caller, personId);
      if (member.role === role) return member;
      const entry = {
        kind: "member_role_changed",
        subject: member.email,
        detail: { from: member.role, to: role },
      } as const;
      const audit = auditEntry(caller, entry, clock.now());
      requireDone(caller, await team.changeRole(caller.accountId, personId, role, audit, madeBy(caller)));
      await sessionService.recheckPerson(personId);
      await recheckKeys();
      return { ...member, role };
    },

    /** Removes a person from the account and ends their sessions in it; for owners. Throws `not_found` and `last_owner`. */
    async remove(caller: Caller, personId: string): Promise<void> {
      authorize(caller, "manage");
      await removed(caller, personId, "member_removed");
    },

    /** The person leaves the account of their session, which ends. Throws `last_owner`. */
    leave: ({ caller }: Person): Promise<void> => removed(caller, caller.personId ?? "", "member_left"),
  };
}

function requireDone(caller: Caller, change: MemberChange): void {
  if (change === "not_manager") throw notManager(caller);
  if (change === "gone") throw notFound("person in this account");
  if (change === "done") return;
  throw new DomainError(
    "last_owner",
    "This person is the only owner of the account. Make someone else an owner first.",
  );
}

const PersonId = t.idSchema("per", "Id of a person.", "PersonId");

export const roleMember = t.choice(
  MEMBER_ROLES,
  "What the person may do. owner: everything; approver: read, approve, cancel; reader: read.",
  "approver",
);

export const emailMember = t.plainText("The person's address.", "ann@example.com");

export const PersonJson = t.answerObject("Person", "A person of the account.", {
  id: PersonId,
  email: emailMember,
  role: roleMember,
  joined_at: t.dateTime("When they joined the account."),
  last_seen_at: t.nullable(t.dateTime("When they last used the account, to some minutes; null: not yet.")),
});

export const PersonListJson = t.answerObject("PersonList", "The people of the account.", {
  data: Type.Array(PersonJson, {
    description: `The people in the order in which they joined, at most ${PEOPLE_PER_ACCOUNT_MAX}.`,
  }),
});

export const ChangePersonBody = t.requestObject("ChangePerson", "The new role of a person.", { role: roleMember });

const serializePerson = ({ personId: id, ...member }: TeamMember) => toJson(PersonJson, { ...member, id });

export const PersonParams = pathParams(Type.Object({ id: PersonId }), "There is no such person in this account.");

export function teamRoutes({ teamService }: { readonly teamService: TeamService }) {
  return createApiRoutes()
    .get(
      "/v1/people",
      async ({ caller }) => jsonResponse({ data: (await teamService.list(caller)).map(serializePerson) }),
      operation({
        operationId: "listPeople",
        permission: "manage",
        summary: "List the people of the account",
        description: "Lists the people of the account with their roles, in the order in which they joined.",
        answers: { 200: { description: "The people.", schema: PersonListJson } },
      }),
    )
    .patch(
      "/v1/people/:id",
      async ({ caller, params, body }) =>
        jsonResponse(serializePerson(await teamService.changeRole(caller, params.id, body.role))),
      operation({
        operationId: "changePerson",
        permission: "manage",
        summary: "Change the role of a person",
        description: "Changes a person's role at once, also on open pages.",
        notes: ["The last owner can't be lowered: of two owners who lower each other at the same time, one stays."],
        params: PersonParams,
        body: jsonBody(ChangePersonBody),
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
    );
}
