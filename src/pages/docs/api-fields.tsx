/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { API_NESTING_MAX } from "../../core/limits.ts";
import { type ApiParameter, type ApiReference, type ApiSchema, dereferenced, schemaName } from "./api-reference.ts";

/** Where the objects of the API are described. */
export const API_OBJECTS_PATH = "/docs/api/objects";

interface ApiFieldsProps {
  readonly schema: ApiSchema;
  readonly schemas: ApiReference["schemas"];
  /**
   * In requests, marks required members and describes objects in place. In responses, marks members that may be absent, and
   * links to objects.
   */
  readonly of: "request" | "response";
  /** How many objects contain it. */
  readonly depth?: number;
}

/** The members of a schema with types and bounds, nested; or the type of a schema without members. */
export function ApiFields({ schema, schemas, of, depth = 0 }: ApiFieldsProps) {
  const own = objectSchema(dereferenced(schema, schemas));
  if (own === null) {
    return (
      <p>
        <ApiType schema={schema} /> <span class="quiet">{boundsText(schema)}</span>
      </p>
    );
  }
  const { properties = {}, required = [] } = own;
  return (
    <ul class="fields">
      {Object.entries(properties).map(([name, member]) => {
        const inside = of === "request" ? inPlace(member, schemas) : member;
        const mark = required.includes(name) ? "required" : "optional";
        return (
          <SchemaField name={name} schema={member} mark={(mark === "required") === (of === "request") ? mark : null}>
            {objectSchema(inside) === null || depth >= API_NESTING_MAX ? null : (
              <ApiFields schema={inside} schemas={schemas} of={of} depth={depth + 1} />
            )}
          </SchemaField>
        );
      })}
    </ul>
  );
}

interface FieldProps {
  readonly name: string;
  readonly schema: ApiSchema;
  readonly mark: string | null;
  /** Where a parameter goes. */
  readonly place?: string;
  readonly children?: Child;
}

function SchemaField({ name, schema, mark, place, children }: FieldProps) {
  const { description } = schema;
  const bounds = boundsText(schema);
  const { paragraphs, notes } = splitDescription(description ?? "");
  return (
    <li>
      <p class="field-head">
        <code>{name}</code> <ApiType schema={schema} />
        {place === undefined ? null : <span class="type"> in the {place}</span>}
        {mark === null ? null : <span class={`small faint mark-${mark}`}> {mark}</span>}
      </p>
      {description === undefined && bounds === "" ? null : (
        <p>
          {apiText(paragraphs.join(" "))} {bounds === "" ? null : <span class="quiet">{bounds}</span>}
        </p>
      )}
      <ApiNotes notes={notes} />
      {children}
    </li>
  );
}

/** A description, with code between backticks. */
export function apiText(text: string) {
  const parts = text.split("`");
  return <>{parts.map((part, at) => (at % 2 === 1 && at < parts.length - 1 ? <code>{part}</code> : part))}</>;
}

export function ApiNotes({ notes }: { readonly notes: readonly string[] }) {
  if (notes.length === 0) return null;
  return (
    <ul class="notes">
      {notes.map((note) => (
        <li>{apiText(note)}</li>
      ))}
    </ul>
  );
}

interface ApiParametersProps {
  readonly parameters: readonly ApiParameter[];
  readonly schemas: ApiReference["schemas"];
}

export function ApiParameters({ parameters, schemas }: ApiParametersProps) {
  return (
    <ul class="fields">
      {parameters.map(({ name, in: place, required, schema }) => {
        const { description = "" } = dereferenced(schema, schemas);
        const mark = required ? "required" : null;
        return <SchemaField name={name} schema={{ ...schema, description }} mark={mark} place={place} />;
      })}
    </ul>
  );
}

/** The schema whose members are shown; null if it has none. */
function objectSchema(schema: ApiSchema): ApiSchema | null {
  return [schema, schema.items, ...(schema.anyOf ?? [])].find((one) => one?.properties !== undefined) ?? null;
}

/** The schema with its own reference, or its items' reference, resolved. */
function inPlace(schema: ApiSchema, schemas: ApiReference["schemas"]): ApiSchema {
  const own = dereferenced(schema, schemas);
  return own.items === undefined ? own : { ...own, items: dereferenced(own.items, schemas) };
}

/** The type of a value, like "list of Action", with links to objects. */
export function ApiType({ schema }: { readonly schema: ApiSchema }) {
  const names = new Set(refsIn(schema).map(schemaName));
  return (
    <span class="type">
      {typeText(schema)
        .split(/(\w+)/)
        .map((word) => (names.has(word) ? <a href={`${API_OBJECTS_PATH}#${word}`}>{word}</a> : word))}
    </span>
  );
}

function refsIn({ $ref, items, anyOf = [] }: ApiSchema): readonly string[] {
  const inside = [...(items === undefined ? [] : [items]), ...anyOf].flatMap(refsIn);
  return $ref === undefined ? inside : [$ref];
}

/** Splits a description into its paragraphs and the list after them. */
export function splitDescription(description: string): {
  readonly paragraphs: readonly string[];
  readonly notes: readonly string[];
} {
  const parts = description.split("\n\n");
  const isList = (part: string) => part.startsWith(NOTE_MARK);
  return {
    paragraphs: parts.filter((part) => !isList(part)),
    notes: parts.filter(isList).flatMap((part) => part.slice(NOTE_MARK.length).split(`\n${NOTE_MARK}`)),
  };
}

const NOTE_MARK = "- ";

/** The type of a value, like "list of Action". */
function typeText({ $ref, anyOf, items, const: only, type = "any value", format }: ApiSchema): string {
  if ($ref !== undefined) return schemaName($ref);
  if (anyOf !== undefined) return [...new Set(anyOf.map(typeText))].join(" or ");
  if (items !== undefined) return `list of ${typeText(items)}`;
  if (only !== undefined) return JSON.stringify(only);
  return [type].flat().join(" or ") + (format === undefined ? "" : ` (${format})`);
}

/** The bounds of a value as a sentence; empty without bounds. */
function boundsText(schema: ApiSchema): string {
  const { minimum, maximum, minLength, maxLength, items, default: usual, ...own } = withoutNull(schema);
  const values = own.enum ?? items?.enum;
  const bounds = [
    values === undefined ? "" : `one of ${values.join(", ")}`,
    rangeText(minimum, maximum, ""),
    rangeText(minLength, maxLength, " characters"),
    usual === undefined ? "" : `default ${JSON.stringify(usual)}`,
  ].filter((text) => text !== "");
  const text = bounds.join("; ");
  return text === "" ? "" : `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** The schema of a nullable value when it is not null. */
function withoutNull(schema: ApiSchema): ApiSchema {
  const [given, none, ...more] = schema.anyOf ?? [];
  return given !== undefined && none?.type === "null" && more.length === 0 ? { ...schema, ...given } : schema;
}

function rangeText(least: number | undefined, most: number | undefined, unit: string): string {
  if (least !== undefined && most !== undefined) return `${least} to ${most}${unit}`;
  if (most !== undefined) return `at most ${most}${unit}`;
  return least === undefined || least === 0 ? "" : `at least ${least}${unit}`;
}

/** A heading that can be linked to. */
export function DocsSubheading({ id, children }: { readonly id: string; readonly children?: Child }) {
  return (
    <h2 id={id}>
      {children}
      <a class="anchor" href={`#${id}`} aria-label="Link to this section">
        #
      </a>
    </h2>
  );
}
