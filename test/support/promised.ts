import { compile, isJsonObject } from "../../src/contract/check.ts";
import { at, DOCUMENT, inlined, type Node, OPERATIONS } from "./openapi.ts";

/** What was asked and what came back, as far as the API description speaks of it. */
export interface Exchanged {
  readonly method: string;
  /** As sent, with its query. */
  readonly path: string;
  readonly status: number;
  readonly headers: Headers;
  /** Null: nobody looked, as at the body of a HEAD that no socket took off. */
  readonly text: string | null;
}

/** Headers of HTTP itself, which no description names. */
const OF_HTTP = new Set(["content-type", "content-length", "connection", "date", "transfer-encoding", "vary"]);

/** What is for people: the description does not speak of it, and other tests look at it. */
const PAGES = /^\/+(?:$|(?:r|a|assets|approvals)(?:\/|$))/;

/** Why the API description does not allow this answer; empty when it does. */
export function broken(exchanged: Exchanged): string[] {
  const path = exchanged.path.split(/[?#]/, 1)[0] ?? "";
  if (PAGES.test(path)) return [];
  const responses = responsesTo(exchanged.method, path);
  const fitting = responses[exchanged.status];
  if (fitting === undefined) return [`${exchanged.status} is none of ${Object.keys(responses).join(", ")}`];
  return [...headerProblems(fitting, exchanged), ...bodyProblems(fitting, exchanged)];
}

interface Promised {
  /** In lower case. */
  readonly headers: ReadonlyMap<string, (text: string) => boolean>;
  readonly mediaType: string | null;
  readonly issues: (value: unknown) => readonly unknown[];
}
type Responses = Readonly<Record<string, Promised>>;

const PATHS = [...Map.groupBy(OPERATIONS, ({ path }) => path)].map(([path, operations]) => ({
  pattern: new RegExp(`^${path.replaceAll(".", String.raw`\.`).replaceAll(/\{\w+\}/g, "[^/]+")}/?$`),
  operations,
}));
const promisedBy = new Map(OPERATIONS.map(({ id, node }) => [id, promisedOf(at(node, "responses"))]));
const ERRORS = promisedOf(at(inlined(at(DOCUMENT, "components", "responses"))));
/** What the text of the description promises of OPTIONS. */
const OPTIONS: Promised = promise({
  headers: at(inlined(at(DOCUMENT, "components", "responses", "method_not_allowed", "headers"))),
});

/** What any path may answer, whatever is there. */
function responsesTo(method: string, path: string): Responses {
  const operations = PATHS.find(({ pattern }) => pattern.test(path))?.operations;
  const operation = operations?.find((one) => one.method === (method === "HEAD" ? "GET" : method));
  if (operation !== undefined) return promisedBy.get(operation.id) ?? {};
  const atDoor = path === "/v1" || path.startsWith("/v1/") ? pick(["unauthorized", 401], ["rate_limited", 429]) : {};
  if (operations === undefined) return { ...atDoor, ...pick(["not_found", 404]) };
  return method === "OPTIONS" ? { ...atDoor, 204: OPTIONS } : { ...atDoor, ...pick(["method_not_allowed", 405]) };
}

function pick(...errors: readonly (readonly [code: string, status: number])[]): Responses {
  return Object.fromEntries(errors.flatMap(([code, status]) => (ERRORS[code] ? [[status, ERRORS[code]]] : [])));
}

function promisedOf(responses: Node): Responses {
  return Object.fromEntries(Object.entries(responses).map(([status, response]) => [status, promise(at(response))]));
}

function promise(response: Node): Promised {
  const headers = Object.entries(at(response, "headers")).map(([name, header]) => {
    const check = compile(at(header, "schema"));
    const isInteger = at(header, "schema")["type"] === "integer";
    const accepts = (text: string) => check.accepts(isInteger ? Number(text) : text);
    return [name.toLowerCase(), accepts] as const;
  });
  const mediaType = Object.keys(at(response, "content"))[0] ?? null;
  const schema = compile(closed(at(response, "content", mediaType ?? "", "schema")));
  return { headers: new Map(headers), mediaType, issues: (value) => schema.issues(value) };
}

/** The schema without room for members that it does not name. */
function closed(schema: Node): Node {
  const { allOf, ...rest } = schema;
  const whole = Array.isArray(allOf) ? allOf.map((part) => at(part)).reduce(merged, rest) : schema;
  const properties = Object.entries(at(whole, "properties")).map(([name, field]) => [name, closed(at(field))]);
  return {
    ...whole,
    ...(properties.length === 0 ? {} : { properties: Object.fromEntries(properties), additionalProperties: false }),
    ...(isJsonObject(whole["items"]) ? { items: closed(at(whole, "items")) } : {}),
  };
}

/** Both at once, where the second is the narrower. */
function merged(one: Node, other: Node): Node {
  const both = Object.entries(other).map(([word, value]) => {
    if (word === "required" && Array.isArray(value)) return [word, [...new Set([one[word] ?? [], value].flat())]];
    return [word, isJsonObject(value) && isJsonObject(one[word]) ? merged(at(one, word), at(value)) : value];
  });
  return { ...one, ...Object.fromEntries(both) };
}

function headerProblems({ headers, mediaType }: Promised, { headers: given, text }: Exchanged): readonly string[] {
  const missing = [...headers].filter(([name, accepts]) => !accepts(given.get(name) ?? "\0"));
  const unknown = [...given.keys()].filter((name) => !OF_HTTP.has(name) && !headers.has(name));
  const type = given.get("content-type");
  const isTyped = type === mediaType || (text === "" && mediaType === null && type === null);
  return [
    ...missing.map(([name]) => `header ${name}: ${given.get(name)}`),
    ...unknown.map((name) => `header ${name} is not promised`),
    ...(isTyped ? [] : [`content type ${type} in place of ${mediaType}`]),
  ];
}

function bodyProblems({ mediaType, issues }: Promised, { text }: Exchanged): readonly string[] {
  if (text === null) return [];
  if (mediaType === null) return text === "" ? [] : ["a body where none is promised"];
  const value: unknown = mediaType === "application/json" ? JSON.parse(text) : text;
  return issues(value).map((issue) => JSON.stringify(issue));
}
