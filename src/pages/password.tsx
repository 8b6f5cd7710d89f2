/** @jsxImportSource hono/jsx */
import { PASSWORD_LINK_MS_MAX } from "../core/limits.ts";
import { checkPasswordChange } from "../accounts/people.ts";
import { answerForm, EMPTY_FORM } from "./forms.tsx";
import { page, seeOther } from "../http/response.ts";
import { createPersonRoutes, sourceOf } from "../http/session.ts";
import { Button, OrCancel, PostForm, Submit } from "../ui/form.tsx";
import { DomainError } from "../core/domain-error.ts";
import { LOG_IN_PATH } from "../ui/layout.tsx";
import { LinkButton, Notice, Problem, UntrustedText } from "../ui/parts.tsx";
import { settingsFrame } from "./settings-frame.tsx";
import { duration, type PageUser } from "../ui/text.ts";
import { CORRECTABLE, logPasswordChange } from "./auth-routes.ts";
import { CredentialFields, type Typed } from "./sign-in.tsx";
import type { PageDeps } from "./needs.ts";

export const PASSWORD_PATH = "/settings/password";

const PASSWORD_LINK_PATH = `${PASSWORD_PATH}/link`;

const ACCOUNT_LINK = { href: LOG_IN_PATH, name: "Account and login" } as const;

/** For people who log in by the identity provider alone. */
function noPasswordPage(
  { ownMails, oidc }: PasswordPageDeps,
  user: PageUser,
  isSent: boolean,
  problem?: string,
): string {
  return settingsFrame({
    user,
    section: "Account and login",
    title: "Password",
    back: ACCOUNT_LINK,
    children: (
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
        ) : (
          <AskForLink user={user} sendsMail={ownMails.sendsMail} />
        )}
      </section>
    ),
  });
}

function AskForLink({ user, sendsMail }: { readonly user: PageUser; readonly sendsMail: boolean }) {
  if (!sendsMail) {
    return (
      <p class="quiet">
        This server sends no mail, so it can’t send you a link. Ask the person who runs it for one:{" "}
        <code>outgate reset-password {user.email}</code>
      </p>
    );
  }
  return (
    <PostForm user={user} action={PASSWORD_LINK_PATH}>
      <Submit>Email me a link to set one</Submit>
    </PostForm>
  );
}

/** The form for a new password. Password managers need the address. */
function passwordPage(user: PageUser, typed: Typed): string {
  return settingsFrame({
    user,
    section: "Account and login",
    title: "Change your password",
    back: ACCOUNT_LINK,
    intro: "Your sessions in other browsers are logged out. You stay logged in here.",
    children: (
      <section class="card" aria-label="Password">
        <PostForm user={user} action={PASSWORD_PATH}>
          <CredentialFields typed={typed} password="new" emailOf={user.email} isChange />
          <OrCancel href={LOG_IN_PATH}>
            <Button>Change password</Button>
          </OrCancel>
        </PostForm>
      </section>
    ),
  });
}

function passwordChangedPage(user: PageUser): string {
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

type PasswordPageDeps = Pick<
  PageDeps,
  "deviceCookie" | "startSession" | "peopleService" | "personOf" | "tokenFormOf" | "flash" | "log" | "ownMails" | "oidc"
>;

const CHANGED_PATH = `${PASSWORD_PATH}/changed`;

/** Another password for whoever is logged in and knows the one they have. */
export function passwordPages(deps: PasswordPageDeps) {
  const { peopleService, personOf, tokenFormOf, startSession, flash, log, ownMails } = deps;
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
    createPersonRoutes(personOf)
      .get(PASSWORD_PATH, async ({ context, person }) => {
        if (await ownMails.hasPassword(person)) {
          return page("own", passwordPage(person, EMPTY_FORM));
        }
        return page("own", noPasswordPage(deps, person, flash.read(context, person) !== null));
      })
      .post(PASSWORD_LINK_PATH, mailLink)
      // Where the address of a refused form is loaded again.
      .get(PASSWORD_LINK_PATH, () => seeOther("own", PASSWORD_PATH))
      .post(PASSWORD_PATH, change)
      .get(CHANGED_PATH, ({ context, person }) => {
        if (flash.read(context, person) === null) return seeOther("own", PASSWORD_PATH);
        return page("own", passwordChangedPage(person));
      })
  );
}
