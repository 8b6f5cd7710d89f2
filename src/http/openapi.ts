import type { TObject, TSchema } from "typebox";
import { ERROR_CODES, type ErrorCode } from "../core/domain-error.ts";
import { ANSWER_HEADERS, REQUEST_HEADERS, type AnswerHeader, ERROR_HEADERS } from "../api/headers.ts";
import { type AlternativeBody, type OperationInfo, routePattern, type ResponseInfo } from "./operation.ts";
import { ErrorEnvelopeJson } from "../api/error-schema.ts";
import { ERROR_MEANING, HTTP_STATUS } from "../api/errors.ts";
import { DESCRIBED_ONLY } from "../api/schema-helpers.ts";

/** Version of the API, independent of the version of the service. */
export const INTERFACE_VERSION = "0.1.0";

export const ABOUT_API = `Outgate delivers the HTTP calls of agents: it stores a call, holds it for a person's approval where that is
required, signs and sends it, retries it when it fails, and shows how it ended.

Every path under /v1 needs an API key, even one that does not exist: without a valid key the response is 401. A path that is
not described here returns 404. HEAD works wherever GET does, without a body; OPTIONS returns 204 with Allow. Every response
has X-Request-Id. CONNECT returns 400. A request that is not valid HTTP, or has too large headers, gets 400 or 431 without a body.

In requests, null fields count as absent (but for json of a create); unknown fields, unknown query parameters and repeated query parameters are refused.
A body needs the Content-Type application/json (with charset utf-8 or none), no Content-Encoding, and at most 1,048,576
bytes (16,384 under /auth); without a Content-Length, at most 16,384 chunks of less than 1 kB. Responses may get further fields: ignore those that you do not know.

429 and 503 have Retry-After: try again then. MCP (/mcp) and the pages for people are described in the guides.`;

const TAGS: Readonly<Record<OperationInfo["tag"], string>> = {
  Actions: "Create calls, read them, and decide on them.",
  Auth: "The account, its people, keys and secrets.",
  System: "For operators of the service.",
};

/** A route as Elysia lists it. */
interface RouteInfo {
  readonly method: string;
  readonly path: string;
  readonly hooks: { readonly detail?: object };
}

/** An operation of the API and where it is. */
export interface ApiOperation extends OperationInfo {
  readonly method: string;
  /** As in OpenAPI: `{id}` is a parameter. */
  readonly path: string;
}

/** The routes that are operations, because they have a description. */
export function apiOperations(routes: readonly RouteInfo[]): readonly ApiOperation[] {
  return routes.flatMap(({ method, path, hooks: { detail } }) => {
    if (!isDescribed(detail)) return [];
    // Every path refuses other methods.
    return [{ ...detail, method, path: routePattern(path), errors: [...detail.errors, "method_not_allowed"] }];
  });
}

function isDescribed(detail: object | undefined): detail is OperationInfo {
  return detail !== undefined && "operationId" in detail;
}

/** The parameters of an operation, without X-Request-Id, which every request can have. */
export function describeParameters({ params, query, headers = [] }: OperationInfo) {
  const members = (of: TObject | undefined) => Object.entries(of?.properties ?? {});
  return [
    ...members(params?.schema).map(([name, schema]) => ({ name, in: "path", required: true, schema })),
    ...members(query).map(([name, schema]) => {
      return { name, in: "query", required: query?.required?.includes(name) ?? false, schema };
    }),
    ...headers.map((name) => ({ name, in: "header", required: false, schema: REQUEST_HEADERS[name] })),
  ];
}

/** The bodies that a response can have, by media type. The first is the default. */
export function responseBodies({ schema, mediaType = "application/json", alsoAs, onRequestAs }: ResponseInfo) {
  const own = schema === null ? undefined : { mediaType, schema };
  return [own, alsoAs, onRequestAs].filter((body) => body !== undefined);
}

