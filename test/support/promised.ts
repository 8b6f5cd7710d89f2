import { compile } from "../../src/api/check.ts";
import { isJsonObject } from "../../src/core/json.ts";
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

/** What any page adds to that for browsers. */
const OF_PAGES = new Set([
  "cache-control",
  "content-security-policy",
  "cross-origin-opener-policy",
  "cross-origin-resource-policy",
  "referrer-policy",
  // Of a receipt until it is final.
  "refresh",
  "x-content-type-options",
  "x-frame-options",
  "x-robots-tag",
]);

/** What is for people: the description does not speak of it, and other tests look at it. */
const PAGES = /^\/+(?:$|(?:a|assets|approvals)(?:\/|$))/;

/** Where a browser that loads the address of a refused form is led back to the form. */
const LEADS_BACK = /^\/auth\/(?:login|signup)\/?$/;

/** Why the API description does not allow this answer; empty when it does. */
export function broken(exchanged: Exchanged): string[] {
  const path = exchanged.path.split(/[?#]/, 1)[0] ?? "";
  if (PAGES.test(path) || (LEADS_BACK.test(path) && exchanged.status === 303)) return [];
  const responses = responsesTo(exchanged.method, path);
  const fitting = responses[exchanged.status];
  if (fitting === undefined) return [`${exchanged.status} is none of ${Object.keys(responses).join(", ")}`];
  return [...headerProblems(fitting, exchanged), ...bodyProblems(fitting, exchanged)];
}

interface Promised {
  /** In lower case. */
  readonly headers: ReadonlyMap<string, (text: string) => boolean>;
  /** What is wrong with a body, by the media types in which it may come. None: there is no body. */
  readonly forms: ReadonlyMap<string, (value: unknown) => readonly unknown[]>;
}

type Responses = Readonly<Record<string, Promised>>;

/** Those without a parameter first: `/v1/actions/counts` is no `/v1/actions/{id}`. */
const PATTERNS = [...Map.groupBy(OPERATIONS, ({ path }) => path)].toSorted(
  ([one], [other]) => Number(one.includes("{")) - Number(other.includes("{")),
);

const PATHS = PATTERNS.map(([path, operations]) => ({
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
  const atServer = path === "/v1" || path.startsWith("/v1/") ? pick(["unauthorized", 401], ["rate_limited", 429]) : {};
  if (operations === undefined) return { ...atServer, ...pick(["not_found", 404]) };
  if (method === "OPTIONS") return { ...atServer, 204: OPTIONS };
  // Every operation of a path says the same of the methods that the path does not take.
  const refusal = promisedBy.get(operations[0]?.id ?? "")?.[405];
  return { ...atServer, ...(refusal === undefined ? {} : { 405: refusal }) };
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
  const forms = Object.entries(at(response, "content")).map(([mediaType, form]) => {
    const schema = compile(closed(at(form, "schema")));
    // The examples of an error are those of the codes that the response may have.
    const codes = Object.keys(at(form, "examples"));
    const problems = (value: unknown) => [...schema.issues(value), ...codeProblems(value, codes)];
    return [mediaType, problems] as const;
  });
  return { headers: new Map(headers), forms: new Map(forms) };
}

function codeProblems(value: unknown, codes: readonly string[]): readonly unknown[] {
  const code = at(value, "error")["code"];
  const isOther = codes.length > 0 && typeof code === "string" && !codes.includes(code);
  return isOther ? [{ field: "error.code", message: `Must be one of ${codes.join(", ")}.` }] : [];
}

/** The schema without room for members that it does not name. */
function closed(schema: Node): Node {
  const properties = Object.entries(at(schema, "properties")).map(([name, field]) => [name, closed(at(field))]);
  return {
    ...schema,
    ...(properties.length === 0 ? {} : { properties: Object.fromEntries(properties), additionalProperties: false }),
    ...(isJsonObject(schema["items"]) ? { items: closed(at(schema, "items")) } : {}),
    ...(Array.isArray(schema["anyOf"]) ? { anyOf: schema["anyOf"].map((one) => closed(at(one))) } : {}),
  };
}

function headerProblems({ headers, forms }: Promised, { headers: given, text }: Exchanged): readonly string[] {
  const type = mediaTypeOf(given);
  const isPage = type === "text/html";
  const missing = [...headers].filter(([name, accepts]) => !given.has(name) || !accepts(given.get(name) ?? ""));
  const unknown = [...given.keys()].filter(
    (name) => !OF_HTTP.has(name) && !headers.has(name) && !(isPage && OF_PAGES.has(name)),
  );
  const isTyped = type === null ? text === "" && forms.size === 0 : forms.has(type);
  return [
    ...missing.map(([name]) => `header ${name}: ${given.get(name)}`),
    ...unknown.map((name) => `header ${name} is not promised`),
    ...(isTyped ? [] : [`content type ${type} in place of ${[...forms.keys()].join(", ")}`]),
  ];
}

/** Every page says its charset, which no description repeats. */
function mediaTypeOf(headers: Headers): string | null {
  const type = headers.get("content-type");
  return type?.startsWith("text/html;") === true ? "text/html" : type;
}

function bodyProblems({ forms }: Promised, { headers, text }: Exchanged): readonly string[] {
  if (text === null) return [];
  if (forms.size === 0) return text === "" ? [] : ["a body where none is promised"];
  // Another type than those that are promised is a problem of the head.
  const type = mediaTypeOf(headers) ?? "";
  const issues = forms.get(type)?.(type === "application/json" ? JSON.parse(text) : text) ?? [];
  return issues.map((issue) => JSON.stringify(issue));
}
