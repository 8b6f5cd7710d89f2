/** The parts of an OpenAPI 3.1 document that the reference shows. */
export interface OpenApiDocument {
  readonly info: { readonly description: string; readonly version: string };
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Named<Named<OpenApiOperation>>;
  readonly components: {
    readonly schemas: Named<ApiSchema>;
    readonly parameters: Named<ApiParameter>;
    readonly responses: Named<ApiResponse>;
  };
}

type Named<T> = Readonly<Record<string, T>>;

type Ref = Readonly<Record<"$ref", string>>;

interface OpenApiOperation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  /** Left out: it needs an API key. */
  readonly security?: readonly unknown[];
  readonly parameters: readonly (ApiParameter | Ref)[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Named<ApiResponse | Ref>;
}

export interface ApiParameter {
  readonly name: string;
  readonly in: string;
  readonly required: boolean;
  readonly description?: string;
  readonly schema: ApiSchema;
}

interface ApiResponse {
  readonly description: string;
  readonly headers?: Named<unknown>;
  readonly content?: Content;
}

type Content = Named<{ readonly schema: ApiSchema }>;

export interface ApiSchema
  extends Partial<Ref>, Readonly<Partial<Record<"minimum" | "maximum" | "minLength" | "maxLength", number>>> {
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly properties?: Named<ApiSchema>;
  readonly required?: readonly string[];
  readonly items?: ApiSchema;
  readonly anyOf?: readonly ApiSchema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
}

export interface ApiSuccess {
  readonly status: string;
  readonly description: string;
  /** Without X-Request-Id, which every response has. */
  readonly headers: readonly string[];
  /** Its media types; the first one is the default. */
  readonly content: readonly { readonly mediaType: string; readonly schema: ApiSchema }[];
}

interface ApiError {
  readonly status: string;
  readonly code: string;
  /** When it comes. */
  readonly meaning: string;
}

/** An operation with its references in place. */
export interface ApiEntry {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly summary: string;
  readonly description: string;
  readonly needsKey: boolean;
  /** Without X-Request-Id, which every request can have. */
  readonly parameters: readonly ApiParameter[];
  readonly body: { readonly schema: ApiSchema; readonly isRequired: boolean } | null;
  readonly successes: readonly ApiSuccess[];
  readonly errors: readonly ApiError[];
}

export function entriesOf(document: OpenApiDocument): readonly ApiEntry[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => entryOf(document, path, method.toUpperCase(), operation)),
  );
}

function entryOf(document: OpenApiDocument, path: string, method: string, operation: OpenApiOperation): ApiEntry {
  const { operationId: id, summary, description, security, requestBody } = operation;
  const parameters = operation.parameters
    .flatMap((one) => ("$ref" in one ? (document.components.parameters[schemaName(one.$ref)] ?? []) : one))
    .filter(({ name }) => name !== "X-Request-Id");
  const sent = requestBody?.content["application/json"]?.schema;
  // A body that can only be empty is nothing to tell.
  const schema = sent?.properties !== undefined && Object.keys(sent.properties).length === 0 ? undefined : sent;
  const responses = Object.entries(operation.responses);
  return {
    id,
    method,
    path,
    summary,
    description,
    needsKey: security === undefined,
    parameters,
    body:
      schema === undefined
        ? null
        : { schema: dereferenced(schema, document), isRequired: requestBody?.required === true },
    successes: responses.flatMap(([status, response]) =>
      "$ref" in response || errorsOf(document, status, response).length > 0
        ? []
        : successOf(document, status, response),
    ),
    errors: responses.flatMap(([status, response]) => errorsOf(document, status, response)),
  };
}

function successOf(
  document: OpenApiDocument,
  status: string,
  { description, headers = {}, content = {} }: ApiResponse,
): ApiSuccess {
  // All successes of an operation have one schema; of its objects the description names the one that comes with the status.
  const isNamed = ({ $ref = "" }: ApiSchema) => description.includes(`\`${schemaName($ref)}\``);
  return {
    status,
    description,
    headers: Object.keys(headers).filter((name) => name !== "X-Request-Id"),
    content: Object.entries(content).map(([mediaType, { schema }]) => ({
      mediaType,
      schema: dereferenced(schema, document).anyOf?.find(isNamed) ?? schema,
    })),
  };
}

/** The errors of a response: one that is shared, with its name, or those that its description lists. */
function errorsOf({ components }: OpenApiDocument, status: string, response: ApiResponse | Ref): readonly ApiError[] {
  if ("$ref" in response) {
    const code = schemaName(response.$ref);
    return [{ status, code, meaning: components.responses[code]?.description ?? "" }];
  }
  const listed = response.description.matchAll(/^- `(\w+)`: (.*)$/gm);
  return [...listed].map(([, code = "", meaning = ""]) => ({ status, code, meaning }));
}

