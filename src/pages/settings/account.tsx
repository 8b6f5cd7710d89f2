/** @jsxImportSource hono/jsx */
import Type from "typebox";
import { compile } from "../../api/check.ts";
import { ChangeAccountBody } from "../../accounts/account.ts";
import { AccountParams } from "../../accounts/sign-up-gate.ts";
import { DomainError } from "../../core/domain-error.ts";
import { mayDo } from "../../core/roles.ts";
import type { StartedSession } from "../../core/session.ts";
import type { Membership } from "../../core/team-store.ts";
import type { RequestContext } from "../../http/request.ts";
import { HOME_PATH, type Person, requestSource } from "../../http/session.ts";
import type { Log } from "../../observability/log.ts";
import { Copied } from "../../ui/controls.tsx";
import { Button, Checkbox, Field, PostForm, Submit } from "../../ui/form.tsx";
import { FIRST_STEPS_PATH, LOG_IN_PATH, render, SETTINGS_LINK } from "../../ui/layout.tsx";
import { ago, Card, Facts, Name, Problem, sentence, time, untrusted, Notice } from "../../ui/parts.tsx";
import { browserName, duration, networkText, roleLabel } from "../../ui/text.ts";
import { EMPTY_FORM, type FormState } from "../frame/forms.ts";
import { personPages, type PageDeps } from "../frame/page-deps.ts";
import { schemaForm } from "../frame/schema-form.tsx";
import { agoOr, List, None, RowAction, Tagged } from "../frame/list.tsx";
import { SettingsPage } from "../frame/settings-frame.tsx";
import { PASSWORD_LINK_MS_MAX } from "../../core/limits.ts";
import { PasswordChangeBody } from "../../accounts/people.ts";
import { KNOWN_PASSWORD, NEW_PASSWORD } from "../frame/log-in.tsx";

const ACCOUNT_NAME_PATH = `${LOG_IN_PATH}/name`;

const SESSIONS_PATH = `${LOG_IN_PATH}/sessions`;

const NAME_FORM = schemaForm(ChangeAccountBody, {
  name: {
    label: "Account name",
    hint: "Everyone in the account sees it, and everyone you invite. Leave it empty to show your address.",
    required: false,
    autocomplete: "organization",
  },
});

interface AccountState {
  /** The form of a refused name. */
  readonly typed?: FormState;
  readonly problem?: string;
  readonly hasNewPassword?: boolean;
  /** Whether phones show the list of all sections instead. */
  readonly isIndex?: boolean;
}

/** The account page: the account, and the person's own accounts, sessions and password. */
async function accountPage(deps: PageDeps, user: Person, state: AccountState = {}): Promise<string> {
  const { typed, problem, hasNewPassword = false, isIndex = false } = state;
  const now = deps.clock.now();
  const { accountId } = user.caller;
  const [accounts, sessions, { isHidden, isOver }] = await Promise.all([
    deps.sessionService.accountsOf(user),
    deps.sessionService.list(user),
    deps.firstSteps.state(user.caller),
  ]);
  const isCurrent = (account: Membership) => account.accountId === accountId;
  const { email = null, name = null } = accounts.find(isCurrent) ?? {};
  const mayRename = mayDo(user.role, "manage");
  const role = roleLabel(user.role);
  return render(
    <SettingsPage user={user} section="Account and login" now={now} isIndex={isIndex}>
      <Problem text={problem} />
      {hasNewPassword ? (
        <Notice tone="good">Your password is changed, and your other sessions are logged out.</Notice>
      ) : null}
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
              (one) => {
                const label = one.name ?? one.email;
                const shown = label === null ? "Account" : <Name text={label} />;
                return <Tagged name={shown} tag={isCurrent(one) ? "Current" : null} />;
              },
              "wide",
            ],
            ["Role", (one) => roleLabel(one.role)],
            ["ID", (one) => <code>{one.accountId}</code>],
          ]}
          actions={(one) =>
            isCurrent(one) ? null : (
              <RowAction
                user={user}
                path={`${LOG_IN_PATH}/account`}
                fields={[["account", one.accountId]]}
                look="plain"
                of={sentence`to the account ${one.name === null ? "of " : ""}${untrusted(one.name ?? one.email ?? one.accountId)}`}
                name="Switch"
              />
            )
          }
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
          ["Address", ({ client }) => (client === null ? <None>Not known</None> : <code>{networkText(client)}</code>)],
          ["Logged in", ({ createdAt }) => ago(createdAt, now)],
          ["Last used", ({ lastSeenAt }) => agoOr(lastSeenAt, now)],
        ]}
        actions={({ id, client, browser, createdAt, ...session }) =>
          session.isCurrent ? null : (
            <RowAction
              user={user}
              path={SESSIONS_PATH}
              fields={[["id", id]]}
              of={sentence`the session of ${time(createdAt)}, ${<BrowserName agent={browser} />} from ${client === null ? "an unknown address" : networkText(client)}`}
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
          <Checkbox name="sure" label="I want to leave this account" isRequired />
          <Submit look="bad">Leave account</Submit>
        </PostForm>
      </Card>
    </SettingsPage>,
  );
}

function BrowserName({ agent }: { readonly agent: string | null }) {
  if (agent === null) return <>A program</>;
  const known = browserName(agent);
  return known === null ? <Name text={agent} /> : <span title={agent}>{known}</span>;
}

