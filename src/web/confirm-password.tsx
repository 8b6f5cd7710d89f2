/** @jsxImportSource hono/jsx */
import { PASSWORD_CHARS_MAX } from "../domain/limits.ts";
import { Button, CONFIRM_PASSWORD_FIELD, Field, FormToken } from "./form.tsx";
import { Layout } from "./layout.tsx";
import { render } from "./render.ts";
import type { PageUser } from "./visitor.ts";

export interface ConfirmPasswordProps {
  readonly user: PageUser;
  /** Where the form was sent to, with its query. */
  readonly path: string;
  /** What was sent; sent again along with the password. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** What was wrong with the password; null: it is asked for the first time. */
  readonly problem: string | null;
}

/** Asks for the password before a change that nothing else proves to come from our own page. */
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
        <Field name="email" label="E-mail" type="email" value={user.email} isFixed autocomplete="username" />
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
        This browser has not shown that the change comes from this page: it runs no scripts here, or its stored data was
        cleared. Other programs on this host can get the session cookie, because the address is plain http.{" "}
        <a href="/docs/security">More about it</a>
      </p>
    </Layout>,
  );
}
