import type { TSchema } from "typebox";
import { ERROR_CODES, type ErrorCode } from "./domain-error.ts";
import { ANSWER_HEADERS, REQUEST_HEADERS, type AnswerHeader, ERROR_HEADERS } from "./headers.ts";
import { API, type ApiOperation } from "./operations.ts";
import { type Answer, type Form, type Shape, SHAPES } from "./schemas.ts";
import { ERROR_MEANING, ErrorEnvelope, HTTP_STATUS } from "./errors.ts";
import { ENFORCED } from "./schema-helpers.ts";

/** Version of the interface (spec "Versioning"), whatever that of the service is. */
const INTERFACE_VERSION = "0.1.0";

const ABOUT = `Outgate is the gate that everything an agent sends goes out through: it stores a call, holds it for a
person where that is wanted, makes it, signs it, repeats it when it fails, and shows how it ended.

Every path under /v1 needs an API key, also one that does not exist: without a valid one the answer is 401. A path that is
not described here is answered 404. HEAD is answered wherever GET is, without a body; OPTIONS is answered with 204 and Allow.
Every answer carries X-Request-Id. What is no HTTP (a broken or too large head) is answered 400 or 431 without a body.

Members that are null in a request count as absent; unknown members and unknown query parameters are refused, and so is a
parameter that is given twice. A body has a Content-Type of application/json (with charset utf-8 or none), no
Content-Encoding, and at most 1,048,576 bytes. Answers may get further members: ignore those that you do not know.

429 and 503 carry Retry-After: try again then. MCP (/mcp) and the pages for people are described in the guides.`;

const TAGS: Readonly<Record<ApiOperation["tag"], string>> = {
  Actions: "Calls: making them, seeing them, deciding on them.",
  Auth: "The account, its people, its keys and its secrets.",
  System: "For those who run the service.",
};

