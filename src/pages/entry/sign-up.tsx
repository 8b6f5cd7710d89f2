/** @jsxImportSource hono/jsx */
import Type from "typebox";
import { type Checked, compile } from "../../api/check.ts";
import { Secret } from "../../ui/controls.tsx";
import { Layout, render } from "../../ui/layout.tsx";
import { LinkButton, PageHead } from "../../ui/parts.tsx";
import type { PageUser } from "../../ui/text.ts";
import type { FormState } from "../frame/forms.ts";
import { EntryForm, withNext } from "../frame/log-in.tsx";

export function signUpPage(next: string | null, typed: FormState): string {
  return render(
    <Layout title="Sign up" width="narrow" beginsSession>
      <PageHead title="Sign up">
        <p class="quiet">
          This creates your own account, with an owner key. Have you started this server? Then open the link that it
          printed with its keys, which belong to another account (<code>outgate welcome-link</code> prints a new one).
        </p>
      </PageHead>
      <EntryForm action="/auth/signup" next={next} state={typed} isNew button="Sign up" />
      <p class="quiet">
        Already have an account? <a href={withNext("/login", next)}>Log in</a>
      </p>
    </Layout>,
  );
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
export function welcomePage(path: string, email: string | null, typed: FormState): string {
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
        state={typed}
        isNew
        knownEmail={email}
        button={email === null ? "Create login" : "Save and log in"}
      />
    </Layout>,
  );
}
