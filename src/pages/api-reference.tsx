/** @jsxImportSource hono/jsx */
import { API } from "../api/operations.ts";
import { rolesThatMay } from "../accounts/roles.ts";
import {
  type ApiDocument,
  type ApiParameter,
  type ApiSchema,
  type DocumentedOperation,
  exampleOf,
  nameOf,
  type Ref,
  type ApiAnswer,
  boundWords,
  typeWords,
} from "./api-document.ts";
import { keyHeader } from "./words.ts";

export interface ApiReferenceProps {
  readonly document: ApiDocument;
  readonly baseUrl: string;
}

/** The API reference, generated from the OpenAPI document. */
export function ApiReference({ document, baseUrl }: ApiReferenceProps) {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  // Request bodies are shown with their operation.
  const sent = new Set(
    operations.map(({ operation }) => bodyOf(operation)?.$ref).map((ref) => ref && nameOf({ $ref: ref })),
  );
  const of = (tag: string) => operations.filter(({ operation }) => operation.tags.includes(tag));
  return (
    <>
      <h1>API reference</h1>
      {document.info.description.split("\n\n").map((paragraph) => (
        <p>{paragraph}</p>
      ))}
      <p>
        Version {document.info.version}, at <code>{baseUrl}</code>. For tools: <a href="/openapi.json">openapi.json</a>.
      </p>
      <Contents tags={document.tags.map(({ name }) => ({ name, operations: of(name) }))} />
      {document.tags.map(({ name, description }) => (
        <section aria-labelledby={`tag-${name}`}>
          <h2 id={`tag-${name}`}>{name}</h2>
          <p>{description}</p>
          {of(name).map((one) => (
            <Operation {...one} document={document} baseUrl={baseUrl} />
          ))}
        </section>
      ))}
      <section aria-labelledby="schemas">
        <h2 id="schemas">Schemas</h2>
        {Object.entries(document.components.schemas)
          .filter(([name]) => !sent.has(name))
          .map(([name, schema]) => (
            <Schema name={name} schema={schema} />
          ))}
      </section>
    </>
  );
}

interface Placed {
  readonly path: string;
  readonly method: string;
  readonly operation: DocumentedOperation;
}

function Contents({
  tags,
}: {
  readonly tags: readonly { readonly name: string; readonly operations: readonly Placed[] }[];
}) {
  return (
    <ul class="contents">
      {tags.map(({ name, operations }) => (
        <li>
          <a href={`#tag-${name}`}>{name}</a>
          <ul>
            {operations.map(({ method, path, operation }) => (
              <li>
                <a href={`#${operation.operationId}`}>
                  <code>
                    {method} {path}
                  </code>
                </a>{" "}
                <span class="quiet small">{operation.summary}</span>
              </li>
            ))}
          </ul>
        </li>
      ))}
    </ul>
  );
}

function Operation({ path, method, operation, document, baseUrl }: Placed & ApiReferenceProps) {
  const { operationId: id, summary, description, parameters, requestBody, responses } = operation;
  const body = bodyOf(operation);
  return (
    <section class="operation" aria-labelledby={id}>
      <h3 id={id}>
        <code>
          {method} {path}
        </code>
      </h3>
      <p>
        {summary}. <span class="quiet">{whoMay(id)}</span>
      </p>
      <p>{description}</p>
      <h4>Example</h4>
      <pre class="code">{curl({ path, method, operation, document, baseUrl })}</pre>
      <Parameters parameters={parameters.map((one) => parameterOf(one, document))} />
      {body === undefined ? null : (
        <>
          <h4>Body{requestBody?.required === true ? "" : ", optional"}</h4>
          <Fields schema={named(body, document)} marks="required" />
        </>
      )}
      <Answers responses={responses} />
    </section>
  );
}

function Parameters({ parameters }: { readonly parameters: readonly ApiParameter[] }) {
  // Every request can have it, so it is described once, at the top.
  const own = parameters.filter(({ name }) => name !== "X-Request-Id");
  if (own.length === 0) return null;
  const properties = Object.fromEntries(
    own.map(({ name, in: where, schema, description }) => [
      name,
      { ...schema, description: `In the ${where}. ${description ?? ""}` },
    ]),
  );
  const required = own.filter((one) => one.required).map(({ name }) => name);
  return (
    <>
      <h4>Parameters</h4>
      <Fields schema={{ properties, required }} marks="required" />
    </>
  );
}

function Schema({ name, schema }: { readonly name: string; readonly schema: ApiSchema }) {
  return (
    <section class="operation" aria-labelledby={`schema-${name}`}>
      <h3 id={`schema-${name}`}>
        <code>{name}</code>
      </h3>
      {schema.description === undefined ? null : <p>{schema.description}</p>}
      <Fields schema={schema} marks="optional" />
    </section>
  );
}

/** The media types of its response; the first one is for programs. */
function formsOf({ responses }: DocumentedOperation) {
  const answer = responses["200"];
  return answer === undefined || "$ref" in answer ? {} : (answer.content ?? {});
}

function bodyOf({ requestBody }: DocumentedOperation): ApiSchema | undefined {
  return requestBody?.content["application/json"]?.schema;
}

function parameterOf(one: ApiParameter | Ref, { components }: ApiDocument): ApiParameter {
  if (!("$ref" in one)) return one;
  return components.parameters[nameOf(one)] ?? { name: nameOf(one), in: "header", required: false, schema: {} };
}

function named(schema: ApiSchema, { components }: ApiDocument): ApiSchema {
  return schema.$ref === undefined ? schema : (components.schemas[nameOf({ $ref: schema.$ref })] ?? schema);
}

function whoMay(operationId: string): string {
  const { permission } = Object.values(API).find(({ id }) => id === operationId) ?? { permission: null };
  if (permission === null) return "No API key required.";
  return `Roles: ${rolesThatMay(permission).join(", ")}.`;
}

