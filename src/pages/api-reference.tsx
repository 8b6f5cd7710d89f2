/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { keyHeader } from "./snippets.tsx";

/** The parts of an OpenAPI 3.1 document that the reference shows. */
export interface OpenApiDocument {
  readonly info: { readonly description: string; readonly version: string };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Named<Named<Operation>>;
  readonly components: { readonly schemas: Named<Schema>; readonly parameters: Named<Parameter> };
}

type Named<T> = Readonly<Record<string, T>>;

type Ref = Readonly<Record<"$ref", string>>;

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  /** Left out: it needs an API key. */
  readonly security?: readonly unknown[];
  readonly parameters: readonly (Parameter | Ref)[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Named<ApiResponse | Ref>;
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required: boolean;
  readonly description?: string;
  readonly schema: Schema;
}

interface ApiResponse {
  readonly description: string;
  readonly headers?: Named<Ref>;
  readonly content?: Content;
}

type Content = Named<{ readonly schema: Schema }>;

interface Schema
  extends Partial<Ref>, Readonly<Partial<Record<"minimum" | "maximum" | "minLength" | "maxLength", number>>> {
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly properties?: Named<Schema>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
}

interface ApiReferenceProps {
  readonly document: OpenApiDocument;
  /** The roles that may call an operation: the document doesn't contain them. */
  readonly rolesOf: (operationId: string) => readonly string[];
}

