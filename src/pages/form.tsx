/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import type { PageUser, Choice } from "./words.ts";
import { PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN } from "../config/limits.ts";
import { Notice } from "./parts.tsx";

/** The hidden field that every form of a signed-in person carries. */
export const FORM_TOKEN_FIELD = "form_token";

/** Added by script (`assets/session.js`) to every form of our own pages. */
export const SESSION_SECRET_FIELD = "session_secret";

/** The password in place of that. */
export const CONFIRM_PASSWORD_FIELD = "confirm_password";

/** Stands in every form that changes something by the session's cookie (hostile 7). */
export function FormToken({ user }: { readonly user: Pick<PageUser, "formToken"> }) {
  return <input type="hidden" name={FORM_TOKEN_FIELD} value={user.formToken} />;
}

export interface FieldProps {
  readonly name: string;
  readonly label: string;
  readonly type?: "text" | "email" | "password" | "datetime-local" | "lines";
  readonly value?: string;
  /** Below the label, before there is a problem. */
  readonly hint?: string;
  /** What is wrong with what was typed; null or left out: nothing. */
  readonly problem?: string | null;
  readonly isRequired?: boolean;
  /** It is shown and sent, and can't be changed. */
  readonly isFixed?: boolean;
  readonly charsMin?: number;
  readonly charsMax?: number;
  /** What a password manager puts in (HTML, "autocomplete"). */
  readonly autocomplete?: string;
  /** Where one page has several forms with the same fields. */
  readonly idSuffix?: string;
}

/** A labelled input with its hint and its problem, tied together for whoever hears the page. */
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
  /** What the form says when this button sends it. */
  readonly name?: string;
  readonly value?: string;
  /** Where scripts run: the key that presses it, after this question was answered with yes. */
  readonly hotkey?: { readonly key: "a" | "x" | "r"; readonly question: string };
  readonly children?: Child;
}

/** Sends its form. */
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

/** A form of address and password as it is shown: for the first time, or again with what is wrong. No password is ever shown. */
export interface Typed {
  readonly email: string;
  readonly problems: Readonly<Partial<Record<"email" | "password" | "current_password", string>>>;
  /** What is wrong with neither of them, or with both. */
  readonly message: string | null;
}

export const UNTYPED: Typed = { email: "", problems: {}, message: null };

export interface CredentialFieldsProps {
  readonly typed: Typed;
  /** A password manager offers the one that it knows, or makes a new one. */
  readonly password: "known" | "new";
  /** Whose password it is, where that is settled. */
  readonly emailOf?: string | null;
  /** What is asked for between the two. */
  readonly children?: Child;
}

/** Address and password, for every form that lets a person in. */
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

/** Keeps where a person wanted to go. */
export function NextField({ next }: { readonly next: string | null }) {
  return next === null ? null : <input type="hidden" name="next" value={next} />;
}

/** The same for a link to a page that has such a form. */
export function withNext(path: string, next: string | null): string {
  return next === null ? path : `${path}?${new URLSearchParams({ next }).toString()}`;
}

export interface ChoicesProps {
  readonly name: string;
  /** The question. */
  readonly legend: string;
  readonly choices: readonly Choice[];
  /** The value that is chosen already; null: none. */
  readonly chosen: string | null;
  readonly problem?: string | null;
}

/** One of several, each with what it means. */
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
