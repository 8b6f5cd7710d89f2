import * as fc from "fast-check";
import { at, type Node } from "./openapi.ts";

/** Printable ASCII: what a header may hold, and texts of ours. */
export const printable = (minLength: number, maxLength: number) =>
  fc.string({ unit: "grapheme-ascii", minLength, maxLength });

/** Any text that JSON can hold, halves of surrogate pairs and NUL among it. */
export const oddText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.constantFrom(
    "",
    " ",
    "\0",
    "\ud800",
    "a\udfffb",
    "\u202e",
    "\ufeff",
    "__proto__",
    "constructor",
    "\r\nX: y",
    "%00",
    "é́́",
  ),
  fc.integer({ min: 1, max: 9_000 }).map((length) => "x".repeat(length)),
);

/** Where calls may go; the policy refuses some of what else is a URL, which is tried too. */
const targets = fc.oneof(
  {
    weight: 9,
    arbitrary: fc.constantFrom("http://127.0.0.1:9/a?b=c", "https://api.example.com/orders", "http://[::1]:9/"),
  },
  { weight: 1, arbitrary: fc.webUrl() },
);

/** Values that fit a schema of the contract. */
export function fitting(schema: Node): fc.Arbitrary<unknown> {
  if (Array.isArray(schema["anyOf"])) return fc.oneof(...schema["anyOf"].map((one) => fitting(at(one))));
  if ("const" in schema) return fc.constant(schema["const"]);
  if (Array.isArray(schema["enum"])) return fc.constantFrom(...schema["enum"]);
  switch (typesOf(schema)[0]) {
    case "string":
      return textOf(schema);
    case "integer":
      return fc.integer({ min: Number(schema["minimum"] ?? -9), max: Number(schema["maximum"] ?? 2 ** 31) });
    case "number":
      return fc.double({ min: Number(schema["minimum"]), max: Number(schema["maximum"]), noNaN: true });
    case "boolean":
      return fc.boolean();
    case "array":
      return fc.array(fitting(at(schema, "items")), { maxLength: 4 });
    case "object":
      return objectOf(schema);
    default:
      return fc.jsonValue();
  }
}

function textOf({ format, pattern, minLength = 0, maxLength = 300 }: Node): fc.Arbitrary<string> {
  if (format === "uri") return targets;
  if (format === "email") return fc.emailAddress();
  if (format === "date-time")
    return fc.date({ noInvalidDate: true, max: new Date(4e12), min: new Date(0) }).map((at_) => at_.toISOString());
  if (pattern === "^[ -~]*$") return printable(Number(minLength), Number(maxLength));
  if (typeof pattern === "string") return fc.stringMatching(new RegExp(pattern));
  return fc.string({ unit: "grapheme", minLength: Number(minLength), maxLength: Math.min(300, Number(maxLength)) });
}

function objectOf(schema: Node): fc.Arbitrary<unknown> {
  const properties = Object.entries(at(schema, "properties"));
  if (properties.length > 0) {
    const required = Array.isArray(schema["required"]) ? schema["required"].map(String) : [];
    const members = Object.fromEntries(properties.map(([name, field]) => [name, fitting(at(field))]));
    return fc.record(members, { requiredKeys: required });
  }
  const isOfTexts = at(schema, "additionalProperties")["type"] === "string";
  const names = isOfTexts ? fc.stringMatching(/^x-[a-z0-9]{1,20}$/) : oddText;
  return fc.dictionary(names, isOfTexts ? printable(0, 50) : fc.jsonValue(), { maxKeys: 4 });
}

/** One member of a request that does not fit, and its name. */
export interface Spoiled {
  readonly value: unknown;
  readonly field: string;
}

/** Bodies that fit but for one member: of a wrong type, out of its range, or unknown. */
export function nearlyFitting(schema: Node): fc.Arbitrary<Spoiled> {
  const wrongs = Object.entries(at(schema, "properties")).flatMap(([name, field]) =>
    unfitting(at(field)).map((wrong) => [name, wrong] as const),
  );
  const unknowns = ["surprise", "Url", "__proto__", "toString"].map((name) => [name, 1] as const);
  return fc.tuple(fitting(schema), fc.constantFrom(...wrongs, ...unknowns)).map(([value, [field, wrong]]) => ({
    field,
    // As own members, `__proto__` among them.
    value: Object.fromEntries([...Object.entries(at(value)).filter(([name]) => name !== field), [field, wrong]]),
  }));
}

const OF_EACH_TYPE = { string: "5", integer: 5, number: 5.5, boolean: true, array: ["x"], object: { x: 1 } };

function unfitting(schema: Node): readonly unknown[] {
  const { minimum, maximum, minLength, maxLength, pattern, enum: choices } = schema;
  const types = typesOf(schema);
  // Any value fits.
  if (types.length === 0) return [];
  // Every integer is a number.
  const isNumber = (type: string) => type === "integer" && types.includes("number");
  return [
    ...Object.entries(OF_EACH_TYPE).flatMap(([type, value]) => (types.includes(type) || isNumber(type) ? [] : [value])),
    ...(typeof minimum === "number" ? [minimum - 1, ...(types.includes("integer") ? [minimum + 0.5] : [])] : []),
    ...(typeof maximum === "number" ? [maximum + 1] : []),
    ...(typeof minLength === "number" && minLength > 0 ? [""] : []),
    ...(typeof maxLength === "number" ? ["x".repeat(maxLength + 1)] : []),
    ...(pattern === "^[ -~]*$" ? ["a\nb", "é"] : []),
    ...(Array.isArray(choices) ? ["nonsense", "", String(choices[0]).toUpperCase() + " "] : []),
  ];
}

function typesOf({ type }: Node): readonly unknown[] {
  return type === undefined ? [] : [type].flat();
}
