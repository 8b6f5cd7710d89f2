import type { Static, TObject } from "typebox";

/** `created_at` as `createdAt`. */
type Camel<Name> = Name extends `${infer Head}_${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : Name;

/** The type in a row that a value of a response is made from. */
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

/** The row of a checked body: its members in camel case, null where one is absent. */
type RowOf<Json> = Json extends readonly unknown[]
  ? Json
  : Json extends object
    ? {
        readonly [Name in keyof Json as Camel<Name>]-?:
          | RowOf<Exclude<Json[Name], undefined>>
          | (Partial<Pick<Json, Name>> extends Pick<Json, Name> ? null : never);
      }
    : Json;

/** The keywords of JSON Schema that say how to show a value. */
interface Shape {
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly items?: Shape;
  readonly anyOf?: readonly Shape[];
  readonly type?: unknown;
}

const shows = new WeakMap<TObject, (value: unknown) => unknown>();

/**
 * Turns a row into the response that a schema describes. Takes each member of the schema from the row's member of that name in
 * camel case, and writes dates as texts. Leaves out all other members, and null if the schema does not allow it.
 */
export function toJson<Schema extends TObject>(schema: Schema, row: Sources<Static<Schema>>): Static<Schema> {
  const show = shows.get(schema) ?? showing(schema);
  shows.set(schema, show);
  // Safe: `Sources` has a value for each member of the schema.
  return show(row) as Static<Schema>;
}

/** The opposite of `toJson`, for a checked body without dates. */
export function fromJson<Schema extends TObject>(schema: Schema, body: Static<Schema>): RowOf<Static<Schema>> {
  // Safe: `reading` has a value for each member of the schema.
  return reading(schema, body) as RowOf<Static<Schema>>;
}

function reading({ properties }: Shape, value: unknown): unknown {
  if (properties === undefined || value === undefined) return value ?? null;
  const given = new Map<string, unknown>(value instanceof Object ? Object.entries(value) : []);
  const members = Object.entries(properties);
  return Object.fromEntries(members.map(([name, member]) => [camel(name), reading(member, given.get(name))]));
}

function camel(name: string): string {
  return name.replaceAll(/_(.)/g, (_, letter: string) => letter.toUpperCase());
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
    const hasNull = member.anyOf?.some(({ type }) => type === "null") === true;
    return { name, from: camel(name), show: showing(member), hasNull };
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
