/** @jsxImportSource hono/jsx */
import { CONFIRM_EMAIL_FIELD, CONFIRM_PASSWORD_FIELD, Field, PostForm, Submit } from "./form.tsx";
import { PASSWORD_CHARS_MAX } from "../core/limits.ts";
import { PageHead } from "./parts.tsx";
import { render, Layout } from "./layout.tsx";
import type { PageUser } from "./text.ts";

interface ConfirmPasswordProps {
  readonly user: PageUser;
  readonly path: string;
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** What was wrong with the password; null the first time. */
  readonly problem: string | null;
}

/** Asks for the password if the session secret is missing. */
export function confirmPasswordPage({ user, path, fields, problem }: ConfirmPasswordProps): string {
  return render(
    <Layout title="Confirm with your password" user={user} width="narrow">
      <PageHead title="Confirm with your password">
        <p>Nothing has been changed yet.</p>
      </PageHead>
      <PostForm user={user} action={path} class="card" fields={fields}>
        <Field
          name={CONFIRM_EMAIL_FIELD}
          label="Email"
          type="email"
          value={user.email}
          readonly
          autocomplete="username"
        />
        <Field
          name={CONFIRM_PASSWORD_FIELD}
          label="Password"
          type="password"
          required
          maxlength={PASSWORD_CHARS_MAX}
          problem={problem}
          autocomplete="current-password"
        />
        <Submit cancel="/">Confirm</Submit>
      </PostForm>
      <p class="quiet small">
        No password here? <a href="/settings/password">Set one</a>, or log out and in again with scripts on.
      </p>
      <p class="quiet small">
        Outgate could not verify that this change comes from its own page: scripts are off, or the browser’s stored data
        was cleared. On plain http, other programs on this host can read the session cookie.{" "}
        <a href="/docs/security">Learn more</a>
      </p>
    </Layout>,
  );
}
