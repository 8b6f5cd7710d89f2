/** @jsxImportSource hono/jsx */
import Type from "typebox";
import { type Checked, compile } from "../../api/check.ts";
import { INVITATION_MS_MAX } from "../../core/limits.ts";
import { CreateInvitationBody, InvitationParams } from "../../accounts/invitations.ts";
import { ChangePersonBody, PersonParams } from "../../accounts/team.ts";
import { MEMBER_ROLES, type MemberRole } from "../../core/roles.ts";
import type { TeamMember } from "../../core/team-store.ts";
import type { RequestContext } from "../../http/request.ts";
import { seeOther } from "../../http/response.ts";
import { HOME_PATH, type Person } from "../../http/session.ts";
import { Secret } from "../../ui/controls.tsx";
import { render } from "../../ui/layout.tsx";
import { day, Dot, LinkButton, Name, Notice, until, untrusted } from "../../ui/parts.tsx";
import { duration, MEMBER_ROLE_CHOICES, roleLabel } from "../../ui/text.ts";
import { filled } from "../frame/forms.ts";
import type { ById, PageDeps } from "../frame/page-deps.ts";
import { FormerKeys } from "./keys.tsx";
import { schemaForm } from "../frame/schema-form.tsx";
import { agoOr, List, RowAction, RowMenu, Tagged } from "../frame/list.tsx";
import { SETTINGS_PATHS, SettingsPage } from "../frame/settings-frame.tsx";
import { settingsList } from "../frame/settings-list.tsx";

const PEOPLE_PATH = SETTINGS_PATHS.people;

const INVITED_PATH = `${PEOPLE_PATH}/invited`;

const INVITATIONS_PATH = "/settings/invitations";

const ROLE_CHANGE = compile(Type.Object({ email: Type.String(), role: Type.Enum([...MEMBER_ROLES]) }));

const INVITATION_FORM = schemaForm(CreateInvitationBody, {
  email: {
    hint: "They join with this address. The next page shows a link for them, once.",
    wrong: "Enter an email address.",
  },
  role: { label: "What can they do?", choices: MEMBER_ROLE_CHOICES, wrong: "Choose what they can do." },
});

/** Its buttons name the role. */
const ROLE_FORM = schemaForm(ChangePersonBody, { role: {} });

function VoidInvitation() {
  return (
    <>
      <Dot tone="bad">Void</Dot>
      <span class="says">
        Its creator can no longer manage the account. Withdraw it: it works again if they become an owner again.
      </span>
    </>
  );
}

const ROLE_NOUNS = { owner: "an owner", approver: "an approver", reader: "a reader" } as const;

/** The question before somebody becomes an owner or stops being one; undefined for none. */
function roleQuestion({ email, role }: TeamMember, next: MemberRole, isSelf: boolean): string | undefined {
  if (next === "owner") return `Make ${email} an owner? Owners can do everything, and can remove you.`;
  if (role !== "owner") return undefined;
  return isSelf
    ? "Give up being an owner? Only another owner can make you one again."
    : `Take the role of owner from ${email}?`;
}

function memberMenu(user: Person, member: TeamMember, isSelf: boolean) {
  const { email, role } = member;
  const path = `${PEOPLE_PATH}/${member.personId}`;
  const row = { user, look: "plain", of: email } as const;
  return (
    <RowMenu
      of={email}
      items={MEMBER_ROLES.filter((next) => next !== role).map((next) => (
        <RowAction
          {...row}
          path={`${path}/role`}
          fields={[["role", next]]}
          name={`Make ${ROLE_NOUNS[next]}`}
          question={roleQuestion(member, next, isSelf)}
        />
      ))}
      ends={
        isSelf ? null : (
          <RowAction
            {...row}
            path={`${path}/remove`}
            name="Remove"
            question={`Remove ${email}? It takes an invitation to come back.`}
          />
        )
      }
    />
  );
}

/** With the whole link. */
const INVITED = compile(Type.Object({ email: Type.String(), link: Type.String(), isMailed: Type.Boolean() }));

function invitedPage(user: Person, { email, link, isMailed }: Checked<typeof INVITED>): string {
  return render(
    <SettingsPage
      user={user}
      section="People"
      title="Invitation"
      back={{ href: PEOPLE_PATH, name: "People" }}
      intro={
        <>
          For {untrusted(email)}. {isMailed ? "An email with this link is on its way." : "Send them this link."}
        </>
      }
    >
      <section class="card" aria-label="The link">
        <Notice tone="wait">
          {`This link is shown only once. It works once, for this address, for ${duration(INVITATION_MS_MAX)}.`}
        </Notice>
        <Secret text={link} />
        <div class="buttons">
          <LinkButton href={PEOPLE_PATH} look="main">
            Back to people
          </LinkButton>
        </div>
      </section>
    </SettingsPage>,
  );
}

