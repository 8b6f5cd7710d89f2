/** @jsxImportSource hono/jsx */
import { CredentialFields, NextField, type Typed, withNext } from "./credentials.tsx";
import { Button } from "./form.tsx";
import { Layout } from "./layout.tsx";
import { render } from "./render.ts";
import type { PageUser } from "./visitor.ts";

export interface SignUpPageProps {
  readonly typed: Typed;
  /** Where the person goes from here; a path of ours. */
  readonly next: string | null;
}

/** Where people make an account of their own. */
export function signUpPage({ typed, next }: SignUpPageProps): string {
  return render(
    <Layout title="Sign up" width="narrow" beginsSession>
      <div class="head">
        <h1>Sign up</h1>
        <p class="quiet">You get an account of your own, with an owner key.</p>
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
  /** A path of ours. */
  readonly next: string;
}

/** Shows the key of a new account, for the only time. */
export function signedUpPage({ user, apiKey, next }: SignedUpPageProps): string {
  return render(
    <Layout title="Your account is ready" user={user}>
      <h1>Your account is ready</h1>
      <div class="card">
        <div class="stack">
          <h2>Your owner key</h2>
          <p class="quiet">
            It is shown this once: keep it now. It can do everything, approvals included, so an agent gets a key of its
            own.
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
