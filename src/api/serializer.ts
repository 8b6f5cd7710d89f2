import type { Static, TObject } from "typebox";

/** `created_at` as `createdAt`. */
type Camel<Name> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : Name;

/** What a value of an answer is made from. */
type Source<Json> = Json extends string
  ? string extends Json
    ? string | Date
    : Json
  : Json extends readonly (infer Item)[]
    ? readonly Source<Item>[]
    : Json extends object
      ? string extends keyof Json
        ? Json
        : Sources<Json>
      : Json;

type Sources<Json> = {
  readonly [Name in keyof Json as Camel<Name>]:
    | Source<Json[Name]>
    | (Partial<Pick<Json, Name>> extends Pick<Json, Name> ? null | undefined : never);
};

/** The words of JSON Schema that say how a value is shown. */
interface Shape {
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly items?: Shape;
  readonly anyOf?: readonly Shape[];
  readonly type?: unknown;
}

const shows = new WeakMap<TObject, (value: unknown) => unknown>();

/**
 * A row as the answer that a schema describes: the members that the schema has, each from the row's member of that name in
 * camel case, and dates as texts. Other members of the row are left out, and so is null where the schema has no null.
 */
export function toJson<Schema extends TObject>(schema: Schema, row: Sources<Static<Schema>>): Static<Schema> {
  const show = shows.get(schema) ?? showing(schema);
  shows.set(schema, show);
  // Safe: `Sources` has what the schema's members are made from.
  return show(row) as Static<Schema>;
}

function showing({ properties, items, anyOf }: Shape): (value: unknown) => unknown {
  if (anyOf !== undefined) {
    const show = showing(anyOf.find(({ type }) => type !== "null") ?? {});
    return (value) => (value === null ? null : show(value));
  }
  if (items !== undefined) {
    const show = showing(items);
    return (value) => (Array.isArray(value) ? value.map(show) : value);
  }
  if (properties === undefined) return (value) => (value instanceof Date ? value.toISOString() : value);
  const members = Object.entries(properties).map(([name, member]) => {
    const from = name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
    const hasNull = member.anyOf?.some(({ type }) => type === "null") === true;
    return { name, from, show: showing(member), hasNull };
  });
  return (row) => {
    const values = new Map<string, unknown>(row instanceof Object ? Object.entries(row) : []);
    const shown = members.flatMap(({ name, from, show, hasNull }) => {
      const value = values.get(from);
      return value === undefined || (value === null && !hasNull) ? [] : [[name, show(value)] as const];
    });
    return Object.fromEntries(shown);
  };
}
