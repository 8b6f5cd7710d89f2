/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { API_NESTING_MAX } from "../../core/limits.ts";
import {
  type ApiParameter,
  type ApiSchema,
  boundsText,
  dereferenced,
  schemaName,
  type ApiReference,
  partsOf,
  typeText,
} from "./api-document.ts";

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
  const own = membersOf(schema);
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
          <Field name={name} schema={member} mark={(mark === "required") === (of === "request") ? mark : null}>
            {membersOf(inside) === null || depth >= API_NESTING_MAX ? null : (
              <ApiFields schema={inside} schemas={schemas} of={of} depth={depth + 1} />
            )}
          </Field>
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

function Field({ name, schema, mark, place, children }: FieldProps) {
  const { description } = schema;
  const bounds = boundsText(schema);
  const { paragraphs, notes } = partsOf(description ?? "");
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

export function ApiParameters({ parameters }: { readonly parameters: readonly ApiParameter[] }) {
  return (
    <ul class="fields">
      {parameters.map(({ name, in: place, required, schema, description }) => (
        <Field name={name} schema={{ ...schema, description }} mark={required ? "required" : null} place={place} />
      ))}
    </ul>
  );
}

/** The schema whose members are shown; null if it has none. */
function membersOf(schema: ApiSchema): ApiSchema | null {
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
