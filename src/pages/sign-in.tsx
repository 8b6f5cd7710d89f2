/** @jsxImportSource hono/jsx */
import Type from "typebox";
import { type Checked, compile } from "../api/schema-helpers.ts";
import type { Child } from "hono/jsx";
import type { ErrorCode } from "../core/domain-error.ts";
import { PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN } from "../core/limits.ts";
import { Button, Field, KnownPassword, PostForm } from "../ui/form.tsx";
import { Layout, render } from "../ui/layout.tsx";
import { LinkButton, Notice, PageHead, Problem, untrustedLines } from "../ui/parts.tsx";
import type { KeptNote, PageUser } from "../ui/text.ts";
import { type FormState, problemBeside, problemOf } from "./forms.ts";
import { noteIn } from "./kept-note.ts";
import type { RouteServices } from "../services/services.ts";
import { Secret } from "./settings-frame.tsx";
import { OIDC_PATH } from "../oidc/oidc.ts";

/** A form with an address and a password. `code`: why it was refused. */
export type Typed = FormState & { readonly code?: ErrorCode };

interface CredentialFieldsProps {
  readonly typed: Typed;
  /** Tells password managers whether to fill in or generate a password. */
  readonly password: "known" | "new";
  /** The fixed address, if it can't be chosen. */
  readonly emailOf?: string | null;
  /** Whether it also asks for the current password. */
  readonly isChange?: boolean;
}

const LENGTH = `Use ${PASSWORD_CHARS_MIN} to ${PASSWORD_CHARS_MAX} characters.`;

/** Fields for an address and a password. Never fills in a password again. */
export function CredentialFields({ typed, password, emailOf = null, isChange = false }: CredentialFieldsProps) {
  const taken = typed.code === "email_taken" ? typed.problem : null;
  const wrong = (name: string, text: string) => (problemOf(typed, name) === null ? null : text);
  return (
    <>
      <Problem text={taken === null ? problemBeside(typed, ["email", "password", "current_password"]) : null} />
      <Field
        name="email"
        label="Email"
        type="email"
        value={emailOf ?? typed.values.get("email")}
        required
        readonly={emailOf !== null}
        problem={taken ?? wrong("email", "Enter an email address, like ann@example.com.")}
        autocomplete="username"
      />
      {isChange ? (
        <KnownPassword name="current_password" label="Current password" problem={wrong("current_password", LENGTH)} />
      ) : null}
      {password === "known" ? (
        <KnownPassword name="password" label="Password" problem={wrong("password", LENGTH)} />
      ) : (
        <Field
          name="password"
          label={emailOf === null ? "Password" : "New password"}
          hint={`At least ${PASSWORD_CHARS_MIN} characters. A few random words work well.`}
          type="password"
          required
          minlength={PASSWORD_CHARS_MIN}
          maxlength={PASSWORD_CHARS_MAX}
          problem={wrong("password", LENGTH)}
          autocomplete="new-password"
        />
      )}
    </>
  );
}

interface EntryFormProps extends Omit<CredentialFieldsProps, "isChange"> {
  readonly action: string;
  /** The next path; left out or null for the usual one. */
  readonly next?: string | null;
  readonly button: string;
  /** A note that it keeps; left out or null for none. */
  readonly note?: KeptNote | null;
  readonly children?: Child;
}

/** A form that begins a session. */
export function EntryForm({ action, next = null, button, note = null, children, ...fields }: EntryFormProps) {
  return (
    <PostForm user={null} action={action} class="card" beginsSession fields={fieldsOf(next, note)}>
      {children}
      <CredentialFields {...fields} />
      <Button>{button}</Button>
    </PostForm>
  );
}

function fieldsOf(next: string | null, note: KeptNote | null): readonly (readonly [name: string, value: string])[] {
  return [...(next === null ? [] : [["next", next] as const]), ...Object.entries(note ?? {})];
}

type EntryNeeds = Pick<RouteServices, "signUpGate" | "oidc">;

