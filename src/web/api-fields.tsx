/** @jsxImportSource hono/jsx */
import { type ApiSchema, boundWords, nameOf, typeWords } from "./api-document.ts";

export interface FieldsProps {
  readonly schema: ApiSchema;
  /** What is said of members: of what is sent, which have to be there; of an answer, which may be missing. */
  readonly marks: "required" | "optional";
}

/** The members of a thing, each with what it is and what it keeps to; a thing without members says what it is itself. */
export function Fields({ schema, marks }: FieldsProps) {
  const members = membersOf(schema, "");
  if (members.length === 0) {
    return (
      <p class="small">
        <Type schema={schema} /> <span class="quiet">{boundWords(schema)}</span>
      </p>
    );
  }
  return (
    <dl class="fields">
      {members.map(({ name, member, isRequired }) => (
        <div>
          <dt>
            <code>{name}</code> <Type schema={member} />
            {isRequired === (marks === "required") ? <b class="small"> {marks}</b> : null}
          </dt>
          <dd class="small">
            {member.description ?? ""} <span class="quiet">{sentence(boundWords(member))}</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** What a value is; a name leads to where it is told. */
export function Type({ schema }: { readonly schema: ApiSchema }) {
  const name = referredBy(schema);
  const words = typeWords(schema);
  if (name === null) return <span class="type">{words}</span>;
  const [before = "", after = ""] = words.split(name);
  return (
    <span class="type">
      {before}
      <a href={`#schema-${name}`}>{name}</a>
      {after}
    </span>
  );
}

function referredBy(schema: ApiSchema): string | null {
  if (schema.$ref !== undefined) return nameOf({ $ref: schema.$ref });
  const inner = [...(schema.anyOf ?? []), ...(schema.items === undefined ? [] : [schema.items])];
  return inner.map(referredBy).find((name) => name !== null) ?? null;
}

interface Member {
  readonly name: string;
  readonly member: ApiSchema;
  readonly isRequired: boolean;
}

/** Things inside things stand below them, by their whole names. */
function membersOf(schema: ApiSchema, prefix: string): readonly Member[] {
  const inner =
    schema.properties ?? schema.items?.properties ?? schema.anyOf?.find((one) => one.properties)?.properties;
  const required = schema.required ?? schema.items?.required ?? [];
  return Object.entries(inner ?? {}).flatMap(([name, member]) => [
    { name: prefix + name, member, isRequired: required.includes(name) },
    ...membersOf(member, `${prefix}${name}${member.items === undefined ? "" : "[]"}.`),
  ]);
}

function sentence(words: string): string {
  return words === "" ? "" : `${words.slice(0, 1).toUpperCase()}${words.slice(1)}.`;
}