/** The people of this account, its open invitations, and keys that former members may know. */
export function peoplePages(deps: PageDeps) {
  const { teamService, invitationService, keyService, findPerson, flash } = deps;
  const { routes, rowForm } = settingsList<TeamMember, typeof CreateInvitationBody, Checked<typeof ROLE_CHANGE>>(deps, {
    shown: ROLE_CHANGE,
    section: "People",
    path: PEOPLE_PATH,
    intro: "Who may log in to this account. Every decision is recorded under a person’s address.",
    view: async ({ user, now, shown }) => {
      const { caller } = user;
      const [members, invitations, former] = await Promise.all([
        teamService.list(caller),
        invitationService.list(caller),
        // Live keys of people who may no longer manage the account.
        keyService.ofFormer(caller),
      ]);
      const isSelf = (member: TeamMember) => member.personId === caller.personId;
      return {
        rows: members,
        columns: [
          ["Person", (one) => <Tagged name={<Name text={one.email} />} tag={isSelf(one) ? "You" : null} />, "wide"],
          ["Role", ({ role }) => roleLabel(role)],
          ["Joined", ({ joinedAt }) => day(joinedAt)],
          ["Last seen", ({ lastSeenAt }) => agoOr(lastSeenAt, now, "Not yet")],
        ],
        actions: (member) => memberMenu(user, member, isSelf(member)),
        above:
          shown === null ? null : (
            <Notice tone="good">
              {untrusted(shown.email)} is now {ROLE_NOUNS[shown.role]}.
            </Notice>
          ),
        below: (
          <>
            <FormerKeys user={user} keys={former} />
            {invitations.length === 0 ? null : (
              <List
                id="invitations"
                title="Invitations"
                rows={invitations}
                columns={[
                  ["Address", ({ email }) => <Name text={email} />, "wide"],
                  ["Role", ({ role }) => roleLabel(role)],
                  ["Invited by", ({ createdBy }) => <Name text={createdBy.slice(createdBy.indexOf(":") + 1)} />],
                  ["State", (one) => (one.isVoid ? <VoidInvitation /> : <Dot tone="wait">Open</Dot>)],
                  ["Ends", ({ expiresAt }) => until(expiresAt, now)],
                ]}
                actions={({ id, email }) => (
                  <RowAction
                    user={user}
                    path={`${INVITATIONS_PATH}/${id}/withdraw`}
                    of={`the invitation of ${email}`}
                    name="Withdraw"
                  />
                )}
              />
            )}
          </>
        ),
      };
    },
    form: INVITATION_FORM,
    add: ["Invite a person", "Invite"],
    // Most people are invited to approve.
    start: () => filled({ role: "approver" }),
    create: async (person, { email, role }) => {
      const { link, isMailed } = await invitationService.invite(person.caller, email, role);
      return deps.showOnce(person, INVITED_PATH, INVITED, { email, link, isMailed }, invitedPage);
    },
  });
  /** Whether people who changed their own role may still see the list. */
  const isStillOwner = async (context: RequestContext) => (await findPerson(context))?.role === "owner";
  const changeRole = rowForm<ById>(async ({ context, person, params: { id }, form }) => {
    const asked = ROLE_FORM.check(form);
    const { email, role } = await teamService.changeRole(person.caller, id, asked.role);
    return (await isStillOwner(context))
      ? flash.redirect(person, PEOPLE_PATH, ROLE_CHANGE, { email, role })
      : seeOther("own", HOME_PATH);
  });
  const remove = rowForm<ById>(async ({ context, person, params: { id } }) => {
    await teamService.remove(person.caller, id);
    return (await isStillOwner(context)) ? null : seeOther("own", HOME_PATH);
  });
  const withdraw = rowForm<ById>(({ person, params: { id } }) => invitationService.withdraw(person.caller, id));
  return routes
    .get(INVITED_PATH, ({ context, person }) => {
      const invited = flash.read(context, person, INVITED);
      return invited === null ? seeOther("own", PEOPLE_PATH) : invitedPage(person, invited);
    })
    .post(`${PEOPLE_PATH}/:id/role`, changeRole, { params: PersonParams })
    .post(`${PEOPLE_PATH}/:id/remove`, remove, { params: PersonParams })
    .post(`${INVITATIONS_PATH}/:id/withdraw`, withdraw, { params: InvitationParams });
}
