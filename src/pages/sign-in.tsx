/** @jsxImportSource hono/jsx */
import {
  CredentialFields,
  NextField,
  type Typed,
  withNext,
  Button,
  Field,
  FormToken,
  CONFIRM_PASSWORD_FIELD,
} from "./form.tsx";
import { Layout, render } from "./layout.tsx";
import type { PageUser } from "./words.ts";
import { PASSWORD_CHARS_MAX } from "../config/limits.ts";
import { Notice } from "./parts.tsx";

export interface LogInPageProps {
  readonly typed: Typed;
  /** The path to redirect to. */
  readonly next: string | null;
  readonly signupsOpen: boolean;
}

export function logInPage({ typed, next, signupsOpen }: LogInPageProps): string {
  return render(
    <Layout title="Log in" width="narrow" beginsSession>
      <h1>Log in</h1>
      <form method="post" action="/auth/login" class="card" data-session="new">
        <NextField next={next} />
        <CredentialFields typed={typed} password="known" />
        <Button>Log in</Button>
      </form>
      {signupsOpen ? (
        <p class="quiet">
          New here? <a href={withNext("/signup", next)}>Sign up</a>
        </p>
      ) : null}
      <p class="quiet small">
        Forgot your password? Ask whoever runs this server for a reset link (<code>outgate reset-password</code>).
      </p>
    </Layout>,
  );
}

export interface SignUpPageProps {
  readonly typed: Typed;
  /** The path to redirect to. */
  readonly next: string | null;
}

export function signUpPage({ typed, next }: SignUpPageProps): string {
  return render(
    <Layout title="Sign up" width="narrow" beginsSession>
      <div class="head">
        <h1>Sign up</h1>
        <p class="quiet">This creates your own account, with an owner key.</p>
      </div>
      <form method="post" action="/auth/signup" class="card" data-session="new">
        <NextField next={next} />
        <CredentialFields typed={typed} password="new" />
        <Button>Sign up</Button>
      </form>
      <p class="quiet">
        Already have an account? <a href={withNext("/login", next)}>Log in</a>
      </p>
    </Layout>,
  );
}

export interface SignedUpPageProps {
  readonly user: PageUser;
  readonly apiKey: string;
  readonly next: string;
}

/** Shows the owner key of a new account once. */
export function signedUpPage({ user, apiKey, next }: SignedUpPageProps): string {
  return render(
    <Layout title="Your account is ready" user={user}>
      <h1>Your account is ready</h1>
      <div class="card">
        <div class="stack">
          <h2>Your owner key</h2>
          <p class="quiet">
            It is shown only once. Save it now. It has full access, including approvals: create a separate key for each
            agent.
          </p>
        </div>
        <code class="code">{apiKey}</code>
        <a class="button" href={next}>
          Continue
        </a>
      </div>
    </Layout>,
  );
}

export interface WelcomePageProps {
  readonly path: string;
  readonly typed: Typed;
  /** Whose password is reset; null: the visitor becomes the account's first person. */
  readonly email: string | null;
}

/** The page of a one-time link, for the first person or a lost password. */
export function welcomePage({ path, typed, email }: WelcomePageProps): string {
  const title = email === null ? "Welcome" : "Choose a new password";
  return render(
    <Layout title={title} width="narrow" beginsSession>
      <div class="head">
        <h1>{title}</h1>
        <p class="quiet">
          {email === null
            ? "Create the owner’s login for this service. This link works once."
            : "Your other sessions are logged out. This link works once."}
        </p>
      </div>
      <form method="post" action={path} class="card" data-session="new">
        <CredentialFields typed={typed} password="new" emailOf={email} />
        <Button>{email === null ? "Create login" : "Save and log in"}</Button>
      </form>
    </Layout>,
  );
}

export interface PasswordPageProps {
  readonly user: PageUser;
  readonly typed: Typed;
}

/** The form for a new password. Password managers need the address. */
export function passwordPage({ user, typed }: PasswordPageProps): string {
  return render(
    <Layout title="Change your password" place="Settings" user={user}>
      <Head title="Change your password" />
      <form method="post" action="/settings/password" class="card">
        <FormToken user={user} />
        <p>Your sessions in other browsers are logged out. You stay logged in here.</p>
        <CredentialFields typed={typed} password="new" emailOf={user.email}>
          <Field
            name="current_password"
            label="Current password"
            type="password"
            isRequired
            charsMax={PASSWORD_CHARS_MAX}
            problem={typed.problems.current_password ?? null}
            autocomplete="current-password"
          />
        </CredentialFields>
        <div class="choices">
          <Button>Change password</Button>
          <a class="button button-plain" href="/settings">
            Cancel
          </a>
        </div>
      </form>
    </Layout>,
  );
}

export function passwordChangedPage({ user }: { readonly user: PageUser }): string {
  return render(
    <Layout title="Your password is changed" place="Settings" user={user}>
      <Head title="Your password is changed" />
      <Notice tone="good">Your other sessions are logged out. You are still logged in here.</Notice>
    </Layout>,
  );
}

function Head({ title }: { readonly title: string }) {
  return (
    <div class="head">
      <p class="small">
        <a href="/settings">Settings</a>
      </p>
      <h1>{title}</h1>
    </div>
  );
}

export interface ConfirmPasswordProps {
  readonly user: PageUser;
  /** The path and query of the form. */
  readonly path: string;
  /** The fields of the form, sent again with the password. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** What was wrong with the password; null at the first time. */
  readonly problem: string | null;
}

/** Asks for the password if the session secret is missing. */
export function confirmPasswordPage({ user, path, fields, problem }: ConfirmPasswordProps): string {
  return render(
    <Layout title="Confirm with your password" user={user} width="narrow">
      <div class="head">
        <h1>Confirm with your password</h1>
        <p>Nothing has been changed yet.</p>
      </div>
      <form method="post" action={path} class="card">
        <FormToken user={user} />
        {fields.map(([name, value]) => (
          <input type="hidden" name={name} value={value} />
        ))}
        <Field name="email" label="Email" type="email" value={user.email} isFixed autocomplete="username" />
        <Field
          name={CONFIRM_PASSWORD_FIELD}
          label="Password"
          type="password"
          isRequired
          charsMax={PASSWORD_CHARS_MAX}
          problem={problem}
          autocomplete="current-password"
        />
        <div class="choices">
          <Button>Confirm</Button>
          <a class="button button-plain" href="/">
            Cancel
          </a>
        </div>
      </form>
      <p class="quiet small">
        Outgate could not verify that this change comes from its own page: scripts are off, or the browser’s stored data
        was cleared. On plain http, other programs on this host can read the session cookie.{" "}
        <a href="/docs/security">Learn more</a>
      </p>
    </Layout>,
  );
}