/** The API as an OpenAPI 3.1 document, as JSON. `baseUrl` is its server. */
export function openApiJson(operations: readonly ApiOperation[], baseUrl: string): string {
  const { print, components } = createSchemaPrinter();
  const mediaContent = ({ mediaType, schema }: AlternativeBody): Json => ({ [mediaType]: { schema: print(schema) } });

  /** Puts the description next to the schema, where tools look for that of a parameter. */
  const describeSchema = (schema: TSchema): Json => ({
    description: asJson(schema)["description"],
    schema: print(schema),
  });

  /** Headers by name; every response has X-Request-Id. Written out, since references stop openapi-generator's clean-up. */
  const describeHeaders = (names: Iterable<AnswerHeader>): Json => {
    const all = ["X-Request-Id", ...names] as const;
    return Object.fromEntries(
      all.map((name) => {
        const { description, schema } = describeSchema(ANSWER_HEADERS[name]);
        return [name, { description, required: true, schema }];
      }),
    );
  };

  const describeAnswer = (info: ResponseInfo): Json => {
    const { description, headers = [] } = info;
    const bodies = responseBodies(info);
    const content = bodies.length === 0 ? {} : { content: Object.assign({}, ...bodies.map(mediaContent)) as Json };
    return { description, headers: describeHeaders(headers), ...content };
  };

  /** The error response of one status, for any of these codes. `alsoAs`: a second media type, by `Accept`. */
  const errorResponse = (codes: readonly ErrorCode[], alsoAs?: AlternativeBody): Json => {
    const negotiated: readonly AnswerHeader[] = alsoAs === undefined ? [] : ["Vary"];
    const headers = new Set([...negotiated, ...codes.flatMap((code) => ERROR_HEADERS[code] ?? [])]);
    const isOne = codes.length === 1 && alsoAs === undefined;
    const meanings = codes.map((code) => (isOne ? ERROR_MEANING[code] : `- \`${code}\`: ${ERROR_MEANING[code]}`));
    return {
      description: meanings.join("\n"),
      headers: describeHeaders(headers),
      content: {
        "application/json": {
          // One schema for all codes: from narrowed schemas, generators would make a type for each response.
          schema: print(ErrorEnvelopeJson),
          examples: Object.fromEntries(codes.map((code) => [code, { value: errorExample(code) }])),
        },
        ...(alsoAs && mediaContent(alsoAs)),
      },
    };
  };

  /**
   * An error that is the only one of its status refers to a component. A status with several codes, or with a second media
   * type, is written out.
   */
  const errorResponses = ({ errors, answers }: ApiOperation): Json => {
    const alsoAs = Object.values(answers).find((answer) => answer.alsoAs !== undefined)?.alsoAs;
    const byStatus = Map.groupBy(errors, (code) => HTTP_STATUS[code]);
    return Object.fromEntries(
      [...byStatus].map(([status, codes]) => {
        const isShared = codes.length === 1 && alsoAs === undefined;
        return [status, isShared ? { $ref: `#/components/responses/${codes[0]}` } : errorResponse(codes, alsoAs)];
      }),
    );
  };

  const describeOperation = (operation: ApiOperation): Json => {
    const { operationId, tag, summary, description, notes = [], permission, takesMetricsToken, body } = operation;
    const security = takesMetricsToken === true ? [{}, { metricsToken: [] }] : [];
    const content = body && mediaContent({ mediaType: "application/json", schema: body.schema });
    return {
      operationId,
      tags: [tag],
      summary,
      // CommonMark, as OpenAPI has it: a paragraph, and a list of the notes.
      description: [description, ...(notes.length === 0 ? [] : ["", ...notes.map((note) => `- ${note}`)])].join("\n"),
      ...(permission === null && { security }),
      parameters: [
        ...describeParameters(operation).map(({ schema, ...where }) =>
          where.in === "header" ? headerReference(where.name) : { ...where, ...describeSchema(schema) },
        ),
        headerReference("X-Request-Id"),
      ],
      ...(body && { requestBody: { required: body.isRequired, content } }),
      responses: { ...errorResponses(operation), ...mapValues(operation.answers, describeAnswer) },
    };
  };

  const paths = Map.groupBy(operations, ({ path }) => path);
  const document = {
    openapi: "3.1.1",
    info: { title: "Outgate", version: INTERFACE_VERSION, description: ABOUT_API },
    servers: [{ url: baseUrl, description: "This service." }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    security: [{ apiKey: [] }],
    paths: Object.fromEntries(
      [...paths].map(([path, same]) => [
        path,
        Object.fromEntries(same.map((one) => [one.method.toLowerCase(), describeOperation(one)])),
      ]),
    ),
  };
  const written = JSON.stringify(document);
  const shared = ERROR_CODES.filter((code) => written.includes(`"#/components/responses/${code}"`));
  return JSON.stringify({
    ...document,
    components: {
      securitySchemes: {
        apiKey: { type: "http", scheme: "bearer", description: "An API key (og_…) of the account." },
        metricsToken: { type: "http", scheme: "bearer", description: "METRICS_TOKEN, where the service has one." },
      },
      parameters: Object.fromEntries(
        Object.entries(REQUEST_HEADERS).map(([name, schema]) => {
          return [name, { name, in: "header", required: false, ...describeSchema(schema) }];
        }),
      ),
      responses: Object.fromEntries(shared.map((code) => [code, errorResponse([code])])),
      schemas: components(),
    },
  });
}

function headerReference(name: string): Json {
  return { $ref: `#/components/parameters/${name}` };
}

function errorExample(code: ErrorCode): Json {
  const error = { code, message: ERROR_MEANING[code], request_id: "req_01kjwa5v00e7v8c9x2m4n6p8qr" };
  if (code !== "validation_error") return { error };
  return { error: { ...error, details: [{ field: "retries", message: "Must be an integer.", code: "invalid" }] } };
}

type Json = Readonly<Record<string, unknown>>;

/**
 * Prints schemas. A schema with a title becomes a component, and its uses become references. Throws on two different schemas
 * of one title.
 */
export function createSchemaPrinter() {
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
    const { [DESCRIBED_ONLY]: enforced, ...own } = asJson(schema);
    const members = Object.entries(own).map(([word, value]) => [word, member(word, value)]);
    const printed = readable({ ...asJson(Object.fromEntries(members)), ...asJson(enforced) });
    const { title } = printed;
    return typeof title === "string" ? name(title, printed) : printed;
  };
  /** Descends only into places of schemas, since a property may have the name of a keyword. */
  const member = (word: string, value: unknown): unknown => {
    if (word === "properties") return mapValues(asJson(value), print);
    if (word === "items") return print(value);
    if (word === "additionalProperties" && typeof value === "object") return print(value);
    if (word === "anyOf" && Array.isArray(value)) return value.map(print);
    return value;
  };
  return {
    // Copied through JSON, which drops typebox's own hidden members.
    print: (schema: TSchema): Json => print(JSON.parse(JSON.stringify(schema))),
    /** The components printed so far, sorted by name. */
    components: (): Json => Object.fromEntries([...named].toSorted(([a], [b]) => (a < b ? -1 : 1))),
  };
}

/**
 * Rewrites a schema for generators of clients: no list of types, the description of a nullable value next to its `anyOf`, and
 * an object without members says that it takes any.
 */
function readable(schema: Json): Json {
  const { type, anyOf, ...rest } = schema;
  // Our lists contain every type, or every scalar, so they can be left out.
  if (Array.isArray(type)) return rest;
  const isFree = type === "object" && !("properties" in rest) && !("additionalProperties" in rest);
  if (isFree) return { ...schema, additionalProperties: true };
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return schema;
  const [given, none] = anyOf.map(asJson);
  if (none?.["type"] !== "null") return schema;
  const { description, examples, ...own } = asJson(given);
  const shared = { ...(description !== undefined && { description }), ...(examples !== undefined && { examples }) };
  return { anyOf: [own, none], ...shared, ...rest };
}

function mapValues<Value>(object: Readonly<Record<string, Value>>, change: (value: Value) => unknown): Json {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));
}

function asJson(value: unknown): Json {
  // Safe: an object, whose members are read one by one as unknown.
  return typeof value === "object" && value !== null ? (value as Json) : {};
}
