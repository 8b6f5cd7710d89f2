/** @jsxImportSource hono/jsx */
import { raw } from "hono/html";
import { ENTER_KEY, firstActionCall, codeSamples, type SampleRequest } from "../../api/code-samples.ts";
import { ERROR_MEANING, HTTP_STATUS } from "../../api/errors.ts";
import { ABOUT_API, INTERFACE_VERSION } from "../../http/openapi.ts";
import { rolesThatMay } from "../../core/roles.ts";
import { Copied } from "../../ui/controls.tsx";
import { Table } from "../../ui/parts.tsx";
import {
  type ApiEntry,
  type ApiGroup,
  type ApiReference,
  type ApiSuccess,
  type ApiSchema,
  dereferenced,
} from "./api-reference.ts";
import {
  API_OBJECTS_PATH,
  ApiFields,
  ApiNotes,
  ApiParameters,
  apiText,
  ApiType,
  DocsSubheading,
} from "./api-fields.tsx";
import { docsPath } from "./guides.ts";
import { codeBlock } from "./highlight.ts";

/** "createAction" as "Create action". */
export function operationTitle(id: string): string {
  const words = id.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The first headings of the index. */
export const API_BEGINNING = ["Base URL", "Authentication", "First request", "Every request"] as const;

/** All operations by subject, and what all of them share. */
export function ApiIndex(props: { readonly baseUrl: string; readonly groups: readonly ApiGroup[] }) {
  const { baseUrl, groups } = props;
  const [base, authentication, first, every] = API_BEGINNING;
  return (
    <>
      <h1>API reference</h1>
      <DocsSubheading id={anchorName(base)}>{base}</DocsSubheading>
      {raw(codeBlock(baseUrl, ""))}
      <DocsSubheading id={anchorName(authentication)}>{authentication}</DocsSubheading>
      <p>
        Every path under <code>/v1</code> needs an API key, as <code>Authorization: Bearer og_…</code>. The first start
        prints two, and an owner creates more on the page <a href="/keys">Keys</a>. Put yours into a variable, in bash
        or zsh:
      </p>
      {raw(codeBlock(ENTER_KEY, "sh"))}
      <DocsSubheading id={anchorName(first)}>{first}</DocsSubheading>
      <p>
        It creates an action and answers with its result; the service calls its own health check, which changes nothing.
      </p>
      {raw(codeBlock(firstActionCall(baseUrl), "sh"))}
      <DocsSubheading id={anchorName(every)}>{every}</DocsSubheading>
      {ABOUT_API.split("\n\n").map((paragraph) => (
        <p>{apiText(paragraph)}</p>
      ))}
      <p>
        Version {INTERFACE_VERSION}. For tools: <a href="/openapi.json">openapi.json</a>.{" "}
        <a href={API_OBJECTS_PATH}>All objects</a> and <a href="/docs/errors">errors</a> have pages of their own.
      </p>
      {groups.map(({ title, entries }) => (
        <>
          <DocsSubheading id={anchorName(title)}>{title}</DocsSubheading>
          <ul class="operations stack">
            {entries.map((entry) => (
              <li>
                <a href={docsPath(`api/${entry.operationId}`)}>
                  <Call entry={entry} />
                </a>
                <span class="quiet">{entry.summary}</span>
              </li>
            ))}
          </ul>
        </>
      ))}
    </>
  );
}

export function anchorName(title: string): string {
  return title.toLowerCase().replaceAll(" ", "-");
}

function Call({ entry: { method, path } }: { readonly entry: Pick<ApiEntry, "method" | "path"> }) {
  return (
    <code>
      <b class={`verb verb-${method.toLowerCase()}`}>{method}</b> {path}
    </code>
  );
}

interface ApiOperationProps {
  readonly entry: ApiEntry;
  readonly reference: ApiReference;
}

/** One operation: parameters, body, responses and errors on the left, a request and its response on the right. */
export function OperationReference({ entry, reference }: ApiOperationProps) {
  const { method, path, summary, description, notes = [], permission, parameters, body, successes, errors } = entry;
  // All successes of an operation that have a body share it.
  const contents = successes.flatMap(({ content }) => content);
  const answer = contents.find(({ mediaType }) => mediaType === "application/json")?.schema ?? null;
  // An example of each success. Shows equal ones once.
  const responses = Map.groupBy(
    successes.flatMap((success) => successExamples(success, reference)),
    ({ text }) => text,
  );
  return (
    <div class="operation">
      <div class="operation-text">
        <h1>{summary}</h1>
        <p class="operation-call">
          <Copied text={`${reference.baseUrl}${path}`} what="address">
            <Call entry={{ method, path }} />
          </Copied>
        </p>
        <p>{apiText(description)}</p>
        <ApiNotes notes={notes} />
        <p class="quiet">
          {permission === null ? "No API key required." : `Roles of keys: ${rolesThatMay(permission).join(", ")}.`}
        </p>
        {parameters.length === 0 ? null : (
          <>
            <DocsSubheading id="parameters">Parameters</DocsSubheading>
            <ApiParameters parameters={parameters} schemas={reference.schemas} />
          </>
        )}
        {body === null ? null : (
          <>
            <DocsSubheading id="body">Body{body.isRequired ? "" : ", optional"}</DocsSubheading>
            <ApiFields schema={body.schema} schemas={reference.schemas} of="request" />
          </>
        )}
        <DocsSubheading id="responses">Responses</DocsSubheading>
        {successes.map((success) => (
          <Success {...success} />
        ))}
        {answer === null ? null : (
          <details>
            <summary>Fields of the response</summary>
            <ApiFields schema={answer} schemas={reference.schemas} of="response" />
          </details>
        )}
        {errors.length === 0 ? null : (
          <>
            <DocsSubheading id="errors">Errors</DocsSubheading>
            <Table
              caption="Errors by status"
              heads={["Status", "Error"]}
              rows={errors.map((code) => [
                HTTP_STATUS[code],
                <>
                  <a href={`/docs/errors#${code}`}>
                    <code>{code}</code>
                  </a>{" "}
                  {ERROR_MEANING[code]}
                </>,
              ])}
            />
          </>
        )}
      </div>
      <div class="operation-code">
        {/* One request in three languages. Radio buttons choose, so that it works without script. */}
        <fieldset class="languages">
          <legend>Request</legend>
          {requestExamples(entry, reference).map(({ label, language, text }, at) => (
            <>
              <label class="tab small">
                <input type="radio" name="language" value={language} checked={at === 0} />
                {label}
              </label>
              {raw(codeBlock(text, language, label))}
            </>
          ))}
        </fieldset>
        {[...responses].map(([text, same]) => {
          const labels = same.map(({ label }) => label).join(" or ");
          return raw(codeBlock(text, same[0]?.language ?? "", `Response ${labels}`));
        })}
      </div>
    </div>
  );
}

function Success({ status, description, content, headers }: ApiSuccess) {
  return (
    <p>
      <b>{status}</b> {apiText(description)}{" "}
      {content.map(({ mediaType, schema }, at) => (
        <>
          {at === 0 ? null : " or "}
          {mediaType === "application/json" ? <ApiType schema={schema} /> : <code>{mediaType}</code>}
        </>
      ))}
      {headers.length === 0 ? null : (
        <span class="quiet">
          {" Headers: "}
          {headers.join(", ")}.
        </span>
      )}
    </p>
  );
}

/** An example for each media type except HTML. Labels contain the status, and the media type if there are several. */
function successExamples({ status, content }: ApiSuccess, reference: ApiReference) {
  if (content.length === 0) return [{ label: status, language: "", text: `HTTP/1.1 ${status}` }];
  const forPrograms = content.filter(({ mediaType }) => mediaType !== "text/html");
  return forPrograms.map(({ mediaType, schema }) => {
    const value = schemaExample(schema, reference.schemas);
    const isJson = mediaType === "application/json";
    return {
      label: forPrograms.length === 1 ? status : `${status}, ${mediaType}`,
      language: isJson ? "json" : "",
      text: typeof value === "string" && !isJson ? value : JSON.stringify(value, null, 2),
    };
  });
}

interface ApiObjectsProps {
  readonly reference: ApiReference;
  readonly names: readonly string[];
}

export function ApiObjects({ reference, names }: ApiObjectsProps) {
  return (
    <>
      <h1>Objects</h1>
      <p>What the operations of the API answer with, by name.</p>
      {names.map((name) => {
        const schema = reference.schemas[name] ?? {};
        return (
          <>
            <DocsSubheading id={name}>{name}</DocsSubheading>
            {schema.description === undefined ? null : <p>{apiText(schema.description)}</p>}
            <ApiFields schema={schema} schemas={reference.schemas} of="response" />
          </>
        );
      })}
    </>
  );
}

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
function schemaExample(schema: ApiSchema, schemas: ApiReference["schemas"]): unknown {
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
