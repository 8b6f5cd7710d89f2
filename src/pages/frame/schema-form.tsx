/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import type { Static, TObject } from "typebox";
import { bodyCheck } from "../../api/check.ts";
import { isJsonObject } from "../../core/json.ts";
import { CHANNEL_KINDS } from "../../core/channel.ts";
import type { Form } from "../../http/body.ts";
import {
  Checkbox,
  Checkboxes,
  Choices,
  Field,
  type FieldProps,
  Option,
  PostForm,
  type PostFormProps,
  Submit,
} from "../../ui/form.tsx";
import { Problem } from "../../ui/parts.tsx";
import { type Choice, exactDuration, inWords, number, readDuration } from "../../ui/text.ts";
import { filled, type FormState, isAbout, problemBeside, fieldProblem } from "./forms.ts";

/** The choices that fields depend on. `settings-frame.css` shows such a field once one of its choices is made. */
export const CHOICES_WITH_FIELDS = [...CHANNEL_KINDS, "header", "basic", "hmac", "host", "key"] as const;

/** How a form shows a member of its schema. By default, the schema decides. */
interface FieldSpec extends Omit<FieldProps, "hint" | "label" | "maxlength" | "name" | "problem" | "type"> {
  /** By default the member's name in words. */
  readonly label?: string;
  /** The text below the label; null for none. By default, text fields show the schema's description. */
  readonly hint?: string | null;
  /** What to say of a value that the schema refuses, if its own message is for programs. */
  readonly wrong?: string;
  /** The same for a value that a service refuses. */
  readonly refused?: string;
  /**
   * By default follows from the member's type: a list has lines, on which commas and semicolons also separate items. With "lines",
   * only line breaks do, because an item may have those signs in it. A duration is written as "90 s".
   */
  readonly type?: FieldProps["type"] | "duration";
  /** Radio buttons. */
  readonly choices?: readonly Choice[];
  /** Checkboxes for the items of a list; by default those in the schema. */
  readonly boxes?: readonly (readonly [value: string, label: string])[];
  readonly isCode?: boolean | undefined;
  /** The field appears and counts only if one of these is chosen. */
  readonly onlyFor?: readonly (typeof CHOICES_WITH_FIELDS)[number][];
}

/** A member, or "sum.limit" for a member of a member. Lists and maps are one field. */
type Path<Body> = { [Name in keyof Body & string]-?: PathOf<Name, NonNullable<Body[Name]>> }[keyof Body & string];

type PathOf<Name extends string, Value> = Value extends readonly unknown[]
  ? Name
  : Value extends object
    ? string extends keyof Value
      ? Name
      : `${Name}.${keyof Value & string}`
    : Name;

export type FieldSpecs<Body> = Readonly<Partial<Record<Path<Body>, FieldSpec>>>;

interface ShownProps<Body> {
  readonly state: FormState;
  /** Parts of the specs that are known only at rendering. */
  readonly specs?: FieldSpecs<Body> | undefined;
}

interface FormProps<Body> extends ShownProps<Body>, PostFormProps {
  /** The button; left out if the children have their own. */
  readonly submit?: string;
  readonly look?: "plain" | "bad";
  /** The path of the link beside the button. */
  readonly cancel?: string;
  /** By default all fields in the order of the specs. */
  readonly children?: Child;
}

interface FieldsProps<Body> extends ShownProps<Body> {
  readonly of: readonly Path<Body>[];
}

interface FoldProps<Body> extends FieldsProps<Body> {
  readonly title: string;
  readonly note?: string | undefined;
}

/**
 * A form for a body of the API. `Form` shows it in a state that `filledWith` has made of a body, or that a refused form has left.
 * `check` reads it, by the body's schema. Fields have the names of members: "name", "sum.limit" for a member of a member,
 * "method_GET" for the checkbox of an item of `methods`.
 */
