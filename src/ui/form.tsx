/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { REASON_CHARS_MAX } from "../core/limits.ts";
import { LinkButton } from "./parts.tsx";
import type { Choice, PageUser } from "./text.ts";

/** The CSRF token in every form of a logged-in person. */
export const FORM_TOKEN_FIELD = "form_token";

/** The session secret, added to every form by `browser/session.ts`. */
export const SESSION_SECRET_FIELD = "session_secret";

/** The password, if the session secret is missing. */
export const CONFIRM_PASSWORD_FIELD = "confirm_password";

/** For password managers. No other form has it, since the fields of one are sent again beside it. */
export const CONFIRM_EMAIL_FIELD = "confirm_email";

export interface PostFormProps {
  /** Whose page it is. Adds their CSRF token, which every change needs. Null if nobody is logged in. */
  readonly user: Pick<PageUser, "formToken"> | null;
  /** Where the form is sent; by default to the same page. */
  readonly action?: string | undefined;
  readonly fields?: readonly (readonly [name: string, value: string | number])[];
  readonly class?: "card" | "decide";
  /** Whether it begins a session, as a login does. */
  readonly beginsSession?: boolean;
  /** Whether its answer opens a new window. */
  readonly opensWindow?: boolean;
  readonly children?: Child;
}

/** A form that changes something or shows a secret. */
export function PostForm({ user, action, fields = [], beginsSession, opensWindow, children, ...props }: PostFormProps) {
  return (
    <form
      method="post"
      action={action}
      class={props.class}
      data-session={beginsSession === true ? "new" : undefined}
      target={opensWindow === true ? "_blank" : undefined}
    >
      {user === null ? null : <input type="hidden" name={FORM_TOKEN_FIELD} value={user.formToken} />}
      {fields.map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
      {children}
    </form>
  );
}

function FieldProblem({ id, text }: { readonly id: string; readonly text: string | null }) {
  if (text === null) return null;
  return (
    <p id={`${id}-problem`} class="problem small">
      {text}
    </p>
  );
}

export interface FieldProps {
  readonly name: string;
  readonly label: string;
  readonly hint?: string | undefined;
  readonly problem?: string | null;
  readonly type?: "text" | "email" | "password" | "datetime-local" | "lines" | "code" | undefined;
  readonly value?: string | undefined;
  /** The options of a drop-down list. */
  readonly options?: readonly (readonly [value: string, label: string])[] | undefined;
  /** A first option with an empty value; left out if one of the others is always chosen. */
  readonly none?: string | undefined;
  readonly required?: boolean;
  readonly readonly?: boolean;
  readonly minlength?: number;
  readonly maxlength?: number | undefined;
  readonly autocomplete?: string;
  /** The value that applies while the field is empty. */
  readonly placeholder?: string | undefined;
  /** Values offered while typing. Others may be typed too. */
  readonly known?: readonly string[];
  /** Makes ids unique if a page has several forms with the same fields. */
  readonly idSuffix?: string;
}

export function Field(props: FieldProps) {
  const { label, hint, problem = null, idSuffix = "", known = [], ...input } = props;
  const id = `${input.name}${idSuffix}`;
  // Tells screen readers which texts describe the field.
  const described = [hint === undefined ? "" : `${id}-hint`, problem === null ? "" : `${id}-problem`];
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {hint === undefined ? null : (
        <p id={`${id}-hint`} class="quiet small">
          {hint}
        </p>
      )}
      {known.length === 0 ? null : (
        <datalist id={`${id}-known`}>
          {known.map((text) => (
            <option value={text} />
          ))}
        </datalist>
      )}
      <Input
        {...input}
        id={id}
        list={known.length === 0 ? undefined : `${id}-known`}
        aria-invalid={problem === null ? undefined : "true"}
        autofocus={problem !== null}
        aria-describedby={described.filter((one) => one !== "").join(" ") || undefined}
      />
      <FieldProblem id={id} text={problem} />
    </div>
  );
}

interface InputProps extends Omit<FieldProps, "label" | "hint" | "problem" | "idSuffix" | "known"> {
  readonly id: string;
  readonly list: string | undefined;
  readonly "aria-invalid": "true" | undefined;
  /** The first wrong field, which may be far below. Screen readers say what is wrong with it. */
  readonly autofocus: boolean;
  readonly "aria-describedby": string | undefined;
}

function Input({ type = "text", value = "", options, none, ...shared }: InputProps) {
  if (options !== undefined) {
    return (
      <select {...shared}>
        {none === undefined ? null : <option value="">{none}</option>}
        {options.map(([option, label]) => (
          <option value={option === label ? undefined : option} selected={option === value}>
            {label}
          </option>
        ))}
      </select>
    );
  }
  if (type !== "lines" && type !== "code")
    return <input {...shared} type={type} value={type === "password" ? undefined : value} />;
  const rows = type === "code" ? Math.min(Math.max(value.split("\n").length + 1, 6), 24) : 3;
  return (
    <textarea {...shared} rows={rows} class={type === "code" ? "code-field" : undefined}>
      {/* Doubled, because browsers drop a line break at the start. */}
      {value.startsWith("\n") ? `\n${value}` : value}
    </textarea>
  );
}

