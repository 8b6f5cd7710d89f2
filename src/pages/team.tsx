/** @jsxImportSource hono/jsx */
import type { ListedSession, OpenInvitation } from "../accounts/team.ts";
import type { Invitation, Membership, TeamMember } from "../../db/team-store.ts";
import { Button, Choices, type CredentialInput, CredentialFields, Field, OrCancel, PostForm } from "./form.tsx";
import { Layout, LOG_IN_PATH, render, SETTINGS_LINK } from "./layout.tsx";
import { Card, Dot, DayOf, FieldRow, Notice, PageHead, Problem, Time, UntrustedText } from "./parts.tsx";
import { ProviderForm } from "./sign-in.tsx";
import { MEMBER_ROLE_CHOICES, type PageUser, roleLabel, timeAgo } from "./text.ts";

export const PEOPLE_PATH = "/settings/people";

export const INVITATIONS_PATH = "/settings/invitations";

/** The state of the form that invites. */
export interface InvitationInput {
  readonly email: string;
  readonly role: string | null;
  readonly problems: Readonly<Partial<Record<"email" | "role", string>>>;
}

export const EMPTY_INVITATION: InvitationInput = { email: "", role: null, problems: {} };

interface PeoplePageProps {
  readonly user: PageUser;
  /** The id of the visitor. */
  readonly personId: string;
  readonly members: readonly TeamMember[];
  readonly invitations: readonly Invitation[];
  readonly typed: InvitationInput;
  /** Why a change was refused. */
  readonly problem?: string | null;
  readonly now: Date;
}

/** The people of the account and its open invitations, for owners. */
export function peoplePage(props: PeoplePageProps): string {
  const { user, personId, members, invitations, typed, problem = null, now } = props;
  return render(
    <Layout title="People" nav="Settings" user={user}>
      <PageHead title="People" back={SETTINGS_LINK}>
        <p class="quiet">
          Who may log in to this account, and what they can do. Every decision is recorded under a person’s address.
        </p>
      </PageHead>
      <Problem text={problem} />
      <ul class="card rows">
        {members.map((member) => (
          <MemberRow {...member} user={user} isSelf={member.personId === personId} now={now} />
        ))}
      </ul>
      {invitations.length === 0 ? null : (
        <section class="section" aria-labelledby="invitations">
          <h2 id="invitations">Open invitations</h2>
          <ul class="card rows">
            {invitations.map((invitation) => (
              <InvitationRow {...invitation} user={user} />
            ))}
          </ul>
        </section>
      )}
      <Card id="invite" title="Invite somebody">
        <PostForm user={user} action={PEOPLE_PATH}>
          <Field
            name="email"
            label="Email"
            type="email"
            value={typed.email}
            hint="They join with this address. The next page shows a link for them, once."
            required
            autocomplete="off"
            problem={typed.problems.email ?? null}
          />
          <Choices
            name="role"
            legend="What can they do?"
            choices={MEMBER_ROLE_CHOICES}
            chosen={typed.role}
            problem={typed.problems.role}
          />
          <div class="buttons">
            <Button>Invite</Button>
          </div>
        </PostForm>
      </Card>
    </Layout>,
  );
}

interface MemberRowProps extends TeamMember {
  readonly user: PageUser;
  readonly isSelf: boolean;
  readonly now: Date;
}

function MemberRow({ personId, email, role, joinedAt, lastSeenAt, user, isSelf, now }: MemberRowProps) {
  const of = <span class="visually-hidden"> for {email}</span>;
  const forms = (
    <div class="buttons">
      <PostForm user={user} action={`${PEOPLE_PATH}/${personId}/role`} class="ask">
        <label class="visually-hidden" for={`role-${personId}`}>
          Role of {email}
        </label>
        <select id={`role-${personId}`} name="role">
          {MEMBER_ROLE_CHOICES.map(({ value, label }) => (
            <option value={value} selected={value === role}>
              {label}
            </option>
          ))}
        </select>
        <Button look="plain">Change role{of}</Button>
      </PostForm>
      {isSelf ? null : (
        <PostForm user={user} action={`${PEOPLE_PATH}/${personId}/remove`}>
          <Button look="bad">
            Remove<span class="visually-hidden"> {email}</span>
          </Button>
        </PostForm>
      )}
    </div>
  );
  return (
    <FieldRow aside={forms}>
      <p class="chips">
        <b class="name">
          <UntrustedText text={email} />
        </b>{" "}
        <Dot tone={role === "owner" ? "wait" : "busy"}>{roleLabel(role)}</Dot>
        {isSelf ? <Dot tone="still">You</Dot> : null}
      </p>
      <p class="quiet small">
        <DayOf event="Joined" at={joinedAt} />{" "}
        {lastSeenAt === null ? "Not seen yet." : `Last seen ${timeAgo(now.getTime() - lastSeenAt.getTime())}.`}
      </p>
    </FieldRow>
  );
}