export function schemaForm<Schema extends TObject>(schema: Schema, specs: FieldSpecs<Static<Schema>>) {
  const members = schemaMembers(schema);
  const fieldSpecs = new Map(Object.entries<FieldSpec | undefined>(specs));
  const names = [...fieldSpecs.keys()];
  const toField = (name: string): FormField => ({
    name,
    member: members.get(name) ?? { isRequired: false },
    label: fieldLabel(name),
    ...fieldSpecs.get(name),
  });
  const fields = names.map(toField);

  const accept = bodyCheck(schema, (issue) => {
    const field = fields.find(({ name }) => isAbout(issue, name));
    return { ...issue, message: (field && wordsFor(field)) ?? issue.message };
  });
  /** Checkboxes don't show their own problems. */
  const withProblem = fields.filter(({ member }) => member.type !== "boolean").map(({ name }) => name);
  const shown = (of: readonly string[], { state, specs: more }: ShownProps<Static<Schema>>) => {
    const moreSpecs = new Map(Object.entries<FieldSpec | undefined>(more ?? {}));
    return of.map((name) => <ShownField {...toField(name)} {...moreSpecs.get(name)} state={state} />);
  };

  return {
    names,

    /** Says what is wrong besides the fields. */
    Form: ({ state, specs: more, submit, look, cancel, ...form }: FormProps<Static<Schema>>) => {
      const { children = shown(names, { state, specs: more }), ...post } = form;
      return (
        <PostForm {...post}>
          <Problem text={problemBeside(state, withProblem)} />
          {children}
          {submit === undefined ? null : (
            <Submit look={look} cancel={cancel}>
              {submit}
            </Submit>
          )}
        </PostForm>
      );
    },

    Fields: ({ of, ...props }: FieldsProps<Static<Schema>>) => <>{shown(of, props)}</>,

    Field: ({ name, ...props }: { readonly name: Path<Static<Schema>>; readonly state: FormState } & FieldSpec) => (
      <ShownField {...toField(name)} {...props} />
    ),

    /** Folds fields that few people need. Open if one of them is set. */
    Fold: ({ title, note, of, ...props }: FoldProps<Static<Schema>>) => (
      <details class="uses" open={of.some((name) => isSet(toField(name), props.state))}>
        <summary>{title}</summary>
        <div class="asked">
          {note === undefined ? null : <p class="quiet small">{note}</p>}
          {shown(of, props)}
        </div>
      </details>
    ),

    /** The form filled in with a body. */
    filledWith: (body: object): FormState =>
      filled(Object.fromEntries(fields.flatMap((field) => fieldTexts(field, body)))),

    /** What a body sets, with the labels of the fields. */
    said: (body: object): readonly (readonly [label: string, text: string])[] =>
      fields.flatMap((field) => {
        const [texts] = fieldTexts(field, body);
        return texts === undefined ? [] : [[field.label, texts[1] || "nothing"] as const];
      }),

    /** The body in a form, unchecked. */
    read: (form: Form) => bodyIn(form, fields),

    /** The checked body in a form, with further members that have no field. Throws `validation_error`. */
    check: (form: Form, more: object = {}): Static<Schema> => accept({ ...bodyIn(form, fields), ...more }),
  };
}

/** A field for every member, as the schema describes it. */
export function everyField<Schema extends TObject>(schema: Schema): FieldSpecs<Static<Schema>>;
export function everyField(schema: TObject): Readonly<Record<string, FieldSpec>> {
  return Object.fromEntries([...schemaMembers(schema).keys()].map((name) => [name, {}]));
}

/** What a form needs to know about a member of a schema. */
interface Member {
  readonly description?: string;
  readonly type?: string;
  readonly items?: { readonly type?: string; readonly enum?: readonly string[] };
  readonly format?: string;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  /** For a member of a member: whether it is required if the outer one is given. */
  readonly isRequired: boolean;
}

/** The members of a schema and of its objects, by their names in forms. */
function schemaMembers(schema: TObject, within = ""): ReadonlyMap<string, Member> {
  const required = new Set<string>(schema.required);
  const found = Object.entries<object>(schema.properties).flatMap(([name, member]) => {
    // Safe: only schemas of objects have properties.
    if ("properties" in member) return [...schemaMembers(member as TObject, `${name}.`)];
    return [[within + name, { ...member, isRequired: required.has(name) }] as const];
  });
  return new Map<string, Member>(found);
}

