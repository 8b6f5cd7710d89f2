/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import type { PageUser } from "./visitor.ts";

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