function InvitationRow({ id, email, role, createdBy, expiresAt, user }: Invitation & { readonly user: PageUser }) {
  const withdraw = (
    <PostForm user={user} action={`${INVITATIONS_PATH}/${id}/withdraw`}>
      <Button look="bad">
        Withdraw<span class="visually-hidden"> the invitation of {email}</span>
      </Button>
    </PostForm>
  );
  return (
    <FieldRow aside={withdraw}>
      <p class="chips">
        <b class="name">
          <UntrustedText text={email} />
        </b>{" "}
        <Dot tone={role === "owner" ? "wait" : "busy"}>{roleLabel(role)}</Dot>
      </p>
      <p class="quiet small">
        Invited by <UntrustedText text={createdBy.slice(createdBy.indexOf(":") + 1)} />. Ends <Time at={expiresAt} />.
      </p>
    </FieldRow>
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
  return render(
    <Layout title="Invitation" nav="Settings" user={user}>
      <PageHead title="Invitation" back={{ href: PEOPLE_PATH, name: "People" }}>
        <p>
          For <UntrustedText text={email} />.{" "}
          {isMailed ? "A mail with this link is on its way." : "Send them this link."}
        </p>
      </PageHead>
      <section class="card" aria-label="The link">
        <Notice tone="wait">This link is shown only once. It works once, for this address, for seven days.</Notice>
        <code class="code" data-copy="">
          {link}
        </code>
        <a class="button fit" href={PEOPLE_PATH}>
          Back to people
        </a>
      </section>
    </Layout>,
  );
}

interface LoginPageProps {
  readonly user: PageUser;
  readonly accounts: readonly Membership[];
  readonly accountId: string;
  readonly sessions: readonly ListedSession[];
  readonly problem?: string | null;
  readonly now: Date;
}

/** A person's own page: their accounts and sessions. */
export function loginPage({ user, accounts, accountId, sessions, problem = null, now }: LoginPageProps): string {
  return render(
    <Layout title="Your login" nav="Settings" user={user}>
      <PageHead title="Your login" back={SETTINGS_LINK}>
        <p>
          You are logged in as <UntrustedText text={user.email} />.{" "}
          <a href="/settings/password">Change your password</a>.
        </p>
      </PageHead>
      <Problem text={problem} />
      <section class="section" aria-labelledby="accounts">
        <h2 id="accounts">Your accounts</h2>
        <ul class="card rows">
          {accounts.map((account) => (
            <AccountRow {...account} user={user} isCurrent={account.accountId === accountId} />
          ))}
        </ul>
      </section>
      <section class="section" aria-labelledby="sessions">
        <h2 id="sessions">Sessions</h2>
        <ul class="card rows">
          {sessions.map((session) => (
            <SessionRow {...session} user={user} now={now} />
          ))}
        </ul>
        {sessions.length < 2 ? null : (
          <PostForm user={user} action={`${LOG_IN_PATH}/sessions`} fields={[["id", ""]]}>
            <div class="buttons">
              <Button look="bad">Log out everywhere else</Button>
            </div>
          </PostForm>
        )}
      </section>
      <Card id="leave" title="Leave this account">
        <p class="quiet">You can come back only by another invitation. The last owner can’t leave.</p>
        <PostForm user={user} action={`${LOG_IN_PATH}/leave`}>
          <label class="option">
            <input type="checkbox" name="sure" value="yes" required />
            <span>I want to leave this account</span>
          </label>
          <div class="buttons">
            <Button look="bad">Leave</Button>
          </div>
        </PostForm>
      </Card>
    </Layout>,
  );
}

interface AccountRowProps extends Membership {
  readonly user: PageUser;
  readonly isCurrent: boolean;
}

function AccountRow({ accountId, role, email, user, isCurrent }: AccountRowProps) {
  const open = isCurrent ? null : (
    <PostForm user={user} action={`${LOG_IN_PATH}/account`} fields={[["account", accountId]]}>
      <Button>
        Switch<span class="visually-hidden"> to the account of {email ?? accountId}</span>
      </Button>
    </PostForm>
  );
  return (
    <FieldRow aside={open}>
      <p class="chips">
        <b class="name">{email === null ? "Account" : <UntrustedText text={`Account of ${email}`} />}</b>{" "}
        <Dot tone={role === "owner" ? "wait" : "busy"}>{roleLabel(role)}</Dot>
        {isCurrent ? <Dot tone="good">Current</Dot> : null}
      </p>
      <p class="quiet small">
        <code>{accountId}</code>
      </p>
    </FieldRow>
  );
}

interface SessionRowProps extends ListedSession {
  readonly user: PageUser;
  readonly now: Date;
}

function SessionRow({ id, createdAt, lastSeenAt, client, browser, isCurrent, user, now }: SessionRowProps) {
  const end = isCurrent ? null : (
    <PostForm user={user} action={`${LOG_IN_PATH}/sessions`} fields={[["id", id]]}>
      <Button look="bad">
        End<span class="visually-hidden"> the session from {client ?? "an unknown address"}</span>
      </Button>
    </PostForm>
  );
  return (
    <FieldRow aside={end}>
      <p class="chips">
        <b class="name">{browser === null ? "A program" : <UntrustedText text={browser} />}</b>
        {isCurrent ? <Dot tone="good">This one</Dot> : null}
      </p>
      <p class="quiet small">
        Since <Time at={createdAt} />, from {client ?? "an unknown address"}.{" "}
        {lastSeenAt === null ? null : `Last used ${timeAgo(now.getTime() - lastSeenAt.getTime())}.`}
      </p>
    </FieldRow>
  );
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
  const { email, role, accountOf, user } = props;
  return render(
    <Layout title="Join an account" width="narrow" user={user} beginsSession={user === null}>
      <PageHead title="Join an account">
        <p>
          You are invited as <b>{roleLabel(role).toLowerCase()}</b>
          {accountOf === null ? "" : " to the account of "}
          {accountOf === null ? null : <UntrustedText text={accountOf} />}.
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