/** A member, and how the form shows it. */
interface FormField extends FieldSpec {
  readonly name: string;
  readonly member: Member;
  readonly label: string;
}

type ShownFieldProps = FormField & { readonly state: FormState };

function ShownField({ onlyFor, ...props }: ShownFieldProps) {
  if (onlyFor === undefined) return <AnyField {...props} />;
  return (
    <div class={`only ${onlyFor.map((one) => `for-${one}`).join(" ")}`}>
      <AnyField {...props} />
    </div>
  );
}

function AnyField({ state, ...field }: ShownFieldProps) {
  const {
    name,
    member,
    label,
    type,
    choices,
    isCode,
    hint,
    wrong,
    refused,
    boxes = itemBoxes(member),
    ...rest
  } = field;
  const found = fieldProblem(state, name);
  const problem = found === null || found === wrong ? found : (refused ?? found);
  const value = state.values.get(name);
  if (choices !== undefined) return <Choices {...{ name, choices, problem }} legend={label} chosen={value} />;
  if (boxes !== undefined) {
    if (boxes.length === 0 && problem === null) return null;
    const group = { name, isCode, problem, hint: hint ?? undefined };
    const named = boxes.map(([item, text]) => [boxName(name, item), text] as const);
    return <Checkboxes {...group} legend={label} boxes={named} values={state.values} />;
  }
  if (member.type === "boolean") {
    const box = { name, label, value: "yes", isChecked: value === "yes" };
    return typeof hint === "string" ? <Option {...box} hint={hint} /> : <Checkbox {...box} />;
  }
  const described = rest.options === undefined ? member.description : undefined;
  return (
    <Field
      {...{ name, label, value, problem }}
      hint={hint === undefined ? described : (hint ?? undefined)}
      type={type === "duration" ? "text" : (type ?? fieldType(member))}
      required={member.isRequired && !name.includes(".")}
      maxlength={member.maxLength}
      autocomplete="off"
      {...rest}
    />
  );
}

/** "redirect_uris": "Redirect uris"; "sum.time_zone": "Time zone". */
function fieldLabel(name: string): string {
  return inWords(name.slice(name.indexOf(".") + 1));
}

/** Checkboxes for the items that a list may have. */
function itemBoxes({ items }: Member): FieldSpec["boxes"] {
  return items?.enum?.map((item) => [item, item] as const);
}

function fieldType({ type, format }: Member): "lines" | "email" | "text" {
  if (type === "array") return "lines";
  return format === "email" ? "email" : "text";
}

/** What to say of a value that the schema refuses: by default the bounds of a number or duration. Undefined: the schema says it. */
function wordsFor({ member: { type, minimum, maximum }, wrong, type: shown }: FormField): string | undefined {
  if (wrong !== undefined || minimum === undefined) return wrong;
  const [what, text] =
    shown === "duration" ? ["time", exactDuration] : [type === "integer" ? "whole number" : "number", number];
  if (maximum === undefined) return `Enter a ${what} of at least ${text(minimum)}.`;
  return `Enter a ${what} from ${text(minimum)} to ${text(maximum)}.`;
}

/** Whether a field has text or a problem. A field that is always chosen does not count. */
function isSet(field: FormField, state: FormState): boolean {
  const { name } = field;
  if (isAlwaysChosen(field)) return false;
  const isTyped = (state.values.get(name) ?? "") !== "" || chosenIn(state.values, name).length > 0;
  return isTyped || fieldProblem(state, name) !== null;
}

function isAlwaysChosen({ options, none }: FieldSpec): boolean {
  return options !== undefined && none === undefined;
}

