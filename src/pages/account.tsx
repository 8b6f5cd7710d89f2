/** @jsxImportSource hono/jsx */
import { mayDo } from "../core/roles.ts";
import type { ListedSession } from "../accounts/team.ts";
import type { Membership } from "../core/team-store.ts";
import { Copied } from "../ui/controls.tsx";
import { ChangeAccount } from "../accounts/schemas.ts";
import { EMPTY_FORM, filled, type FormState, problemBeside, schemaForm } from "./forms.tsx";
import { Button, CredentialFields, type CredentialInput, KnownPassword, OrCancel, PostForm } from "../ui/form.tsx";
import { FIRST_STEPS_PATH } from "./first-steps.tsx";
import { LOG_IN_PATH } from "../ui/layout.tsx";
import { Ago, Card, Facts, LinkButton, Name, Notice, Problem, UntrustedText } from "../ui/parts.tsx";
import { AgoOr, List, None, RowAction, settingsFrame, Tagged } from "./settings-frame.tsx";
import { browserName, type PageUser, roleLabel } from "../ui/text.ts";

export const ACCOUNT_NAME_PATH = `${LOG_IN_PATH}/name`;

export const PASSWORD_PATH = "/settings/password";

export const PASSWORD_LINK_PATH = `${PASSWORD_PATH}/link`;

interface AccountPageProps {
  readonly user: PageUser;
  readonly accounts: readonly Membership[];
  readonly accountId: string;
  readonly sessions: readonly ListedSession[];
  readonly problem?: string | null;
  /** A name that was refused. */
  readonly typed?: FormState;
  /** They have hidden the first steps, and some are left. */
  readonly hasHiddenSteps: boolean;
  readonly now: Date;
  /** On phones the list of all sections stands in its place. */
  readonly isIndex?: boolean;
}

/** The account, and a person's own login: their accounts, sessions and password. */
export function accountPage(props: AccountPageProps): string {
  const { user, accounts, typed = EMPTY_FORM, now, isIndex = false } = props;
  const problem = props.problem ?? problemBeside(typed, ["name"]);
  return settingsFrame({
    user,
    section: "Account and login",
    title: "Account and login",
    now,
    isIndex,
    children: (
      <>
        <Problem text={problem} />
        <AccountFacts {...props} />
        {accounts.length < 2 ? null : <Accounts {...props} />}
        <Sessions {...props} />
        <Leave user={user} />
      </>
    ),
  });
}

function AccountFacts({ user, accounts, accountId, typed, hasHiddenSteps }: AccountPageProps) {
  const current = accounts.find((account) => account.accountId === accountId);
  const owner = current?.email ?? null;
  const name = current?.name ?? null;
  return (
    <Card id="account" title="Account">
      <Facts
        rows={[
          ["Name", name === null || mayDo(user.role, "manage") ? null : <Name text={name} />],
          ["Account of", owner === null ? null : <Name text={owner} />],
          ["ID", <Copied text={accountId} what="account ID" />],
          ["You", <Name text={user.email} />],
          ["Your role", roleText(user)],
          [
            "Password",
            <a href={PASSWORD_PATH}>
              Change<span class="visually-hidden"> your password</span>
            </a>,
          ],
          ["First steps", hasHiddenSteps ? <ShowSteps user={user} /> : null],
        ]}
      />
      {mayDo(user.role, "manage") ? <NameForm user={user} typed={typed ?? filled({ name: name ?? "" })} /> : null}
    </Card>
  );
}

export const NAME_FORM = schemaForm(ChangeAccount);

function NameForm({ user, typed }: { readonly user: PageUser; readonly typed: FormState }) {
  return (
    <PostForm user={user} action={ACCOUNT_NAME_PATH}>
      <NAME_FORM.Field
        state={typed}
        name="name"
        label="Account name"
        hint="Everyone in the account sees it, and everyone you invite. Leave it empty to show your address."
        required={false}
        autocomplete="organization"
      />
      <div class="buttons">
        <Button look="plain">Save name</Button>
      </div>
    </PostForm>
  );
}

function ShowSteps({ user }: Pick<AccountPageProps, "user">) {
  return (
    <PostForm user={user} action={FIRST_STEPS_PATH} fields={[["hidden", "no"]]}>
      <Button look="link">
        Show<span class="visually-hidden"> the first steps</span> again
      </Button>
    </PostForm>
  );
}

function Accounts({ user, accounts, accountId }: AccountPageProps) {
  const isCurrent = (account: Membership) => account.accountId === accountId;
  return (
    <List
      id="accounts"
      title="Your accounts"
      rows={accounts}
      columns={[
        [
          "Account",
          (one) => <Tagged name={<AccountLabel {...one} />} tag={isCurrent(one) ? "Current" : null} />,
          "wide",
        ],
        ["Role", ({ role }) => roleLabel(role)],
        ["ID", (account) => <code>{account.accountId}</code>],
      ]}
      actions={(account) =>
        isCurrent(account) ? null : (
          <RowAction
            user={user}
            path={`${LOG_IN_PATH}/account`}
            fields={[["account", account.accountId]]}
            look="plain"
            of={
              <>
                to the account {account.name === null ? "of " : ""}
                <UntrustedText text={account.name ?? account.email ?? account.accountId} />
              </>
            }
            name="Switch"
          />
        )
      }
    />
  );
}