export function accountPages(deps: PageDeps) {
  const { teamService, sessionService, accountService, ownAnswer, flash } = deps;
  const switchTo = ownAnswer(async ({ person, form }) => {
    const account = form.get("account") ?? "";
    await sessionService.switchTo(person, AccountParams["~standard"].validate({ id: account }).value.id);
    return HOME_PATH;
  });
  const leave = ownAnswer(
    async ({ person, form }) => {
      if (form.get("sure") !== "yes")
        throw new DomainError("validation_error", "Tick the box to confirm that you leave.");
      await teamService.leave(person);
      // Leaving has ended their session in the account.
      return "/login";
    },
    ({ person }, { problem }) => accountPage(deps, person, { problem }),
  );
  const rename = ownAnswer(
    async ({ person, form }) => {
      await accountService.rename(person.caller, NAME_FORM.check(form).name);
      return LOG_IN_PATH;
    },
    ({ person }, typed) => accountPage(deps, person, { typed }),
  );
  const end = ownAnswer(async ({ person, form }) => {
    const id = form.get("id");
    if (id === undefined) throw new DomainError("validation_error", "Choose which session ends.");
    await sessionService.end(person, id === "" ? null : id);
    return LOG_IN_PATH;
  });
  return personPages(deps)
    .get(SETTINGS_LINK.href, ({ person }) => accountPage(deps, person, { isIndex: true }))
    .get(LOG_IN_PATH, ({ context, person }) =>
      accountPage(deps, person, { hasNewPassword: flash.read(context, person, DONE) !== null }),
    )
    .post(`${LOG_IN_PATH}/account`, switchTo)
    .post(ACCOUNT_NAME_PATH, rename)
    .post(`${LOG_IN_PATH}/leave`, leave)
    .post(SESSIONS_PATH, end);
}

const PASSWORD_PATH = "/settings/password";

/** Says that a form did what it was for. */
const DONE = compile(Type.Object({}));

const PASSWORD_LINK_PATH = `${PASSWORD_PATH}/link`;

const PLACE = { section: "Account and login", back: { href: LOG_IN_PATH, name: "Account and login" } } as const;

/** The page for people who log in only with the identity provider. */
function noPasswordPage({ ownMails, oidc }: PageDeps, user: Person, isSent: boolean, problem?: string): string {
  return render(
    <SettingsPage user={user} title="Password" {...PLACE}>
      <section class="card" aria-label="Password">
        <Problem text={problem} />
        <p>
          You log in with {oidc?.name ?? "an identity provider"} and have no password here. With a password you can also
          log in while the provider is away, and confirm changes where your browser runs no scripts.
        </p>
        {isSent ? (
          <Notice tone="good">
            A link is on its way to {untrusted(user.email)}. It works once, for {duration(PASSWORD_LINK_MS_MAX)}.
          </Notice>
        ) : null}
        {isSent || !ownMails.sendsMail ? null : (
          <PostForm user={user} action={PASSWORD_LINK_PATH}>
            <Submit>Email me a link to set one</Submit>
          </PostForm>
        )}
        {isSent || ownMails.sendsMail ? null : (
          <p class="quiet">
            This server sends no mail, so it can’t send you a link. Ask the person who runs it for one:{" "}
            <code>outgate reset-password {user.email}</code>
          </p>
        )}
      </section>
    </SettingsPage>,
  );
}

const PASSWORD_FORM = schemaForm(PasswordChangeBody, {
  current_password: KNOWN_PASSWORD,
  password: { ...NEW_PASSWORD, label: "New password" },
});

function passwordPage(user: Person, typed: FormState): string {
  return render(
    <SettingsPage
      user={user}
      title="Change your password"
      intro="Your sessions in other browsers are logged out. You stay logged in here."
      {...PLACE}
    >
      <section class="card" aria-label="Password">
        <PASSWORD_FORM.Form
          user={user}
          action={PASSWORD_PATH}
          state={typed}
          submit="Change password"
          cancel={LOG_IN_PATH}
        >
          {/* Password managers need the address. */}
          <Field name="email" label="Email" type="email" value={user.email} required readonly autocomplete="username" />
          <PASSWORD_FORM.Fields of={["current_password", "password"]} state={typed} />
        </PASSWORD_FORM.Form>
      </section>
    </SettingsPage>,
  );
}

/** Pages for changing a password, for people who are logged in and know the old one. */
export function passwordPages(deps: PageDeps) {
  const { peopleService, tokenAnswer, startSession, flash, log, ownMails } = deps;
  const change = tokenAnswer(
    async ({ context, person, form }) => {
      const asked = PASSWORD_FORM.check(form);
      const entered = await peopleService.changePassword(person, asked, requestSource(context, deps, form));
      logPasswordChange(context, entered, log);
      return startSession(context, entered, flash.redirect(entered.person, LOG_IN_PATH, DONE, {}));
    },
    ({ person }, typed) => passwordPage(person, typed),
  );
  // Asks for no password: these people have none, and the link goes only to their own address.
  const mailLink = tokenAnswer(
    async ({ person }) => {
      const { error } = await ownMails.sendPasswordLink(person);
      if (error !== null) throw new DomainError("unavailable", error);
      return flash.redirect(person, PASSWORD_PATH, DONE, {});
    },
    ({ person }, { problem }) => noPasswordPage(deps, person, false, problem),
  );
  return personPages(deps, { [PASSWORD_LINK_PATH]: PASSWORD_PATH })
    .get(PASSWORD_PATH, async ({ context, person }) =>
      (await ownMails.hasPassword(person))
        ? passwordPage(person, EMPTY_FORM)
        : noPasswordPage(deps, person, flash.read(context, person, DONE) !== null),
    )
    .post(PASSWORD_LINK_PATH, mailLink)
    .post(PASSWORD_PATH, change);
}

/** Logs who changed a password, without either password. */
export function logPasswordChange(
  { name, client }: RequestContext,
  { person: { caller } }: StartedSession,
  log: Log,
): void {
  const { accountId, personId } = caller;
  log.info("password.changed", { request_id: name.logId, account_id: accountId, person_id: personId, client });
}