/** The texts of a member's fields. */
function fieldTexts({ name, type }: FormField, body: object): readonly (readonly [string, string])[] {
  const value = name.split(".").reduce<unknown>((outer, part) => (isJsonObject(outer) ? outer[part] : undefined), body);
  if (Array.isArray(value)) {
    const items = value.map(String);
    return [
      [name, items.join(type === "text" ? ", " : "\n")],
      ...items.map((item) => [boxName(name, item), "yes"] as const),
    ];
  }
  if (typeof value === "boolean") return [[name, value ? "yes" : ""]];
  if (typeof value === "number") return [[name, type === "duration" ? exactDuration(value) : String(value)]];
  if (typeof value !== "string") return [];
  // The field's format: UTC, with seconds if there are any, so that sending the form unchanged keeps the time.
  const time = value.slice(0, "2026-03-04T12:00:30".length).replace(/:00$/, "");
  return [[name, type === "datetime-local" ? time : value]];
}

/** "days" and "mon": "day_mon". */
function boxName(name: string, item: string): string {
  return `${name.replace(/s$/, "")}_${item}`;
}

/** The items whose checkboxes are checked. */
export function chosenIn(form: Form, name: string): readonly string[] {
  const prefix = boxName(name, "");
  return [...form].flatMap(([field, text]) =>
    field.startsWith(prefix) && text === "yes" ? [field.slice(prefix.length)] : [],
  );
}

/** The body in a form, unchecked. */
function bodyIn(form: Form, fields: readonly FormField[]): Readonly<Record<string, unknown>> {
  const chosen = new Set(fields.map(({ name, choices }) => (choices === undefined ? null : form.get(name))));
  // Fields that are hidden may still contain text.
  const shown = fields.filter(({ onlyFor }) => onlyFor === undefined || onlyFor.some((one) => chosen.has(one)));
  const body: Record<string, unknown> = {};
  for (const field of shown) {
    const value = valueIn(form, field);
    if (value === undefined || (value === "" && !field.member.isRequired)) continue;
    const [outer = "", inner] = field.name.split(".");
    body[outer] = inner === undefined ? value : { ...Object(body[outer]), [inner]: value };
  }
  // Leaves out an object whose members are all left out, apart from those that are always chosen.
  const chosenNames = new Set(fields.filter(isAlwaysChosen).map(({ name }) => name));
  const isEmpty = (outer: string, inner: object) =>
    Object.entries(inner).every(([name, value]) => value === "" || chosenNames.has(`${outer}.${name}`));
  const given = Object.entries(body).filter(([name, value]) => !isJsonObject(value) || !isEmpty(name, value));
  return Object.fromEntries(given);
}

/** A field's value; undefined if empty. Text that should be a number or duration stays text, which the check refuses. */
function valueIn(form: Form, { name, member: { type, items }, type: shown }: FormField): unknown {
  const given = form.get(name);
  if (type === "array") {
    const boxes = chosenIn(form, name);
    const lines = (given ?? "").split(shown === "lines" ? /[\r\n]/ : /[\r\n,;]/).map((line) => line.trim());
    const texts = boxes.length > 0 ? boxes : lines.filter((line) => line !== "");
    if (texts.length === 0) return undefined;
    return items?.type === "string" ? texts : texts.map(numberIn);
  }
  // A password may end in a space.
  if (given === undefined || shown === "password") return given;
  // Browsers send line breaks as CRLF.
  const lines = given.replaceAll("\r\n", "\n");
  // Keeps leading lines, because errors name a line.
  if (shown === "code") return lines.trimEnd();
  const text = lines.trim();
  if (shown === "duration") return readDuration(text) ?? text;
  if (shown === "datetime-local") return zoned(text);
  if (type === "boolean") return text === "yes";
  return type === "integer" || type === "number" ? numberIn(text) : text;
}

/** A number, if the text is one that can be read exactly. Any other text stays, and the check refuses it. */
function numberIn(text: string): number | string {
  const [, digits = "", decimals = ""] = /^0*(\d{1,16})(?:\.(\d{1,9}))?$/.exec(text) ?? [];
  const value = Number(text);
  const exact = decimals === "" ? digits : `${digits}.${decimals}`;
  return digits !== "" && value.toFixed(decimals.length) === exact ? value : text;
}

/** Completes a time: browsers leave out the zone, and seconds if they are 0. Our script sends both. */
export function zoned(time: string): string {
  if (time === "" || time.endsWith("Z")) return time;
  return /T\d\d:\d\d$/.test(time) ? `${time}:00Z` : `${time}Z`;
}
