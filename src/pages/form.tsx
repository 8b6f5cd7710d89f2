/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import type { PageUser, Choice } from "./words.ts";
import { PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN } from "../config/limits.ts";
import { Notice } from "./parts.tsx";

/** The CSRF token in every form of a logged-in person. */
export const FORM_TOKEN_FIELD = "form_token";

/** The session secret, added to every form by `assets/session.js`. */
export const SESSION_SECRET_FIELD = "session_secret";

/** The password, if the session secret is missing. */
export const CONFIRM_PASSWORD_FIELD = "confirm_password";

/** Required in every form that changes something with the session cookie. */
export function FormToken({ user }: { readonly user: Pick<PageUser, "formToken"> }) {
  return <input type="hidden" name={FORM_TOKEN_FIELD} value={user.formToken} />;
}

export interface FieldProps {
  readonly name: string;
  readonly label: string;
  readonly type?: "text" | "email" | "password" | "datetime-local" | "lines";
  readonly value?: string;
  readonly hint?: string;
  /** What is wrong with the value. */
  readonly problem?: string | null;
  readonly isRequired?: boolean;
  /** Read-only, but still sent. */
  readonly isFixed?: boolean;
  readonly charsMin?: number;
  readonly charsMax?: number;
  readonly autocomplete?: string;
  /** Where one page has several forms with the same fields. */
  readonly idSuffix?: string;
}

/** A labelled input whose hint and problem are linked to it for screen readers. */
export function Field(props: FieldProps) {
  const { name, label, type = "text", value = "", hint, problem = null, idSuffix = "" } = props;
  const id = `${name}${idSuffix}`;
  const about = [...(hint === undefined ? [] : [`${id}-hint`]), ...(problem === null ? [] : [`${id}-problem`])];
  const shared = {
    id,
    name,
    required: props.isRequired,
    readonly: props.isFixed,
    minlength: props.charsMin,
    maxlength: props.charsMax,
    autocomplete: props.autocomplete,
    "aria-invalid": problem === null ? undefined : "true",
    "aria-describedby": about.length === 0 ? undefined : about.join(" "),
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {hint === undefined ? null : (
        <p id={`${id}-hint`} class="quiet small">
          {hint}
        </p>
      )}
      {type === "lines" ? (
        <textarea {...shared} rows={3}>
          {value}
        </textarea>
      ) : (
        <input {...shared} type={type} value={type === "password" ? undefined : value} />
      )}
      {problem === null ? null : (
        <p id={`${id}-problem`} class="problem small">
          {problem}
        </p>
      )}
    </div>
  );
}

export interface ButtonProps {
  readonly look?: "main" | "plain" | "bad" | "danger" | "link";
  readonly name?: string;
  readonly value?: string;
  /** The keyboard shortcut that presses it, after this question was confirmed. */
  readonly hotkey?: { readonly key: "a" | "x" | "r"; readonly question: string };
  readonly children?: Child;
}

export function Button({ look = "main", name, value, hotkey, children }: ButtonProps) {
  return (
    <button
      type="submit"
      class={look === "main" ? undefined : `button-${look}`}
      name={name}
      value={value}
      data-key={hotkey?.key}
      data-question={hotkey?.question}
    >
      {children}
    </button>
  );
}

/** The state of a form with address and password. The password is never part of it. */
export interface Typed {
  readonly email: string;
  readonly problems: Readonly<Partial<Record<"email" | "password" | "current_password", string>>>;
  /** A problem with no particular field. */
  readonly message: string | null;
}

export const UNTYPED: Typed = { email: "", problems: {}, message: null };

export interface CredentialFieldsProps {
  readonly typed: Typed;
  /** Tells password managers whether to fill in or generate a password. */
  readonly password: "known" | "new";
  /** The fixed address, if it can't be chosen. */
  readonly emailOf?: string | null;
  /** Shown between address and password. */
  readonly children?: Child;
}

export function CredentialFields({ typed, password, emailOf = null, children }: CredentialFieldsProps) {
  const { email, problems, message } = typed;
  return (
    <>
      {message === null ? null : <Notice tone="bad">{message}</Notice>}
      <Field
        name="email"
        label="Email"
        type="email"
        value={emailOf ?? email}
        isRequired
        isFixed={emailOf !== null}
        problem={problems.email ?? null}
        autocomplete="username"
      />
      {children}
      {password === "known" ? (
        <Field
          name="password"
          label="Password"
          type="password"
          isRequired
          charsMax={PASSWORD_CHARS_MAX}
          problem={problems.password ?? null}
          autocomplete="current-password"
        />
      ) : (
        <Field
          name="password"
          label={emailOf === null ? "Password" : "New password"}
          hint={`At least ${PASSWORD_CHARS_MIN} characters. A few random words work well.`}
          type="password"
          isRequired
          charsMin={PASSWORD_CHARS_MIN}
          charsMax={PASSWORD_CHARS_MAX}
          problem={problems.password ?? null}
          autocomplete="new-password"
        />
      )}
    </>
  );
}

/** The path to redirect to after the login. */
export function NextField({ next }: { readonly next: string | null }) {
  return next === null ? null : <input type="hidden" name="next" value={next} />;
}

/** Adds it to a link to such a form. */
export function withNext(path: string, next: string | null): string {
  return next === null ? path : `${path}?${new URLSearchParams({ next }).toString()}`;
}

export interface ChoicesProps {
  readonly name: string;
  /** The question. */
  readonly legend: string;
  readonly choices: readonly Choice[];
  readonly chosen: string | null;
  readonly problem?: string | null;
}

/** Radio buttons, each with an explanation. */
export function Choices({ name, legend, choices, chosen, problem = null }: ChoicesProps) {
  return (
    <fieldset class="options" aria-describedby={problem === null ? undefined : `${name}-problem`}>
      <legend>{legend}</legend>
      {problem === null ? null : (
        <p id={`${name}-problem`} class="problem small">
          {problem}
        </p>
      )}
      {choices.map(({ value, label, hint }) => (
        <label class="option">
          <input type="radio" name={name} value={value} required checked={value === chosen} />
          <span>
            <b>{label}</b> <span class="quiet small">{hint}</span>
          </span>
        </label>
      ))}
    </fieldset>
  );
}