/** The API as an OpenAPI 3.1 document, printed from the operations table and its schemas. */
export function openApiJson(baseUrl: string): string {
  const schemas = createSchemaPrinter();
  const operations = Object.entries(API);
  const paths = Map.groupBy(operations, ([, { path }]) => path);
  const document = {
    openapi: "3.1.1",
    info: { title: "Outgate", version: INTERFACE_VERSION, description: ABOUT },
    servers: [{ url: baseUrl, description: "This service." }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    security: [{ apiKey: [] }],
    paths: Object.fromEntries(
      [...paths].map(([path, rows]) => [
        path,
        Object.fromEntries(
          rows.map(([, row]) => [row.method.toLowerCase(), operationOf(row, SHAPES[row.id], schemas)]),
        ),
      ]),
    ),
  };
  return JSON.stringify({ ...document, components: componentsOf(schemas, JSON.stringify(document)) });
}

function operationOf(row: ApiOperation, shape: Shape, schemas: SchemaPrinter): Json {
  const { id, tag, summary, description, permission, errors } = row;
  const answers = Object.entries(shape.answers).map(([status, answer]) => [status, answerOf(answer, schemas)] as const);
  return {
    operationId: id,
    tags: [tag],
    summary,
    description,
    ...(permission === null ? { security: shape.takesMetricsToken === true ? [{}, { metricsToken: [] }] : [] } : {}),
    parameters: parametersOf(shape, schemas),
    ...(shape.body === undefined ? {} : { requestBody: bodyOf(shape.body, schemas) }),
    responses: {
      ...errorResponses([...errors, "method_not_allowed"], schemas, otherFormOf(shape)),
      ...Object.fromEntries(answers),
    },
  };
}

function bodyOf({ schema, isRequired }: NonNullable<Shape["body"]>, schemas: SchemaPrinter): Json {
  return { required: isRequired, content: { "application/json": { schema: schemas.print(schema) } } };
}

function answerOf(
  { description, schema, mediaType = "application/json", alsoAs, onRequestAs, headers = [] }: Answer,
  schemas: SchemaPrinter,
) {
  const own = schema === null ? {} : { [mediaType]: { schema: schemas.print(schema) } };
  const content = { ...own, ...contentOf(alsoAs, schemas), ...contentOf(onRequestAs, schemas) };
  return {
    description,
    headers: headerRefs(headers),
    ...(Object.keys(content).length === 0 ? {} : { content }),
  };
}

function otherFormOf({ answers }: Shape): Form | undefined {
  return Object.values(answers).find(({ alsoAs }) => alsoAs !== undefined)?.alsoAs;
}

function parametersOf({ id, token, query, headers = [] }: Shape, schemas: SchemaPrinter): readonly Json[] {
  const asked = Object.entries(query?.properties ?? {}).map(([name, schema]) =>
    parameter({ name, in: "query", required: query?.required?.includes(name) ?? false }, schema, schemas),
  );
  return [
    ...(id === undefined ? [] : [parameter({ name: "id", in: "path", required: true }, id, schemas)]),
    ...(token === undefined ? [] : [parameter({ name: "token", in: "path", required: true }, token, schemas)]),
    ...asked,
    ...[...headers, "X-Request-Id"].map((name) => ({ $ref: `#/components/parameters/${name}` })),
  ];
}

/** The description stands beside the schema, where readers of parameters look for it. */
function parameter(head: Json, schema: TSchema, schemas: SchemaPrinter): Json {
  const { description } = schema as { description?: string };
  return { ...head, description, schema: schemas.print(schema) };
}

/** Of the errors those that the document refers to: an error among others of its status stands where it belongs. */
function componentsOf(schemas: SchemaPrinter, document: string): Json {
  const codes = ERROR_CODES.filter((code) => document.includes(`"#/components/responses/${code}"`));
  const responses = codes.map((code) => [code, errorResponse([code], schemas)] as const);
  const parts = {
    securitySchemes: {
      apiKey: { type: "http", scheme: "bearer", description: "An API key (og_…) of the account." },
      metricsToken: { type: "http", scheme: "bearer", description: "METRICS_TOKEN, where the service has one." },
    },
    parameters: Object.fromEntries(
      Object.entries(REQUEST_HEADERS).map(([name, schema]) => [
        name,
        parameter({ name, in: "header", required: false }, schema, schemas),
      ]),
    ),
    headers: mapValues(ANSWER_HEADERS, (schema) => headerOf(schema as TSchema, schemas)),
    responses: Object.fromEntries(responses),
  };
  return { ...parts, schemas: schemas.components() };
}

function headerOf(schema: TSchema, schemas: SchemaPrinter): Json {
  const { description } = schema as { description?: string };
  return { description, required: true, schema: schemas.print(schema) };
}

/** References to headers, by name; every answer has an id. */
function headerRefs(names: readonly AnswerHeader[]): Json {
  const all: readonly AnswerHeader[] = ["X-Request-Id", ...names];
  return Object.fromEntries(all.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** The other form of a body, where there is one. */
function contentOf(form: Form | undefined, schemas: SchemaPrinter): Json {
  return form === undefined ? {} : { [form.mediaType]: { schema: schemas.print(form.schema) } };
}

/**
 * An error that is alone in its status is a component; a status of several codes says which, and so does one that comes
 * in another form too.
 */
function errorResponses(codes: readonly ErrorCode[], schemas: SchemaPrinter, alsoAs?: Form): Json {
  const byStatus = Map.groupBy(new Set(codes), (code) => HTTP_STATUS[code]);
  return Object.fromEntries(
    [...byStatus].map(([status, [first, ...more]]) => [
      status,
      first === undefined || more.length > 0 || alsoAs !== undefined
        ? errorResponse(byStatus.get(status) ?? [], schemas, alsoAs)
        : { $ref: `#/components/responses/${first}` },
    ]),
  );
}

/** The envelope under any of these codes. */
function errorResponse(codes: readonly ErrorCode[], schemas: SchemaPrinter, alsoAs?: Form): Json {
  const chosen: readonly AnswerHeader[] = alsoAs === undefined ? [] : ["Vary"];
  const headers = new Set([...chosen, ...codes.flatMap((code) => ERROR_HEADERS[code] ?? [])]);
  const told = codes.map((code) =>
    codes.length === 1 && alsoAs === undefined ? ERROR_MEANING[code] : `- \`${code}\`: ${ERROR_MEANING[code]}`,
  );
  return {
    description: told.join("\n"),
    headers: headerRefs([...headers]),
    content: {
      "application/json": {
        schema: {
          allOf: [schemas.print(ErrorEnvelope), { type: "object", properties: { error: narrowed(codes) } }],
        },
        examples: Object.fromEntries(codes.map((code) => [code, { value: exampleOf(code) }])),
      },
      ...contentOf(alsoAs, schemas),
    },
  };
}

/** With their types, which generators of clients want of each schema. */
function narrowed(codes: readonly ErrorCode[]): Json {
  return { type: "object", properties: { code: { type: "string", enum: codes } } };
}

function exampleOf(code: ErrorCode): Json {
  const error = { code, message: ERROR_MEANING[code], request_id: "req_01kjwa5v00e7v8c9x2m4n6p8qr" };
  if (code !== "validation_error") return { error };
  return { error: { ...error, details: [{ field: "retries", message: "Must be an integer.", code: "invalid" }] } };
}

type Json = Readonly<Record<string, unknown>>;

/** Prints schemas; those that have a title stand in the components, once, and elsewhere is a reference to them. */
interface SchemaPrinter {
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

function mapValues(object: Json, change: (value: unknown) => unknown): Json {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));
}

function asJson(value: unknown): Json {
  // Safe: schemas and maps of them are objects whose members are read one by one; anything else has none.
  return typeof value === "object" && value !== null ? (value as Json) : {};
}