/** The API reference, from the OpenAPI document alone. */
export function ApiReference({ document, rolesOf }: ApiReferenceProps) {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => resolve(document, path, method.toUpperCase(), operation)),
  );
  // Request bodies are shown with their operation.
  const sent = new Set(operations.map(({ body }) => body?.$ref));
  const tags = document.tags.map((tag) => ({ ...tag, rows: operations.filter((one) => one.tags.includes(tag.name)) }));
  return (
    <>
      <h1>API reference</h1>
      {document.info.description.split("\n\n").map((paragraph) => (
        <p>{paragraph}</p>
      ))}
      <p>
        Version {document.info.version}, at <code>{document.servers[0]?.url}</code>. For tools:{" "}
        <a href="/openapi.json">openapi.json</a>.
      </p>
      <ul class="contents">
        {tags.map(({ name, rows }) => (
          <li>
            <a href={`#tag-${name}`}>{name}</a>
            <ul>
              {rows.map(({ operationId, title, summary }) => (
                <li>
                  <a href={`#${operationId}`}>
                    <code>{title}</code>
                  </a>{" "}
                  <span class="quiet small">{summary}</span>
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ul>
      {tags.map(({ name, description, rows }) => (
        <section aria-labelledby={`tag-${name}`}>
          <h2 id={`tag-${name}`}>{name}</h2>
          <p>{description}</p>
          {rows.map((operation) => (
            <OperationView {...operation} roles={rolesOf(operation.operationId)} />
          ))}
        </section>
      ))}
      <section aria-labelledby="schemas">
        <h2 id="schemas">Schemas</h2>
        {Object.entries(document.components.schemas)
          .filter(([name]) => !sent.has(`#/components/schemas/${name}`))
          .map(([name, schema]) => (
            <Entry id={`schema-${name}`} title={name}>
              {schema.description === undefined ? null : <p>{schema.description}</p>}
              <Fields schema={schema} marks="optional" />
            </Entry>
          ))}
      </section>
    </>
  );
}

function Entry({ id, title, children }: { readonly id: string; readonly title: string; readonly children?: Child }) {
  return (
    <section class="operation" aria-labelledby={id}>
      <h3 id={id}>
        <code>{title}</code>
      </h3>
      {children}
    </section>
  );
}

type ResolvedOperation = ReturnType<typeof resolve>;

function resolve(document: OpenApiDocument, path: string, method: string, operation: Operation) {
  const parameters = operation.parameters
    .flatMap((one) => ("$ref" in one ? (document.components.parameters[nameOf(one.$ref)] ?? []) : one))
    // Every request can have it, so it is described once, at the top.
    .filter(({ name }) => name !== "X-Request-Id");
  const body = operation.requestBody?.content["application/json"]?.schema;
  return { ...operation, document, path, method, title: `${method} ${path}`, parameters, body };
}

function OperationView({ roles, ...operation }: ResolvedOperation & { readonly roles: readonly string[] }) {
  const { operationId, title, summary, description, security, parameters, body, requestBody, responses } = operation;
  const codes = Object.entries(responses).flatMap(([status, one]) => errorCodes(one).map((code) => [status, code]));
  return (
    <Entry id={operationId} title={title}>
      <p>
        {summary}.{" "}
        <span class="quiet">{security === undefined ? `Roles: ${roles.join(", ")}.` : "No API key required."}</span>
      </p>
      <p>{description}</p>
      <h4>Example</h4>
      <pre class="code">{curlOf(operation)}</pre>
      {parameters.length === 0 ? null : <h4>Parameters</h4>}
      {parameters.length === 0 ? null : <Fields schema={asObject(parameters)} marks="required" />}
      {body === undefined ? null : <h4>Body{requestBody?.required === true ? "" : ", optional"}</h4>}
      {body === undefined ? null : <Fields schema={dereferenced(body, operation.document)} marks="required" />}
      <h4>Responses</h4>
      <ul>
        {Object.entries(responses).map(([status, one]) =>
          errorCodes(one).length > 0 || "$ref" in one ? null : <Success status={status} response={one} />,
        )}
      </ul>
      {codes.length === 0 ? null : (
        <p class="small">
          Errors:{" "}
          {codes.map(([status, code], at) => (
            <>
              {at === 0 ? "" : ", "}
              {status} <a href={`/docs/errors#${code}`}>{code}</a>
            </>
          ))}
        </p>
      )}
    </Entry>
  );
}

function Success({ status, response }: { readonly status: string; readonly response: ApiResponse }) {
  const [content] = Object.values(contentOf(response));
  // Every response has X-Request-Id.
  const headers = Object.keys(response.headers ?? {}).filter((name) => name !== "X-Request-Id");
  return (
    <li>
      <b>{status}</b> {response.description} {content === undefined ? null : <Type schema={content.schema} />}
      {headers.length === 0 ? null : (
        <span class="small">
          {" Headers: "}
          <code>{headers.join(", ")}</code>
        </span>
      )}
    </li>
  );
}

/** The codes of an error response: the name of a shared one, or the list in its description. */
function errorCodes(response: ApiResponse | Ref): readonly string[] {
  if ("$ref" in response) return [nameOf(response.$ref)];
  return [...response.description.matchAll(/^- `(\w+)`/gm)].map(([, code = ""]) => code);
}

function contentOf(response: ApiResponse | Ref | undefined): Content {
  return response === undefined || "$ref" in response ? {} : (response.content ?? {});
}

function curlOf(operation: ResolvedOperation): string {
  const { document, path, method, parameters, body, requestBody, responses, security } = operation;
  const needed = parameters.flatMap(({ name, in: place, required, schema }) =>
    required ? [{ name, place, value: String(exampleOf(schema, document)) }] : [],
  );
  const query = needed.filter(({ place }) => place === "query").map(({ name, value }) => `${name}=${value}`);
  const filled = needed.reduce((text, { name, value }) => text.replace(`{${name}}`, () => value), path);
  const url = `${document.servers[0]?.url}${filled}${query.length === 0 ? "" : `?${query.join("&")}`}`;
  const data = requestBody?.required === true && body !== undefined ? JSON.stringify(exampleOf(body, document)) : null;
  const isImplied = method === "GET" || (method === "POST" && data !== null);
  const [accept, ...otherTypes] = Object.keys(contentOf(responses["200"]));
  return [
    `curl -s ${isImplied ? "" : `-X ${method} `}'${url}'`,
    ...(security === undefined ? [keyHeader("OUTGATE_API_KEY")] : []),
    ...(otherTypes.length === 0 ? [] : [`-H 'Accept: ${accept}'`]),
    ...(data === null ? [] : [`-H 'Content-Type: application/json'`, `-d '${data}'`]),
  ].join(" \\\n  ");
}

function asObject(parameters: readonly Parameter[]): Schema {
  const members = parameters.map(({ name, in: place, schema, description = "" }) => {
    return [name, { ...schema, description: `In the ${place}. ${description}` }] as const;
  });
  const required = parameters.filter((one) => one.required).map(({ name }) => name);
  return { properties: Object.fromEntries(members), required };
}

/** The members of a schema with type and bounds, or the type of a schema without members. */
function Fields({ schema, marks }: { readonly schema: Schema; readonly marks: "required" | "optional" }) {
  const members = membersOf(schema, "");
  if (members.length === 0) {
    return (
      <p class="small">
        <Type schema={schema} /> <span class="quiet">{boundsText(schema)}</span>
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
            {member.description} <span class="quiet">{boundsText(member)}</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}

interface Member {
  readonly name: string;
  readonly member: Schema;
  readonly isRequired: boolean;
}

/** Nested members follow their parent, with their full path. */
function membersOf(schema: Schema, prefix: string): readonly Member[] {
  const { properties = {}, required = [] } =
    [schema, schema.items, ...(schema.anyOf ?? [])].find((one) => one?.properties !== undefined) ?? {};
  return Object.entries(properties).flatMap(([name, member]) => [
    { name: prefix + name, member, isRequired: required.includes(name) },
    ...membersOf(member, `${prefix}${name}${member.items === undefined ? "" : "[]"}.`),
  ]);
}

/** The type of a value, like "list of Action". The name of a schema is a link. */
function Type({ schema }: { readonly schema: Schema }) {
  const text = typeText(schema);
  const name = [schema, schema.items, ...(schema.anyOf ?? [])].find((one) => one?.$ref !== undefined)?.$ref;
  if (name === undefined) return <span class="type">{text}</span>;
  const [before, after] = text.split(nameOf(name));
  return (
    <span class="type">
      {before}
      <a href={`#schema-${nameOf(name)}`}>{nameOf(name)}</a>
      {after}
    </span>
  );
}

function typeText({ $ref, anyOf, items, const: only, type = "any value", format }: Schema): string {
  if ($ref !== undefined) return nameOf($ref);
  if (anyOf !== undefined) return [...new Set(anyOf.map(typeText))].join(" or ");
  if (items !== undefined) return `list of ${typeText(items)}`;
  if (only !== undefined) return JSON.stringify(only);
  return [type].flat().join(" or ") + (format === undefined ? "" : ` (${format})`);
}

/** The bounds of a value as a sentence; empty if there are none. */
function boundsText({ minimum, maximum, minLength, maxLength, items, default: usual, ...schema }: Schema): string {
  const values = schema.enum ?? items?.enum;
  const bounds = [
    values === undefined ? "" : `one of ${values.join(", ")}`,
    rangeText(minimum, maximum, ""),
    rangeText(minLength, maxLength, " characters"),
    usual === undefined ? "" : `default ${JSON.stringify(usual)}`,
  ].filter((text) => text !== "");
  const text = bounds.join("; ");
  return text === "" ? "" : `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function rangeText(least: number | undefined, most: number | undefined, unit: string): string {
  if (least !== undefined && most !== undefined) return `${least} to ${most}${unit}`;
  if (most !== undefined) return `at most ${most}${unit}`;
  return least === undefined || least === 0 ? "" : `at least ${least}${unit}`;
}

/** An example value with the required members only. */
function exampleOf(schema: Schema, document: OpenApiDocument): unknown {
  const { properties, required = [], examples, const: only, enum: values } = dereferenced(schema, document);
  if (properties === undefined) return examples?.[0] ?? only ?? values?.[0] ?? null;
  const needed = Object.entries(properties).filter(([name]) => required.includes(name));
  return Object.fromEntries(needed.map(([name, member]) => [name, exampleOf(member, document)]));
}

function dereferenced(schema: Schema, { components }: OpenApiDocument): Schema {
  return schema.$ref === undefined ? schema : (components.schemas[nameOf(schema.$ref)] ?? schema);
}

/** The last part of a reference. */
function nameOf(ref: string): string {
  return ref.slice(ref.lastIndexOf("/") + 1);
}
