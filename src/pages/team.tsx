/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import type { KeyView } from "../accounts/schemas.ts";
import type { ListedInvitation, OpenInvitation } from "../accounts/team.ts";
import type { MemberRole } from "../core/roles.ts";
import type { Invitation, TeamMember } from "../core/team-store.ts";
import { CreateInvitation } from "../accounts/team-routes.ts";
import { Button, type CredentialInput, CredentialFields, OrCancel, PostForm } from "../ui/form.tsx";
import { filled, type FormState, problemBeside, problemOf, schemaForm, StatedChoices } from "./forms.tsx";
import { FormerKeys } from "./keys.tsx";
import { Layout, render } from "../ui/layout.tsx";
import { AddForm, AgoOr, List, OfRow, RowAction, settingsFrame, Tagged } from "./settings-frame.tsx";
import { Day, Name, Notice, PageHead, Problem, sentence, UntilTime, UntrustedText } from "../ui/parts.tsx";
import { ProviderForm } from "./sign-in.tsx";
import { MEMBER_ROLE_CHOICES, type PageUser, roleLabel } from "../ui/text.ts";

export const PEOPLE_PATH = "/settings/people";

export const INVITATIONS_PATH = "/settings/invitations";

/** A role that was changed, for the page after it. */
export interface RoleChange {
  readonly email: string;
  readonly role: MemberRole;
}

/** Most people are invited to approve. */
export const EMPTY_INVITATION = filled({ role: "approver" });

export const INVITATION_FORM = schemaForm(CreateInvitation);

export interface PeoplePageProps {
  readonly user: PageUser;
  /** The id of the visitor. */
  readonly personId: string;
  readonly members: readonly TeamMember[];
  readonly invitations: readonly ListedInvitation[];
  /** Live keys whose makers may no longer manage the account. */
  readonly former: readonly KeyView[];
  readonly typed: FormState;
  /** Why a change was refused. */
  readonly problem?: string | null;
  /** Whose role was just changed. */
  readonly changed?: RoleChange | null;
  readonly now: Date;
}

/** The people of the account and its open invitations, for owners. */
export function peoplePage(props: PeoplePageProps): string {
  const { user, personId, members, invitations, former, typed, changed = null, now } = props;
  const problem = props.problem ?? problemBeside(typed, ["email", "role"]);
  const open = invitations.filter(({ isVoid }) => !isVoid);
  const isVoid = invitations.filter((invitation) => invitation.isVoid);
  const isSelf = (member: TeamMember) => member.personId === personId;
  const isRefused = typed.issues.length > 0;
  return settingsFrame({
    user,
    section: "People",
    title: "People",
    intro: "Who may log in to this account. Every decision is recorded under a person’s address.",
    now,
    children: (
      <>
        <Problem text={problem} />
        {changed === null ? null : (
          <Notice tone="good">
            <UntrustedText text={changed.email} /> is now {ROLE_NOUNS[changed.role]}.
          </Notice>
        )}
        <List
          title="People"
          rows={members}
          columns={[
            ["Person", (one) => <Tagged name={<Name text={one.email} />} tag={isSelf(one) ? "You" : null} />, "wide"],
            ["Role", (member) => <RoleForm {...member} user={user} isSelf={isSelf(member)} />],
            ["Joined", ({ joinedAt }) => <Day at={joinedAt} />],
            ["Last seen", ({ lastSeenAt }) => <AgoOr at={lastSeenAt} now={now} none="Not yet" />],
          ]}
          actions={(member) =>
            isSelf(member) ? null : (
              <RowAction
                user={user}
                path={`${PEOPLE_PATH}/${member.personId}/remove`}
                of={member.email}
                name="Remove"
              />
            )
          }
        />
        <FormerKeys user={user} keys={former} />
        <Invitations title="Open invitations" id="invitations" rows={open} user={user} now={now} />
        <Invitations title="Void invitations" id="void-invitations" rows={isVoid} user={user} now={now}>
          Whoever made these may no longer manage the account, so their links let nobody in. Withdraw them, or they are
          open again if that person becomes an owner again.
        </Invitations>
        <InviteForm user={user} typed={typed} isOpen={isRefused || members.length < 2} />
      </>
    ),
  });
}

interface InvitationsProps extends Pick<PeoplePageProps, "user" | "now"> {
  readonly title: string;
  readonly id: string;
  readonly rows: readonly Invitation[];
  readonly children?: Child;
}

function Invitations({ title, id, rows, user, now, children }: InvitationsProps) {
  if (rows.length === 0) return null;
  return (
    <List
      id={id}
      title={title}
      intro={children}
      rows={rows}
      columns={[
        ["Address", ({ email }) => <Name text={email} />, "wide"],
        ["Role", ({ role }) => roleLabel(role)],
        ["Invited by", ({ createdBy }) => <Name text={createdBy.slice(createdBy.indexOf(":") + 1)} />],
        ["Ends", ({ expiresAt }) => <UntilTime at={expiresAt} now={now} />],
      ]}
      actions={(row) => (
        <RowAction
          user={user}
          path={`${INVITATIONS_PATH}/${row.id}/withdraw`}
          of={`the invitation of ${row.email}`}
          name="Withdraw"
        />
      )}
    />
  );
}

