/** @jsxImportSource hono/jsx */
import { PASSWORD_LINK_MS_MAX } from "../core/limits.ts";
import { checkPasswordChange } from "../accounts/people.ts";
import { DomainError } from "../core/domain-error.ts";
import { seeOther } from "../http/response.ts";
import { type Person, sourceOf } from "../http/session.ts";
import { PostForm, Submit } from "../ui/form.tsx";
import { LOG_IN_PATH, render } from "../ui/layout.tsx";
import { LinkButton, Notice, Problem, UntrustedText } from "../ui/parts.tsx";
import { duration } from "../ui/text.ts";
import { CORRECTABLE, logPasswordChange } from "./auth-routes.ts";
import { answerForm, EMPTY_FORM, personPages } from "./forms.ts";
import type { PageDeps } from "./needs.ts";
import { SettingsPage } from "./settings-frame.tsx";
import { CredentialFields, type Typed } from "./sign-in.tsx";

export const PASSWORD_PATH = "/settings/password";

const PASSWORD_LINK_PATH = `${PASSWORD_PATH}/link`;

const CHANGED_PATH = `${PASSWORD_PATH}/changed`;

const PLACE = { section: "Account and login", back: { href: LOG_IN_PATH, name: "Account and login" } } as const;

/** For people who log in by the identity provider alone. */
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
            A link is on its way to <UntrustedText text={user.email} />. It works once, for{" "}
            {duration(PASSWORD_LINK_MS_MAX)}.
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

/** The form for a new password. Password managers need the address. */
function passwordPage(user: Person, typed: Typed): string {
  return render(
    <SettingsPage
      user={user}
      title="Change your password"
      intro="Your sessions in other browsers are logged out. You stay logged in here."
      {...PLACE}
    >
      <section class="card" aria-label="Password">
        <PostForm user={user} action={PASSWORD_PATH}>
          <CredentialFields typed={typed} password="new" emailOf={user.email} isChange />
          <Submit cancel={LOG_IN_PATH}>Change password</Submit>
        </PostForm>
      </section>
    </SettingsPage>,
  );
}

function passwordChangedPage(user: Person): string {
  return render(
    <SettingsPage user={user} title="Your password is changed" {...PLACE}>
      <Notice tone="good">Your other sessions are logged out. You are still logged in here.</Notice>
      <LinkButton href={LOG_IN_PATH}>Back to account and login</LinkButton>
    </SettingsPage>,
  );
}

/** Another password for whoever is logged in and knows the one they have. */
export function passwordPages(deps: PageDeps) {
  const { peopleService, tokenFormOf, startSession, flash, log, ownMails } = deps;
  const change = answerForm(
    tokenFormOf,
    async ({ context, person, form }) => {
      const asked = checkPasswordChange({
        current_password: form.get("current_password") ?? null,
        password: form.get("password") ?? null,
      });
      const entered = await peopleService.changePassword(person, asked, sourceOf(context, deps, form));
      logPasswordChange(context, entered, log);
      return startSession(context, entered, flash.redirect(entered.person, CHANGED_PATH, {}));
    },
    ({ person }, typed) => passwordPage(person, typed),
    CORRECTABLE,
  );
  const mailLink = answerForm(
    // People who log in with the identity provider have no password to confirm with, and the link goes to their own address alone.
    tokenFormOf,
    async ({ person }) => {
      const { error } = await ownMails.sendPasswordLink(person);
      if (error !== null) throw new DomainError("unavailable", error);
      return flash.redirect(person, PASSWORD_PATH, {});
    },
    ({ person }, { problem }) => noPasswordPage(deps, person, false, problem),
    CORRECTABLE,
  );
  return (
    personPages(deps)
      .get(PASSWORD_PATH, async ({ context, person }) =>
        (await ownMails.hasPassword(person))
          ? passwordPage(person, EMPTY_FORM)
          : noPasswordPage(deps, person, flash.read(context, person) !== null),
      )
      .post(PASSWORD_LINK_PATH, mailLink)
      // Where the address of a refused form is loaded again.
      .get(PASSWORD_LINK_PATH, () => seeOther("own", PASSWORD_PATH))
      .post(PASSWORD_PATH, change)
      .get(CHANGED_PATH, ({ context, person }) =>
        flash.read(context, person) === null ? seeOther("own", PASSWORD_PATH) : passwordChangedPage(person),
      )
  );
}