export function ReasonField({ hint, ...props }: Pick<FieldProps, "hint" | "idSuffix" | "value">) {
  return (
    <Field
      name="reason"
      label="Reason"
      type="lines"
      hint={`Optional. ${hint}`}
      maxlength={REASON_CHARS_MAX}
      {...props}
    />
  );
}

interface ButtonProps {
  readonly look?: "main" | "plain" | "bad" | "danger" | "link" | undefined;
  readonly name?: string;
  readonly value?: string;
  /** The keyboard shortcut that presses it, once this question is confirmed. */
  readonly hotkey?: { readonly key: "a" | "x" | "r"; readonly question: string } | undefined;
  /** The question that scripts ask first. */
  readonly question?: string | undefined;
  /** The id of the text that says why a script may keep it from working. */
  readonly waitsFor?: string | undefined;
  readonly children?: Child;
}

export function Button({ look = "main", name, value, hotkey, question, waitsFor, children }: ButtonProps) {
  return (
    <button
      type="submit"
      class={look === "main" ? undefined : `button-${look}`}
      name={name}
      value={value}
      data-key={hotkey?.key}
      data-question={question ?? hotkey?.question}
      data-waits={waitsFor === undefined ? undefined : ""}
      aria-describedby={waitsFor}
    >
      {children}
    </button>
  );
}

interface SubmitProps extends Pick<ButtonProps, "look"> {
  /** The path of the link beside it. */
  readonly cancel?: string | undefined;
  readonly children?: Child;
}

/** The last row of a form: its button, and a link to leave it. */
export function Submit({ look, cancel, children }: SubmitProps) {
  return (
    <div class="buttons">
      <Button look={look}>{children}</Button>
      {cancel === undefined ? null : <LinkButton href={cancel}>Cancel</LinkButton>}
    </div>
  );
}

interface CheckboxProps {
  readonly name: string;
  readonly label: Child;
  readonly isChecked?: boolean;
  readonly isRequired?: boolean;
  readonly value?: string;
}

export function Checkbox({ name, label, isChecked = false, isRequired = false, value = "yes" }: CheckboxProps) {
  return (
    <label class="check">
      <input type="checkbox" name={name} value={value} required={isRequired} checked={isChecked} />
      <span>{label}</span>
    </label>
  );
}

interface OptionProps extends Choice {
  readonly name: string;
  readonly isChecked: boolean;
  /** Whether it is a radio button, of which one must be chosen. */
  readonly isRadio?: boolean;
}

/** A box with an explanation. */
export function Option({ name, value, label, hint, isChecked, isRadio = false }: OptionProps) {
  return (
    <label class="option">
      <input type={isRadio ? "radio" : "checkbox"} name={name} value={value} required={isRadio} checked={isChecked} />
      <span>
        <b>{label}</b> <span class="quiet small">{hint}</span>
      </span>
    </label>
  );
}

interface FieldGroupProps {
  /** The beginning of its fields' names. */
  readonly name: string;
  readonly legend: string;
  readonly hint?: string | undefined;
  readonly problem?: string | null;
  readonly look?: "options" | "grant-vary";
  readonly children?: Child;
}

/** Fields with a title of their own. */
export function FieldGroup({ name, legend, hint, problem = null, look, children }: FieldGroupProps) {
  const wrong = problem === null ? {} : { "aria-describedby": `${name}-problem`, tabindex: -1, autofocus: true };
  return (
    <fieldset class={look} {...wrong}>
      <legend>{legend}</legend>
      {hint === undefined ? null : <p class="quiet small">{hint}</p>}
      <FieldProblem id={name} text={problem} />
      {children}
    </fieldset>
  );
}

interface ChoicesProps extends FieldGroupProps {
  readonly choices: readonly Choice[];
  readonly chosen: string | undefined;
}

/** Radio buttons, each with an explanation. */
export function Choices({ choices, chosen, ...group }: ChoicesProps) {
  return (
    <FieldGroup {...group} look="options">
      {choices.map((choice) => (
        <Option {...choice} name={group.name} isChecked={choice.value === chosen} isRadio />
      ))}
    </FieldGroup>
  );
}

interface CheckboxesProps extends FieldGroupProps {
  readonly boxes: readonly (readonly [name: string, label: string])[];
  /** What was chosen. */
  readonly values: ReadonlyMap<string, string>;
  readonly isCode?: boolean | undefined;
}

/** Checkboxes, of which any number may be checked. */
export function Checkboxes({ boxes, values, isCode = false, ...group }: CheckboxesProps) {
  return (
    <FieldGroup {...group}>
      <div class="chips">
        {boxes.map(([box, label]) => (
          <Checkbox name={box} label={isCode ? <code>{label}</code> : label} isChecked={values.get(box) === "yes"} />
        ))}
      </div>
    </FieldGroup>
  );
}
