/** @jsxImportSource hono/jsx */
import { AccountParams, ChangeAccount } from "../accounts/account-routes.ts";
import { DomainError, type ErrorCode } from "../core/domain-error.ts";
import { mayDo } from "../core/roles.ts";
import type { Membership } from "../core/team-store.ts";
import { HOME_PATH, type Person } from "../http/session.ts";
import { Copied } from "../ui/controls.tsx";
import { Button, Check, PostForm, Submit } from "../ui/form.tsx";
import { LOG_IN_PATH, render, SETTINGS_LINK } from "../ui/layout.tsx";
import { Ago, Card, Facts, Name, Problem, UntrustedText } from "../ui/parts.tsx";
import { browserName, roleLabel } from "../ui/text.ts";
import { FIRST_STEPS_PATH } from "./first-steps.tsx";
import { answerForm, type FormState, INVALID, personPages } from "./forms.ts";
import type { PageDeps } from "./needs.ts";
import { PASSWORD_PATH } from "./password.tsx";
import { schemaForm } from "./schema-form.tsx";
import { AgoOr, List, None, RowAction, SettingsPage, Tagged } from "./settings-frame.tsx";

const ACCOUNT_NAME_PATH = `${LOG_IN_PATH}/name`;

const SESSIONS_PATH = `${LOG_IN_PATH}/sessions`;

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
async function accountPage(deps: PageDeps, user: Person, state: AccountState = {}): Promise<string> {
  const { typed, problem, isIndex = false } = state;
  const now = deps.clock.now();
  const { accountId } = user.caller;
  const [accounts, sessions, { isHidden, isOver }] = await Promise.all([
    deps.teamService.accountsOf(user),
    deps.teamService.sessions(user),
    deps.firstSteps.state(user.caller),
  ]);
  const isCurrent = (account: Membership) => account.accountId === accountId;
  const { email = null, name = null } = accounts.find(isCurrent) ?? {};
  const mayRename = mayDo(user.role, "manage");
  const role = roleLabel(user.role);
  return render(
    <SettingsPage user={user} section="Account and login" now={now} isIndex={isIndex}>
      <Problem text={problem} />
      <Card id="account" title="Account">
        <Facts
          rows={[
            ["Name", name === null || mayRename ? null : <Name text={name} />],
            ["Account of", email === null ? null : <Name text={email} />],
            ["ID", <Copied text={accountId} what="account ID" />],
            ["You", <Name text={user.email} />],
            ["Your role", mayRename ? role : `${role}. Owners manage keys, pauses, people and signing secrets.`],
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
      {accounts.length < 2 ? null : (
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
            ["Role", (one) => roleLabel(one.role)],
            ["ID", (one) => <code>{one.accountId}</code>],
          ]}
          actions={(one) => (isCurrent(one) ? null : <SwitchTo user={user} to={one} />)}
        />
      )}
      <List
        id="sessions"
        title="Sessions"
        rows={sessions}
        columns={[
          [
            "Browser",
            (one) => <Tagged name={<BrowserName agent={one.browser} />} tag={one.isCurrent ? "This one" : null} />,
            "wide",
          ],
          ["Address", ({ client }) => (client === null ? <None>Not known</None> : <code>{client}</code>)],
          ["Logged in", ({ createdAt }) => <Ago at={createdAt} now={now} />],
          ["Last used", ({ lastSeenAt }) => <AgoOr at={lastSeenAt} now={now} />],
        ]}
        actions={({ id, client, ...session }) =>
          session.isCurrent ? null : (
            <RowAction
              user={user}
              path={SESSIONS_PATH}
              fields={[["id", id]]}
              of={`the session from ${client ?? "an unknown address"}`}
              name="End"
            />
          )
        }
      >
        {sessions.length < 2 ? null : (
          <PostForm user={user} action={SESSIONS_PATH} fields={[["id", ""]]}>
            <Submit look="bad">Log out everywhere else</Submit>
          </PostForm>
        )}
      </List>
      <Card id="leave" title="Leave this account">
        <p class="quiet">You can return only with another invitation. The last owner can’t leave.</p>
        <PostForm user={user} action={`${LOG_IN_PATH}/leave`}>
          <Check name="sure" label="I want to leave this account" isRequired />
          <Submit look="bad">Leave account</Submit>
        </PostForm>
      </Card>
    </SettingsPage>,
  );
}

function SwitchTo({ user, to: { accountId, name, email } }: { readonly user: Person; readonly to: Membership }) {
  return (
    <RowAction
      user={user}
      path={`${LOG_IN_PATH}/account`}
      fields={[["account", accountId]]}
      look="plain"
      of={
        <>
          to the account {name === null ? "of " : ""}
          <UntrustedText text={name ?? email ?? accountId} />
        </>
      }
      name="Switch"
    />
  );
}

function AccountLabel({ name, email }: Membership) {
  const label = name ?? email;
  return label === null ? <>Account</> : <Name text={label} />;
}

function BrowserName({ agent }: { readonly agent: string | null }) {
  if (agent === null) return <>A program</>;
  const known = browserName(agent);
  return known === null ? <Name text={agent} /> : <span title={agent}>{known}</span>;
}

export function accountPages(deps: PageDeps) {
  const { teamService, peopleService, ownFormOf } = deps;
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
  return personPages(deps)
    .get(SETTINGS_LINK.href, ({ person }) => accountPage(deps, person, { isIndex: true }))
    .get(LOG_IN_PATH, ({ person }) => accountPage(deps, person))
    .post(`${LOG_IN_PATH}/account`, switchTo)
    .post(ACCOUNT_NAME_PATH, rename)
    .post(`${LOG_IN_PATH}/leave`, leave)
    .post(SESSIONS_PATH, end);
}