export function dereferenced(schema: ApiSchema, document: Pick<OpenApiDocument, "components">): ApiSchema {
  return schema.$ref === undefined ? schema : (document.components.schemas[schemaName(schema.$ref)] ?? schema);
}

/** A description of the document: its paragraphs, and what it lists after them. */
export function partsOf(description: string): {
  readonly paragraphs: readonly string[];
  readonly notes: readonly string[];
} {
  const parts = description.split("\n\n");
  const isList = (part: string) => part.startsWith(NOTE_MARK);
  return {
    paragraphs: parts.filter((part) => !isList(part)),
    notes: parts.filter(isList).flatMap((part) => part.slice(NOTE_MARK.length).split(`\n${NOTE_MARK}`)),
  };
}

const NOTE_MARK = "- ";

export function schemaName(ref: string): string {
  return ref.slice(ref.lastIndexOf("/") + 1);
}

/** An example of a value, with the required members only. */
export function exampleOf(schema: ApiSchema, document: OpenApiDocument): unknown {
  const own = dereferenced(schema, document);
  const { properties, required = [], examples, const: only, enum: values, items, anyOf } = own;
  if (properties !== undefined) {
    const shown = Object.entries(properties).filter(([name]) => required.includes(name));
    return Object.fromEntries(shown.map(([name, member]) => [name, exampleOf(member, document)]));
  }
  if (examples !== undefined) return examples[0];
  if (only !== undefined) return only;
  if (values !== undefined) return values[0];
  if (items !== undefined) return [exampleOf(items, document)];
  const [first] = anyOf ?? [];
  return first === undefined ? null : exampleOf(first, document);
}

/** The type of a value, like "list of Action". */
export function typeText({ $ref, anyOf, items, const: only, type = "any value", format }: ApiSchema): string {
  if ($ref !== undefined) return schemaName($ref);
  if (anyOf !== undefined) return [...new Set(anyOf.map(typeText))].join(" or ");
  if (items !== undefined) return `list of ${typeText(items)}`;
  if (only !== undefined) return JSON.stringify(only);
  return [type].flat().join(" or ") + (format === undefined ? "" : ` (${format})`);
}

/** The bounds of a value as a sentence; empty if there are none. */
export function boundsText(schema: ApiSchema): string {
  const { minimum, maximum, minLength, maxLength, items, default: usual, ...own } = withoutNull(schema);
  const values = own.enum ?? items?.enum;
  const bounds = [
    values === undefined ? "" : `one of ${values.join(", ")}`,
    rangeText(minimum, maximum, ""),
    rangeText(minLength, maxLength, " characters"),
    usual === undefined ? "" : `default ${JSON.stringify(usual)}`,
  ].filter((text) => text !== "");
  const text = bounds.join("; ");
  return text === "" ? "" : `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** Of a value that may be null: what it is otherwise. */
function withoutNull(schema: ApiSchema): ApiSchema {
  const [given, none, ...more] = schema.anyOf ?? [];
  return given !== undefined && none?.type === "null" && more.length === 0 ? { ...schema, ...given } : schema;
}

function rangeText(least: number | undefined, most: number | undefined, unit: string): string {
  if (least !== undefined && most !== undefined) return `${least} to ${most}${unit}`;
  if (most !== undefined) return `at most ${most}${unit}`;
  return least === undefined || least === 0 ? "" : `at least ${least}${unit}`;
}

/** The groups of the reference, by the beginnings of paths. */
const GROUPS: readonly (readonly [title: string, ...paths: readonly string[]])[] = [
  ["Actions", "/v1/actions", "/v1/approvals", "/r/"],
  ["Bulk jobs", "/v1/bulk"],
  ["Events and figures", "/v1/events", "/v1/notifications", "/v1/overview"],
  ["Keys and account", "/v1/keys", "/v1/account", "/v1/first-steps", "/v1/audit", "/auth/"],
  ["People", "/v1/people", "/v1/invitations"],
  ["Hosts and pauses", "/v1/hosts", "/v1/defaults", "/v1/pauses"],
  ["Rules and grants", "/v1/rules", "/v1/grants"],
  ["Credentials", "/v1/credentials", "/v1/credential-requests"],
  ["OAuth clients", "/v1/oauth-clients"],
  ["Channels", "/v1/channels"],
  ["Signatures and callbacks", "/v1/signing-", "/v1/callback-hosts"],
  ["Server", "/v1/server"],
  ["Service", "/"],
];

export interface ApiGroup {
  readonly title: string;
  readonly entries: readonly ApiEntry[];
}

/** The operations by what they are about; each is in the first group that its path fits. */
export function groupsOf(entries: readonly ApiEntry[]): readonly ApiGroup[] {
  const titleOf = (entry: ApiEntry) =>
    GROUPS.find(([, ...starts]) => starts.some((start) => entry.path.startsWith(start)))?.[0];
  return GROUPS.map(([title]) => ({ title, entries: entries.filter((entry) => titleOf(entry) === title) })).filter(
    (group) => group.entries.length > 0,
  );
}
