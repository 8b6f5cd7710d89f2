import { codeSamples, type SampleRequest } from "../../api/code-samples.ts";
import { type ApiEntry, type ApiReference, type ApiSchema, dereferenced } from "./api-reference.ts";

/** Example requests by language. */
export function requestExamples(entry: ApiEntry, reference: ApiReference) {
  return codeSamples(sampleRequest(entry, reference));
}

/** A request that works once its values are replaced. */
function sampleRequest(entry: ApiEntry, reference: ApiReference): SampleRequest {
  const { method, path, parameters, permission, successes } = entry;
  const needed = parameters.flatMap(({ name, in: place, required, schema }) =>
    required ? [{ name, place, value: String(schemaExample(schema, reference.schemas)) }] : [],
  );
  const query = needed
    .filter(({ place }) => place === "query")
    .map(({ name, value }) => `${name}=${encodeURIComponent(value)}`);
  const filled = needed.reduce((text, { name, value }) => text.replace(`{${name}}`, () => value), path);
  const [first, ...others] = successes[0]?.content ?? [];
  const data = bodyExample(entry, reference);
  return {
    method,
    url: `${reference.baseUrl}${filled}${query.length === 0 ? "" : `?${query.join("&")}`}`,
    needsKey: permission !== null,
    accept: first === undefined || others.length === 0 ? null : first.mediaType,
    body: data === undefined ? null : { value: data },
    prints: printedAs(first?.mediaType),
  };
}

function printedAs(mediaType: string | undefined): "json" | "text" | "status" {
  if (mediaType === undefined) return "status";
  return mediaType === "application/json" ? "json" : "text";
}

/** The example of a body: its own, or its required members, or else its first member; undefined without a body. */
export function bodyExample({ body }: ApiEntry, { schemas }: ApiReference): unknown {
  if (body === null) return undefined;
  const { examples, properties = {}, required = [] } = dereferenced(body.schema, schemas);
  if (examples !== undefined) return examples[0];
  if (required.length > 0) return schemaExample(body.schema, schemas);
  const [first] = Object.entries(properties);
  return first === undefined ? {} : { [first[0]]: schemaExample(first[1], schemas) };
}

/** An example of a value with only the required members. */
export function schemaExample(schema: ApiSchema, schemas: ApiReference["schemas"]): unknown {
  const own = dereferenced(schema, schemas);
  const { properties, required = [], examples, const: only, enum: values, items, anyOf } = own;
  if (properties !== undefined) {
    const shown = Object.entries(properties).filter(([name]) => required.includes(name));
    return Object.fromEntries(shown.map(([name, member]) => [name, schemaExample(member, schemas)]));
  }
  if (examples !== undefined) return examples[0];
  if (only !== undefined) return only;
  if (values !== undefined) return values[0];
  if (items !== undefined) return [schemaExample(items, schemas)];
  const [first] = anyOf ?? [];
  return first === undefined ? null : schemaExample(first, schemas);
}
