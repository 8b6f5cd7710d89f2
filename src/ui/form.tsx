/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { PASSWORD_CHARS_MAX, REASON_CHARS_MAX } from "../core/limits.ts";
import { LinkButton } from "./parts.tsx";
import type { Choice, PageUser } from "./text.ts";

/** The CSRF token in every form of a logged-in person. */
export const FORM_TOKEN_FIELD = "form_token";

/** The session secret, added to every form by `browser/session.ts`. */
export const SESSION_SECRET_FIELD = "session_secret";

/** The password, if the session secret is missing. */
export const CONFIRM_PASSWORD_FIELD = "confirm_password";

export interface PostFormProps {
  /** Whose page it is: their form has the CSRF token, which every change needs. Null: nobody is logged in. */
  readonly user: Pick<PageUser, "formToken"> | null;
  /** Where the form is sent; the same page by default. */
  readonly action?: string | undefined;
  readonly fields?: readonly (readonly [name: string, value: string | number])[];
  readonly class?: "card" | "ask" | "person" | "decide";
  /** It begins a session: a login. */
  readonly beginsSession?: boolean;
  /** Its answer opens in a window of its own. */
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

interface LabelledProps {
  readonly id: string;
  readonly label: string;
  readonly hint?: string | undefined;
  readonly problem?: string | null;
  readonly children?: Child;
}

function Labelled({ id, label, hint, problem = null, children }: LabelledProps) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {hint === undefined ? null : (
        <p id={`${id}-hint`} class="quiet small">
          {hint}
        </p>
      )}
      {children}
      <FieldProblem id={id} text={problem} />
    </div>
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

/** Links hint and problem to their input, for screen readers. */
function describedBy({ id, hint, problem = null }: LabelledProps): string | undefined {
  const ids = [...(hint === undefined ? [] : [`${id}-hint`]), ...(problem === null ? [] : [`${id}-problem`])];
  return ids.length === 0 ? undefined : ids.join(" ");
}

export interface FieldProps extends Omit<LabelledProps, "id" | "children"> {
  readonly name: string;
  readonly type?: "text" | "email" | "password" | "datetime-local" | "lines" | "code" | undefined;
  readonly value?: string | undefined;
  readonly required?: boolean;
  readonly readonly?: boolean;
  readonly minlength?: number;
  readonly maxlength?: number | undefined;
  readonly autocomplete?: string;
  /** What holds while the field is empty. */
  readonly placeholder?: string | undefined;
  /** Offered while typing; anything else may be typed. */
  readonly known?: readonly string[];
  /** Where one page has several forms with the same fields. */
  readonly idSuffix?: string;
}

export function Field(props: FieldProps) {
  const { label, type = "text", value = "", hint, problem = null, idSuffix = "", known = [], ...rest } = props;
  const labelled = { id: `${rest.name}${idSuffix}`, label, hint, problem };
  const shared = {
    ...rest,
    id: labelled.id,
    "aria-invalid": problem === null ? undefined : "true",
    "aria-describedby": describedBy(labelled),
    list: known.length === 0 ? undefined : `${labelled.id}-known`,
  };
  return (
    <Labelled {...labelled}>
      {known.length === 0 ? null : (
        <datalist id={shared.list}>
          {known.map((text) => (
            <option value={text} />
          ))}
        </datalist>
      )}
      {type === "lines" || type === "code" ? (
        <textarea
          {...shared}
          rows={type === "code" ? rowsOf(value) : 3}
          class={type === "code" ? "code-field" : undefined}
        >
          {keptStart(value)}
        </textarea>
      ) : (
        <input {...shared} type={type} value={type === "password" ? undefined : value} />
      )}
    </Labelled>
  );
}

/** The lines of a text, within reason. */
function rowsOf(text: string): number {
  return Math.min(Math.max(text.split("\n").length + 1, 6), 24);
}

/** Browsers drop a line break at the start of a text field. */
function keptStart(value: string): string {
  return value.startsWith("\n") ? `\n${value}` : value;
}

export function ReasonField(props: Pick<FieldProps, "hint" | "idSuffix"> & { readonly value?: string | undefined }) {
  const { hint, idSuffix = "", value = "" } = props;
  return (
    <Field
      name="reason"
      label="Reason"
      type="lines"
      value={value}
      hint={`Optional. ${hint}`}
      maxlength={REASON_CHARS_MAX}
      idSuffix={idSuffix}
    />
  );
}

interface SelectProps extends Omit<LabelledProps, "id" | "children"> {
  readonly name: string;
  /** The first option, whose value is empty. Left out: one of the others is always chosen. */
  readonly none?: string | undefined;
  readonly options: readonly (readonly [value: string, label: string])[];
  readonly chosen: string | null | undefined;
}

export function Select({ name, none, options, chosen, ...labelled }: SelectProps) {
  return (
    <Labelled id={name} {...labelled}>
      <select id={name} name={name} aria-describedby={describedBy({ id: name, ...labelled })}>
        {none === undefined ? null : <option value="">{none}</option>}
        {options.map(([value, label]) => (
          <option value={value === label ? undefined : value} selected={value === chosen}>
            {label}
          </option>
        ))}
      </select>
    </Labelled>
  );
}

interface ButtonProps {
  readonly look?: "main" | "plain" | "bad" | "danger" | "link" | undefined;
  readonly name?: string;
  readonly value?: string;
  /** The keyboard shortcut that presses it, after this question was confirmed. */
  readonly hotkey?: { readonly key: "a" | "x" | "r"; readonly question: string } | undefined;
  /** The id of the text that says what it waits for, if a script may disable it. */
  readonly waitsFor?: string | undefined;
  readonly children?: Child;
}

export function Button({ look = "main", name, value, hotkey, waitsFor, children }: ButtonProps) {
  return (
    <button
      type="submit"
      class={look === "main" ? undefined : `button-${look}`}
      name={name}
      value={value}
      data-key={hotkey?.key}
      data-question={hotkey?.question}
      data-waits={waitsFor === undefined ? undefined : ""}
      aria-describedby={waitsFor}
    >
      {children}
    </button>
  );
}

interface SubmitProps extends Pick<ButtonProps, "look"> {
  /** Where the link beside it leads. */
  readonly cancel?: string | undefined;
  readonly children?: Child;
}

/** The last row of a form: its button, and a link that leaves it. */
export function Submit({ look, cancel, children }: SubmitProps) {
  return (
    <div class="buttons">
      <Button look={look}>{children}</Button>
      {cancel === undefined ? null : <LinkButton href={cancel}>Cancel</LinkButton>}
    </div>
  );
}

/** A password that the browser fills in. */
export function KnownPassword(props: Pick<FieldProps, "name" | "label"> & { readonly problem: string | null }) {
  return <Field {...props} type="password" required maxlength={PASSWORD_CHARS_MAX} autocomplete="current-password" />;
}

export interface ChoicesProps {
  readonly name: string;
  readonly legend: string;
  readonly choices: readonly Choice[];
  readonly chosen: string | null;
  readonly problem?: string | undefined;
}

interface CheckProps {
  readonly name: string;
  readonly label: Child;
  readonly isChecked?: boolean;
  readonly isRequired?: boolean;
  readonly value?: string;
}

export function Check({ name, label, isChecked = false, isRequired = false, value = "yes" }: CheckProps) {
  return (
    <label class="check">
      <input type="checkbox" name={name} value={value} required={isRequired} checked={isChecked} />
      <span>{label}</span>
    </label>
  );
}

interface ChecksProps {
  /** Begins the names of its boxes. */
  readonly name: string;
  readonly legend: string;
  readonly problem: string | null;
  readonly hint?: string | undefined;
  readonly boxes: readonly (readonly [name: string, label: string])[];
  /** What was chosen. */
  readonly values: ReadonlyMap<string, string>;
  readonly isCode?: boolean | undefined;
}

/** Boxes of which any number may be checked. */
export function Checks({ name, legend, hint, boxes, values, isCode = false, problem }: ChecksProps) {
  return (
    <fieldset aria-describedby={problem === null ? undefined : `${name}-problem`}>
      <legend>{legend}</legend>
      {hint === undefined ? null : <p class="quiet small">{hint}</p>}
      <FieldProblem id={name} text={problem} />
      <div class="chips">
        {boxes.map(([box, label]) => (
          <Check name={box} label={isCode ? <code>{label}</code> : label} isChecked={values.get(box) === "yes"} />
        ))}
      </div>
    </fieldset>
  );
}

export function Choices({ name, legend, choices, chosen, problem }: ChoicesProps) {
  return (
    <fieldset class="options" aria-describedby={problem === undefined ? undefined : `${name}-problem`}>
      <legend>{legend}</legend>
      <FieldProblem id={name} text={problem ?? null} />
      {choices.map((choice) => (
        <Option {...choice} name={name} isChecked={choice.value === chosen} isOneOf />
      ))}
    </fieldset>
  );
}

interface OptionProps extends Choice {
  readonly name: string;
  readonly isChecked: boolean;
  /** One of several must be chosen. */
  readonly isOneOf?: boolean;
}

/** A box with a text that explains it. */
export function Option({ name, value, label, hint, isChecked, isOneOf = false }: OptionProps) {
  return (
    <label class="option">
      <input type={isOneOf ? "radio" : "checkbox"} name={name} value={value} required={isOneOf} checked={isChecked} />
      <span>
        <b>{label}</b> <span class="quiet small">{hint}</span>
      </span>
    </label>
  );
}
