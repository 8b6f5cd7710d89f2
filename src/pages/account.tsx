/** @jsxImportSource hono/jsx */
import { AccountParams, ChangeAccount } from "../accounts/account-routes.ts";
import type { ListedSession } from "../accounts/team.ts";
import { DomainError, type ErrorCode } from "../core/domain-error.ts";
import { page } from "../http/response.ts";
import { createPersonRoutes, HOME_PATH, type Person } from "../http/session.ts";
import { Button, Check, PostForm, Submit } from "../ui/form.tsx";
import { PASSWORD_PATH } from "./password.tsx";
import { answerForm, type FormState, INVALID } from "./forms.tsx";
import { schemaForm } from "./schema-form.tsx";
import { LOG_IN_PATH, SETTINGS_LINK } from "../ui/layout.tsx";
import { mayDo } from "../core/roles.ts";
import type { Membership } from "../core/team-store.ts";
import { Copied } from "../ui/controls.tsx";
import { FIRST_STEPS_PATH } from "./first-steps.tsx";
import { Ago, Card, Facts, Name, Problem, UntrustedText } from "../ui/parts.tsx";
import { AgoOr, List, None, RowAction, settingsFrame, Tagged } from "./settings-frame.tsx";
import { browserName, type PageUser, roleLabel } from "../ui/text.ts";
import type { PageDeps } from "./needs.ts";

const ACCOUNT_NAME_PATH = `${LOG_IN_PATH}/name`;

const NAME_FORM = schemaForm(ChangeAccount, {
  name: {
    label: "Account name",
    hint: "Everyone in the account sees it, and everyone you invite. Leave it empty to show your address.",
    required: false,
    autocomplete: "organization",
  },
});

interface AccountState {
  /** A name that was refused. */
  readonly typed?: FormState;
  readonly problem?: string;
  /** On phones the list of all sections stands in its place. */
  readonly isIndex?: boolean;
}

/** The account, and a person's own login: their accounts, sessions and password. */
async function accountPage(deps: AccountPageDeps, user: Person, state: AccountState = {}): Promise<string> {
  const { typed, problem, isIndex = false } = state;
  const now = deps.clock.now();
  const { accountId } = user.caller;
  const [accounts, sessions, { isHidden, isOver }] = await Promise.all([
    deps.teamService.accountsOf(user),
    deps.teamService.sessions(user),
    deps.firstSteps.state(user.caller),
  ]);
  const { email = null, name = null } = accounts.find((account) => account.accountId === accountId) ?? {};
  const mayRename = mayDo(user.role, "manage");
  return settingsFrame({
    user,
    section: "Account and login",
    now,
    isIndex,
    children: (
      <>
        <Problem text={problem} />
        <Card id="account" title="Account">
          <Facts
            rows={[
              ["Name", name === null || mayRename ? null : <Name text={name} />],
              ["Account of", email === null ? null : <Name text={email} />],
              ["ID", <Copied text={accountId} what="account ID" />],
              ["You", <Name text={user.email} />],
              ["Your role", roleText(user)],
              [
                "Password",
                <a href={PASSWORD_PATH}>
                  Change<span class="visually-hidden"> your password</span>
                </a>,
              ],
              [
                "First steps",
                isHidden && !isOver ? (
                  <PostForm user={user} action={FIRST_STEPS_PATH} fields={[["hidden", "no"]]}>
                    <Button look="link">
                      Show<span class="visually-hidden"> the first steps</span> again
                    </Button>
                  </PostForm>
                ) : null,
              ],
            ]}
          />
          {mayRename ? (
            <NAME_FORM.Form
              user={user}
              action={ACCOUNT_NAME_PATH}
              state={typed ?? NAME_FORM.filledWith({ name })}
              submit="Save name"
              look="plain"
            />
          ) : null}
        </Card>
        {accounts.length < 2 ? null : <Accounts user={user} accounts={accounts} current={accountId} />}
        <Sessions user={user} sessions={sessions} now={now} />
        <Card id="leave" title="Leave this account">
          <p class="quiet">You can return only with another invitation. The last owner can’t leave.</p>
          <PostForm user={user} action={`${LOG_IN_PATH}/leave`}>
            <Check name="sure" label="I want to leave this account" isRequired />
            <Submit look="bad">Leave account</Submit>
          </PostForm>
        </Card>
      </>
    ),
  });
}

interface AccountsProps {
  readonly user: PageUser;
  readonly accounts: readonly Membership[];
  readonly current: string;
}

function Accounts({ user, accounts, current }: AccountsProps) {
  const isCurrent = (account: Membership) => account.accountId === current;
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

interface SessionsProps {
  readonly user: PageUser;
  readonly sessions: readonly ListedSession[];
  readonly now: Date;
}

function Sessions({ user, sessions, now }: SessionsProps) {
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
          <Submit look="bad">Log out everywhere else</Submit>
        </PostForm>
      )}
    </List>
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

type AccountPageDeps = Pick<
  PageDeps,
  "personOf" | "teamService" | "peopleService" | "firstSteps" | "clock" | "ownFormOf"
>;

/** The page of the account and of a person's own accounts and sessions. */
export function accountPages(deps: AccountPageDeps) {
  const { teamService, peopleService, personOf, ownFormOf } = deps;
  const refused: ReadonlySet<ErrorCode> = new Set([...INVALID, "last_owner"]);
  const switchTo = answerForm(ownFormOf, async ({ person, form }) => {
    const account = form.get("account") ?? "";
    await teamService.switchTo(person, AccountParams["~standard"].validate({ id: account }).value.id);
    return HOME_PATH;
  });
  const leave = answerForm(
    ownFormOf,
    async ({ person, form }) => {
      if (form.get("sure") !== "yes")
        throw new DomainError("validation_error", "Tick the box to confirm that you leave.");
      await teamService.leave(person);
      // Their session in the account has ended.
      return "/login";
    },
    ({ person }, { problem }) => accountPage(deps, person, { problem }),
    refused,
  );
  const rename = answerForm(
    ownFormOf,
    async ({ person, form }) => {
      await peopleService.renameAccount(person.caller, NAME_FORM.check(form).name);
      return LOG_IN_PATH;
    },
    ({ person }, typed) => accountPage(deps, person, { typed }),
  );
  const end = answerForm(ownFormOf, async ({ person, form }) => {
    const id = form.get("id");
    if (id === undefined) throw new DomainError("validation_error", "Choose which session ends.");
    await teamService.endSessions(person, id === "" ? null : id);
    return LOG_IN_PATH;
  });
  return createPersonRoutes(personOf)
    .get(SETTINGS_LINK.href, async ({ person }) => page("own", await accountPage(deps, person, { isIndex: true })))
    .get(LOG_IN_PATH, async ({ person }) => page("own", await accountPage(deps, person)))
    .post(`${LOG_IN_PATH}/account`, switchTo)
    .post(ACCOUNT_NAME_PATH, rename)
    .post(`${LOG_IN_PATH}/leave`, leave)
    .post(`${LOG_IN_PATH}/sessions`, end);
}