function curl({ path, method, operation, document, baseUrl }: Placed & ApiReferenceProps): string {
  const needed = operation.parameters
    .map((one) => parameterOf(one, document))
    .filter(({ required, in: where }) => required && where === "query")
    .map(({ name, schema }) => `${name}=${String(exampleOf(schema, document))}`);
  const inPath = operation.parameters.map((one) => parameterOf(one, document)).find((one) => one.in === "path");
  const at =
    inPath === undefined ? path : path.replace(`{${inPath.name}}`, () => String(exampleOf(inPath.schema, document)));
  const [form, ...others] = Object.keys(formsOf(operation));
  const body = bodyOf(operation);
  const takes = operation.requestBody?.required === true && body !== undefined;
  const { permission } = Object.values(API).find((row) => row.id === operation.operationId) ?? { permission: null };
  return [
    `curl -s ${method === "GET" || (takes && method === "POST") ? "" : `-X ${method} `}'${baseUrl}${at}${needed.length === 0 ? "" : `?${needed.join("&")}`}'`,
    ...(permission === null ? [] : [keyHeader("OUTGATE_API_KEY")]),
    ...(others.length === 0 ? [] : [`-H 'Accept: ${form}'`]),
    ...(takes ? [`-H 'Content-Type: application/json'`, `-d '${JSON.stringify(exampleOf(body, document))}'`] : []),
  ].join(" \\\n  ");
}

/** The responses of an operation: each status with its schema and headers, and the error codes. */
export function Answers({ responses }: Pick<DocumentedOperation, "responses">) {
  const all = Object.entries(responses);
  const good = all.flatMap(([status, answer]) => ("$ref" in answer || isError(answer) ? [] : [{ status, answer }]));
  const errors = all.flatMap(([status, answer]) => codesOf(answer).map((code) => ({ status, code })));
  return (
    <>
      <h4>Responses</h4>
      <ul>
        {good.map(({ status, answer }) => {
          const schema = Object.values(answer.content ?? {})[0]?.schema;
          return (
            <li>
              <b>{status}</b> {answer.description}
              {schema === undefined ? null : (
                <>
                  {" "}
                  <Type schema={schema} />
                </>
              )}
              <HeadersOf answer={answer} />
            </li>
          );
        })}
      </ul>
      {errors.length === 0 ? null : (
        <p class="small">
          Errors:{" "}
          {errors.map(({ status, code }, at) => (
            <>
              {at === 0 ? "" : ", "}
              {status} <a href={`/docs/errors#${code}`}>{code}</a>
            </>
          ))}
        </p>
      )}
    </>
  );
}

/** Except `X-Request-Id`, which every response has. */
function HeadersOf({ answer }: { readonly answer: ApiAnswer }) {
  const names = Object.keys(answer.headers ?? {}).filter((name) => name !== "X-Request-Id");
  if (names.length === 0) return null;
  return (
    <span class="small">
      {" "}
      Headers:{" "}
      {names.map((name, at) => (
        <>
          {at === 0 ? "" : ", "}
          <code>{name}</code>
        </>
      ))}
    </span>
  );
}

/** The codes of an error response. */
function codesOf(answer: ApiAnswer | Ref): readonly string[] {
  if ("$ref" in answer) return [nameOf(answer)];
  return isError(answer) ? [...answer.description.matchAll(/^- `(\w+)`/gm)].map(([, code = ""]) => code) : [];
}

function isError(answer: ApiAnswer): boolean {
  return answer.description.startsWith("- `");
}

export interface FieldsProps {
  readonly schema: ApiSchema;
  /** Which members to mark: required ones in requests, optional ones in responses. */
  readonly marks: "required" | "optional";
}

/** The members of a schema with type and bounds, or the type of a schema without members. */
export function Fields({ schema, marks }: FieldsProps) {
  const members = membersOf(schema, "");
  if (members.length === 0) {
    return (
      <p class="small">
        <Type schema={schema} /> <span class="quiet">{boundWords(schema)}</span>
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
            {member.description ?? ""} <span class="quiet">{sentence(boundWords(member))}</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** The type of a value. A schema's name is a link. */
export function Type({ schema }: { readonly schema: ApiSchema }) {
  const name = referredBy(schema);
  const words = typeWords(schema);
  if (name === null) return <span class="type">{words}</span>;
  const [before = "", after = ""] = words.split(name);
  return (
    <span class="type">
      {before}
      <a href={`#schema-${name}`}>{name}</a>
      {after}
    </span>
  );
}

function referredBy(schema: ApiSchema): string | null {
  if (schema.$ref !== undefined) return nameOf({ $ref: schema.$ref });
  const inner = [...(schema.anyOf ?? []), ...(schema.items === undefined ? [] : [schema.items])];
  return inner.map(referredBy).find((name) => name !== null) ?? null;
}

interface Member {
  readonly name: string;
  readonly member: ApiSchema;
  readonly isRequired: boolean;
}

/** Nested members follow their parent, with their full path. */
function membersOf(schema: ApiSchema, prefix: string): readonly Member[] {
  const inner =
    schema.properties ?? schema.items?.properties ?? schema.anyOf?.find((one) => one.properties)?.properties;
  const required = schema.required ?? schema.items?.required ?? [];
  return Object.entries(inner ?? {}).flatMap(([name, member]) => [
    { name: prefix + name, member, isRequired: required.includes(name) },
    ...membersOf(member, `${prefix}${name}${member.items === undefined ? "" : "[]"}.`),
  ]);
}

function sentence(words: string): string {
  return words === "" ? "" : `${words.slice(0, 1).toUpperCase()}${words.slice(1)}.`;
}
