/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { CredentialsBody } from "../../accounts/people.ts";
import { PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN } from "../../core/limits.ts";
import { Button, PostForm } from "../../ui/form.tsx";
import { Layout, render } from "../../ui/layout.tsx";
import { Notice, untrustedLines } from "../../ui/parts.tsx";
import type { KeptNote } from "../../ui/text.ts";
import type { FormState } from "./forms.ts";
import { noteIn } from "./kept-note.ts";
import type { RouteServices } from "../../services/services.ts";
import { schemaForm } from "./schema-form.tsx";
import { OIDC_PATH } from "../../oidc/oidc.ts";

const EMAIL = { hint: null, autocomplete: "username", wrong: "Enter an email address, like ann@example.com." } as const;

const PASSWORD = { type: "password", wrong: `Use ${PASSWORD_CHARS_MIN} to ${PASSWORD_CHARS_MAX} characters.` } as const;

/** A password that password managers fill in. No form shows one that was typed again. */
export const KNOWN_PASSWORD = { ...PASSWORD, hint: null, autocomplete: "current-password" } as const;

/** A password that password managers generate. */
export const NEW_PASSWORD = {
  ...PASSWORD,
  hint: `At least ${PASSWORD_CHARS_MIN} characters. A few random words work well.`,
  minlength: PASSWORD_CHARS_MIN,
  autocomplete: "new-password",
} as const;

export const LOG_IN_FORM = schemaForm(CredentialsBody, { email: EMAIL, password: KNOWN_PASSWORD });

export const SIGN_UP_FORM = schemaForm(CredentialsBody, { email: EMAIL, password: NEW_PASSWORD });

interface EntryFormProps {
  readonly action: string;
  /** Whether the person chooses a password. */
  readonly isNew?: boolean;
  readonly state: FormState;
  /** The fixed address; left out or null if it can be chosen. */
  readonly knownEmail?: string | null;
  /** The next path; left out or null for the usual one. */
  readonly next?: string | null;
  readonly button: string;
  /** A note that it keeps; left out or null for none. */
  readonly note?: KeptNote | null;
  readonly children?: Child;
}

/** A form that begins a session. */
export function EntryForm(props: EntryFormProps) {
  const { action, isNew = false, knownEmail = null, next = null, button, note = null, children } = props;
  const { Form, Field } = isNew ? SIGN_UP_FORM : LOG_IN_FORM;
  const state = withTaken(props.state);
  return (
    <Form user={null} action={action} state={state} class="card" beginsSession fields={hiddenFields(next, note)}>
      {children}
      <Field name="email" state={state} {...(knownEmail !== null && { value: knownEmail, readonly: true })} />
      <Field name="password" state={state} label={isNew && knownEmail !== null ? "New password" : "Password"} />
      <Button>{button}</Button>
    </Form>
  );
}

/** Shows beside the address that it is taken: the error names no field. */
function withTaken(state: FormState): FormState {
  const { code, problem } = state;
  if (code !== "email_taken" || problem === null) return state;
  return { ...state, issues: [{ field: "email", message: problem }] };
}

function hiddenFields(next: string | null, note: KeptNote | null): readonly (readonly [name: string, value: string])[] {
  return [...(next === null ? [] : [["next", next] as const]), ...Object.entries(note ?? {})];
}

type EntryNeeds = Pick<RouteServices, "signUpGate" | "oidc">;

export async function logInPage(
  { signUpGate, oidc }: EntryNeeds,
  next: string | null,
  typed: FormState,
): Promise<string> {
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
      <EntryForm action="/auth/login" next={next} state={typed} note={note} button="Log in" />
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
    <PostForm user={null} action={OIDC_PATH} beginsSession fields={hiddenFields(next, note)}>
      <Button look="plain">Log in with {oidc.name}</Button>
    </PostForm>
  );
}

/** A page's path that continues to another path of this service. */
export function withNext(path: string, next: string | null): string {
  return next === null ? path : `${path}?${new URLSearchParams({ next }).toString()}`;
}
