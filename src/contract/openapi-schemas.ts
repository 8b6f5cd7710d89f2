import type { TSchema } from "typebox";
import { ENFORCED } from "./kinds.ts";

export type Json = Readonly<Record<string, unknown>>;

/** Prints schemas; those that have a title stand in the components, once, and elsewhere is a reference to them. */
export interface SchemaPrinter {
  print(schema: TSchema): Json;
  /** The components that were printed so far, in the order of their names. */
  components(): Json;
}

/** Throws on two different schemas of one title. */
export function createSchemaPrinter(): SchemaPrinter {
  const named = new Map<string, Json>();
  const name = (title: string, body: Json): Json => {
    const before = named.get(title);
    if (before !== undefined && JSON.stringify(before) !== JSON.stringify(body)) {
      throw new Error(`Two different schemas have the title ${title}.`);
    }
    named.set(title, body);
    return { $ref: `#/components/schemas/${title}` };
  };
  const print = (schema: unknown): Json => {
    const { [ENFORCED]: enforced, ...said } = asJson(schema);
    const members = Object.entries(said).map(([word, value]) => [word, member(word, value)]);
    const printed = nullableInPlace({ ...asJson(Object.fromEntries(members)), ...asJson(enforced) });
    const { title } = printed;
    return typeof title === "string" ? name(title, printed) : printed;
  };
  /** Only where JSON Schema has schemas; a property may be called like one of its words. */
  const member = (word: string, value: unknown): unknown => {
    if (word === "properties") return mapValues(asJson(value), print);
    if (word === "items") return print(value);
    if (word === "additionalProperties" && typeof value === "object") return print(value);
    if ((word === "anyOf" || word === "allOf") && Array.isArray(value)) return value.map(print);
    return value;
  };
  return {
    // A copy: what typebox keeps beside a schema stays out.
    print: (schema) => print(JSON.parse(JSON.stringify(schema))),
    components: () => Object.fromEntries([...named].toSorted(([a], [b]) => (a < b ? -1 : 1))),
  };
}

/** `type: ["string", "null"]` in place of a choice of two: what 3.1 has for it, and where a reader looks for description and example. */
function nullableInPlace(schema: Json): Json {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return schema;
  const [given, none] = anyOf.map(asJson);
  const isPlain = typeof given?.["type"] === "string" && !("enum" in given) && !("const" in given);
  if (!isPlain || none?.["type"] !== "null") return schema;
  return { ...rest, ...given, type: [given["type"], "null"] };
}

export function mapValues(object: Json, change: (value: unknown) => unknown): Json {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));
}

function asJson(value: unknown): Json {
  // Safe: schemas and maps of them are objects whose members are read one by one; anything else has none.
  return typeof value === "object" && value !== null ? (value as Json) : {};
}
