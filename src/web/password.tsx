/** @jsxImportSource hono/jsx */
import { PASSWORD_CHARS_MAX } from "../domain/limits.ts";
import { CredentialFields, type Typed } from "./credentials.tsx";
import { Button, Field, FormToken } from "./form.tsx";
import { Layout } from "./layout.tsx";
import { Notice } from "./parts.tsx";
import { render } from "./render.ts";
import type { PageUser } from "./visitor.ts";

export interface PasswordPageProps {
  readonly user: PageUser;
  readonly typed: Typed;
}

/** Where somebody who is logged in chooses another password. The address stands there for password managers. */
export function passwordPage({ user, typed }: PasswordPageProps): string {
  return render(
    <Layout title="Change your password" place="Settings" user={user}>
      <Head title="Change your password" />
      <form method="post" action="/settings/password" class="card">
        <FormToken user={user} />
        <p>Whoever is logged in as you, in other browsers too, is logged out. You stay in here.</p>
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
          <Button>Change it</Button>
          <a class="button button-plain" href="/settings">
            Leave it
          </a>
        </div>
      </form>
    </Layout>,
  );
}

/** Tells that it is done. */
export function passwordChangedPage({ user }: { readonly user: PageUser }): string {
  return render(
    <Layout title="Your password is changed" place="Settings" user={user}>
      <Head title="Your password is changed" />
      <Notice tone="good">Every other log-in of yours has ended. This browser has a new one.</Notice>
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