function AccountLabel({ name, email }: Membership) {
  const label = name ?? email;
  return label === null ? <>Account</> : <Name text={label} />;
}

function Sessions({ user, sessions, now }: AccountPageProps) {
  return (
    <List
      id="sessions"
      title="Sessions"
      rows={sessions}
      columns={[
        [
          "Browser",
          ({ browser, isCurrent }) => (
            <Tagged name={<BrowserName agent={browser} />} tag={isCurrent ? "This one" : null} />
          ),
          "wide",
        ],
        ["Address", ({ client }) => (client === null ? <None>Not known</None> : <code>{client}</code>)],
        ["Logged in", ({ createdAt }) => <Ago at={createdAt} now={now} />],
        ["Last used", ({ lastSeenAt }) => <AgoOr at={lastSeenAt} now={now} />],
      ]}
      actions={({ id, client, isCurrent }) =>
        isCurrent ? null : (
          <RowAction
            user={user}
            path={`${LOG_IN_PATH}/sessions`}
            fields={[["id", id]]}
            of={`the session from ${client ?? "an unknown address"}`}
            name="End"
          />
        )
      }
    >
      {sessions.length < 2 ? null : (
        <PostForm user={user} action={`${LOG_IN_PATH}/sessions`} fields={[["id", ""]]}>
          <div class="buttons">
            <Button look="bad">Log out everywhere else</Button>
          </div>
        </PostForm>
      )}
    </List>
  );
}

function Leave({ user }: Pick<AccountPageProps, "user">) {
  return (
    <Card id="leave" title="Leave this account">
      <p class="quiet">You can come back only by another invitation. The last owner can’t leave.</p>
      <PostForm user={user} action={`${LOG_IN_PATH}/leave`}>
        <label class="check">
          <input type="checkbox" name="sure" value="yes" required />
          <span>I want to leave this account</span>
        </label>
        <div class="buttons">
          <Button look="bad">Leave account</Button>
        </div>
      </PostForm>
    </Card>
  );
}

function roleText({ role }: PageUser): string {
  if (role === "owner") return roleLabel(role);
  return `${roleLabel(role)}. Owners manage keys, pauses, people and signing secrets.`;
}

function BrowserName({ agent }: { readonly agent: string | null }) {
  if (agent === null) return <>A program</>;
  const known = browserName(agent);
  return known === null ? <Name text={agent} /> : <span title={agent}>{known}</span>;
}

/** How somebody without a password gets one. */
export type PasswordLinkState =
  /** A link can be mailed to them. */
  | "offered"
  /** It is on its way. */
  | "sent"
  /** No mail provider is configured. */
  | "no_mail";

interface NoPasswordPageProps {
  readonly user: PageUser;
  /** The name of the identity provider; null: it isn't configured any more. */
  readonly provider: string | null;
  readonly state: PasswordLinkState;
  readonly problem?: string | null;
}

/** For people who log in by the identity provider alone. */
export function noPasswordPage({ user, provider, state, problem = null }: NoPasswordPageProps): string {
  return settingsFrame({
    user,
    section: "Account and login",
    title: "Password",
    back: ACCOUNT_LINK,
    children: (
      <section class="card" aria-label="Password">
        <Problem text={problem} />
        <p>
          You log in with {provider ?? "an identity provider"} and have no password here. With a password you can also
          log in while the provider is away, and confirm changes where your browser runs no scripts.
        </p>
        {state === "sent" ? (
          <Notice tone="good">
            A link is on its way to <UntrustedText text={user.email} />. It works once, for 24 hours.
          </Notice>
        ) : null}
        {state === "offered" ? (
          <PostForm user={user} action={PASSWORD_LINK_PATH}>
            <div class="buttons">
              <Button>Email me a link to set one</Button>
            </div>
          </PostForm>
        ) : null}
        {state === "no_mail" ? (
          <p class="quiet">
            This server sends no mail, so it can’t send you a link. Ask the person who runs it for one:{" "}
            <code>outgate reset-password {user.email}</code>
          </p>
        ) : null}
      </section>
    ),
  });
}

const ACCOUNT_LINK = { href: LOG_IN_PATH, name: "Account and login" } as const;

/** The form for a new password. Password managers need the address. */
export function passwordPage({ user, typed }: { readonly user: PageUser; readonly typed: CredentialInput }): string {
  return settingsFrame({
    user,
    section: "Account and login",
    title: "Change your password",
    back: ACCOUNT_LINK,
    intro: "Your sessions in other browsers are logged out. You stay logged in here.",
    children: (
      <section class="card" aria-label="Password">
        <PostForm user={user} action={PASSWORD_PATH}>
          <CredentialFields typed={typed} password="new" emailOf={user.email}>
            <KnownPassword
              name="current_password"
              label="Current password"
              problem={typed.problems.current_password ?? null}
            />
          </CredentialFields>
          <OrCancel href={LOG_IN_PATH}>
            <Button>Change password</Button>
          </OrCancel>
        </PostForm>
      </section>
    ),
  });
}

export function passwordChangedPage({ user }: { readonly user: PageUser }): string {
  return settingsFrame({
    user,
    section: "Account and login",
    title: "Your password is changed",
    back: ACCOUNT_LINK,
    children: (
      <>
        <Notice tone="good">Your other sessions are logged out. You are still logged in here.</Notice>
        <LinkButton href={LOG_IN_PATH}>Back to account and login</LinkButton>
      </>
    ),
  });
}