export async function logInPage({ signUpGate, oidc }: EntryNeeds, next: string | null, typed: Typed): Promise<string> {
  const signupsOpen = (await signUpGate.closedBy()) === null;
  const note = noteIn(typed.values);
  return render(
    <Layout title="Log in" width="narrow" beginsSession>
      <h1>Log in</h1>
      {note === null ? null : (
        <Notice tone="wait">
          Your session has ended, and nothing was decided. Log in to go back to the request with your note:
          <br />
          {untrustedLines(note.reason)}
        </Notice>
      )}
      <EntryForm action="/auth/login" next={next} typed={typed} note={note} password="known" button="Log in" />
      {oidc === null ? null : <p class="or quiet small">or</p>}
      <ProviderForm oidc={oidc} next={next} note={note} />
      {signupsOpen ? (
        <p class="quiet">
          New here? <a href={withNext("/signup", next)}>Sign up</a>
        </p>
      ) : null}
      <p class="quiet small">
        Forgot your password? Ask the person who runs this server for a reset link (<code>outgate reset-password</code>
        ).
      </p>
    </Layout>,
  );
}

interface ProviderFormProps extends Pick<EntryNeeds, "oidc"> {
  readonly next: string | null;
  /** A note that it keeps; left out or null for none. */
  readonly note?: KeptNote | null;
}

/** The button of the identity provider, in its own form, so that no password is sent along. Null without a provider. */
export function ProviderForm({ oidc, next, note = null }: ProviderFormProps) {
  if (oidc === null) return null;
  return (
    <PostForm user={null} action={OIDC_PATH} beginsSession fields={fieldsOf(next, note)}>
      <Button look="plain">Log in with {oidc.name}</Button>
    </PostForm>
  );
}

/** Redirects to another service, without script. */
export function goesOnPage(title: string, address: string, link: string): string {
  return render(
    <Layout title={title} width="narrow" goesTo={address}>
      <h1>{title}</h1>
      <p>
        <a href={address}>{link}</a>
      </p>
    </Layout>,
  );
}

/** Says why a sign-in with the identity provider failed, and what to do. */
export function oidcProblemPage(message: string): string {
  return render(
    <Layout title="Not logged in" width="narrow">
      <PageHead title="You are not logged in" />
      <p>{message}</p>
      <p>
        <a href="/login">To the login page</a>
      </p>
    </Layout>,
  );
}

export function signUpPage(next: string | null, typed: Typed): string {
  return render(
    <Layout title="Sign up" width="narrow" beginsSession>
      <PageHead title="Sign up">
        <p class="quiet">This creates your own account, with an owner key.</p>
      </PageHead>
      <EntryForm action="/auth/signup" next={next} typed={typed} password="new" button="Sign up" />
      <p class="quiet">
        Already have an account? <a href={withNext("/login", next)}>Log in</a>
      </p>
    </Layout>,
  );
}

/** A page's path that continues to another path of this service. */
export function withNext(path: string, next: string | null): string {
  return next === null ? path : `${path}?${new URLSearchParams({ next }).toString()}`;
}

/** What the page after a sign-up shows. */
export const MADE_ACCOUNT = compile(Type.Object({ apiKey: Type.String(), next: Type.String() }));

/** Shows the owner key of a new account once. */
export function signedUpPage(user: PageUser, { apiKey, next }: Checked<typeof MADE_ACCOUNT>): string {
  return render(
    <Layout title="Your account is ready" user={user}>
      <h1>Your account is ready</h1>
      <div class="card">
        <Secret title="Your owner key" text={apiKey} />
        <p class="quiet">
          It is shown only once. Save it now. It has full access, including approvals: create a separate key for each
          agent.
        </p>
        <LinkButton href={next} look="main">
          Continue
        </LinkButton>
      </div>
    </Layout>,
  );
}

/** `email`: whose password is reset; null: the visitor becomes the account's first person. */
export function welcomePage(path: string, email: string | null, typed: Typed): string {
  const title = email === null ? "Welcome" : "Choose a new password";
  return render(
    <Layout title={title} width="narrow" beginsSession>
      <PageHead title={title}>
        <p class="quiet">
          {email === null
            ? "Create the owner’s login for this service. This link works once."
            : "Your other sessions are logged out. This link works once."}
        </p>
      </PageHead>
      <EntryForm
        action={path}
        typed={typed}
        password="new"
        emailOf={email}
        button={email === null ? "Create login" : "Save and log in"}
      />
    </Layout>,
  );
}
