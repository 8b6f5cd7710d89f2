/** @jsxImportSource hono/jsx */
import { CredentialFields, type Typed } from "./credentials.tsx";
import { Button } from "./form.tsx";
import { Layout } from "./layout.tsx";
import { render } from "./render.ts";

export interface WelcomePageProps {
  /** The path of this very page. */
  readonly path: string;
  readonly typed: Typed;
  /** Whose password is renewed; null: the visitor becomes the account's first person. */
  readonly email: string | null;
}

/** What a one-time link opens: a way in for the first person, or for one who has lost their password. */
export function welcomePage({ path, typed, email }: WelcomePageProps): string {
  const title = email === null ? "Welcome" : "Choose a new password";
  return render(
    <Layout title={title} width="narrow" beginsSession>
      <div class="head">
        <h1>{title}</h1>
        <p class="quiet">
          {email === null
            ? "You become the owner of this Outgate. Choose what you log in with; this link works once."
            : "Whoever is logged in with the old one is logged out; this link works once."}
        </p>
      </div>
      <form method="post" action={path} class="card" data-session="new">
        <CredentialFields typed={typed} password="new" emailOf={email} />
        <Button>{email === null ? "Make it mine" : "Save and log in"}</Button>
      </form>
    </Layout>,
  );
}
