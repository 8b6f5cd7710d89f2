/** @jsxImportSource hono/jsx */
import { CredentialFields, NextField, type Typed, withNext } from "./credentials.tsx";
import { Button } from "./form.tsx";
import { Layout } from "./layout.tsx";
import { render } from "./render.ts";

export interface LogInPageProps {
  readonly typed: Typed;
  /** Where the person goes from here; a path of ours. */
  readonly next: string | null;
  readonly signupsOpen: boolean;
}

/** Where people log in. */
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
        Lost your password? Whoever runs this server makes a link for a new one: <code>outgate reset-password</code>.
      </p>
    </Layout>,
  );
}