function InviteForm({ user, typed, isOpen }: Pick<PeoplePageProps, "user" | "typed"> & { readonly isOpen: boolean }) {
  // The service's own words, and not the schema's.
  const isTaken = /account/.test(problemOf(typed, "email") ?? "");
  return (
    <AddForm id="invite" title="Invite a person" isOpen={isOpen}>
      <PostForm user={user} action={PEOPLE_PATH}>
        <INVITATION_FORM.Field
          state={typed}
          name="email"
          label="Email"
          hint="They join with this address. The next page shows a link for them, once."
          wrong={isTaken ? undefined : "Enter an email address."}
        />
        <StatedChoices
          state={typed}
          name="role"
          legend="What can they do?"
          choices={MEMBER_ROLE_CHOICES}
          wrong="Choose what they can do."
        />
        <div class="buttons">
          <Button>Invite</Button>
        </div>
      </PostForm>
    </AddForm>
  );
}

interface MemberProps extends TeamMember {
  readonly user: PageUser;
  readonly isSelf: boolean;
}

const ROLE_NOUNS = { owner: "an owner", approver: "an approver", reader: "a reader" } as const;

/** What to ask before a role is given or taken whose holder can do everything; undefined: nothing. */
function questionOf({ email, role, isSelf }: MemberProps, next: string): string | undefined {
  if (next === role) return undefined;
  if (next === "owner") return `Make ${email} an owner? Owners can do everything, and can remove you.`;
  if (role !== "owner") return undefined;
  return isSelf
    ? "Give up being an owner? Only another owner can make you one again."
    : `Take the role of owner from ${email}?`;
}

function RoleForm(member: MemberProps) {
  const { personId, email, role, user } = member;
  return (
    <PostForm user={user} action={`${PEOPLE_PATH}/${personId}/role`}>
      <label class="visually-hidden" for={`role-${personId}`}>
        Role of {email}
      </label>
      <select id={`role-${personId}`} name="role" data-saves="">
        {MEMBER_ROLE_CHOICES.map(({ value, label }) => (
          <option value={value} selected={value === role} data-question={questionOf(member, value)}>
            {label}
          </option>
        ))}
      </select>
      <Button look="plain">
        Change
        <OfRow of={`role for ${email}`} />
      </Button>
    </PostForm>
  );
}

interface InvitedPageProps {
  readonly user: PageUser;
  readonly email: string;
  /** The whole link. */
  readonly link: string;
  readonly isMailed: boolean;
}

/** Shows the link of a new invitation once. */
export function invitedPage({ user, email, link, isMailed }: InvitedPageProps): string {
  return settingsFrame({
    user,
    section: "People",
    title: "Invitation",
    back: { href: PEOPLE_PATH, name: "People" },
    intro: (
      <>
        For <UntrustedText text={email} />.{" "}
        {isMailed ? "An email with this link is on its way." : "Send them this link."}
      </>
    ),
    children: (
      <section class="card" aria-label="The link">
        <Notice tone="wait">This link is shown only once. It works once, for this address, for seven days.</Notice>
        <code class="code" data-copy="">
          {link}
        </code>
        <a class="button fit" href={PEOPLE_PATH}>
          Back to people
        </a>
      </section>
    ),
  });
}

interface JoinPageProps extends OpenInvitation {
  readonly path: string;
  readonly typed: CredentialInput;
  /** Null: nobody is logged in. */
  readonly user: PageUser | null;
  /** It is the address of `user`. */
  readonly isOwn: boolean;
  /** The name of the identity provider; null: none. */
  readonly provider: string | null;
}

/** The page of an invitation's link. */
export function joinPage(props: JoinPageProps): string {
  const { email, role, account, user } = props;
  return render(
    <Layout title="Join an account" width="narrow" user={user} beginsSession={user === null}>
      <PageHead title="Join an account">
        <p>
          You are invited as <b>{roleLabel(role).toLowerCase()}</b>
          <InvitedTo account={account} />.
        </p>
        <p class="quiet">
          The invitation is for <UntrustedText text={email} /> and works once.
        </p>
      </PageHead>
      <JoinForm {...props} />
      {user === null ? <ProviderForm name={props.provider} next={props.path} /> : null}
    </Layout>,
  );
}

/** Whoever invites chose the name: it is quoted, beside the address that nobody chooses. */
function InvitedTo({ account: { name, email } }: Pick<JoinPageProps, "account">) {
  return (
    <>
      {name === null ? null : sentence` to “${<UntrustedText text={name} />}”`}
      {email === null ? null : (
        <>
          {name === null ? " to the account of " : ", the account of "}
          <UntrustedText text={email} />
        </>
      )}
    </>
  );
}

function JoinForm({ path, typed, user, isOwn, email, isKnown }: JoinPageProps) {
  if (user !== null && !isOwn) {
    return (
      <PostForm user={user} action="/auth/logout" class="card">
        <p>
          You are logged in as <UntrustedText text={user.email} />. Log out, and open the link again.
        </p>
        <Button>Log out</Button>
      </PostForm>
    );
  }
  if (user !== null) {
    return (
      <PostForm user={user} action={path} class="card">
        <Problem text={typed.message} />
        <OrCancel href="/">
          <Button>Join</Button>
        </OrCancel>
      </PostForm>
    );
  }
  return (
    <PostForm action={path} class="card" beginsSession>
      {isKnown ? <p class="quiet">This address has a login already. Log in to join.</p> : null}
      <CredentialFields typed={typed} password={isKnown ? "known" : "new"} emailOf={email} />
      <Button>{isKnown ? "Log in and join" : "Create login and join"}</Button>
    </PostForm>
  );
}
