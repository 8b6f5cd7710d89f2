import { HTTP_STATUS } from "../../api/errors.ts";
import { type ApiOperation, openApiJson } from "../../http/openapi.ts";
import type { ResponseInfo } from "../../http/operation.ts";

/** The API as the reference shows it. */
export interface ApiReference {
  readonly baseUrl: string;
  readonly entries: readonly ApiEntry[];
  /** The named schemas. */
  readonly schemas: Named<ApiSchema>;
}

type Named<T> = Readonly<Record<string, T>>;

export interface ApiParameter {
  readonly name: string;
  readonly description: string;
  readonly in: string;
  readonly required: boolean;
  readonly schema: ApiSchema;
}

export interface ApiSchema
  extends
    Partial<Readonly<Record<"$ref", string>>>,
    Readonly<Partial<Record<"minimum" | "maximum" | "minLength" | "maxLength", number>>> {
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

/** An operation as in the document, with its references resolved. */
export interface ApiEntry extends Omit<ApiOperation, "body"> {
  /** Without X-Request-Id, which every request can have. */
  readonly parameters: readonly ApiParameter[];
  readonly body: { readonly schema: ApiSchema; readonly isRequired: boolean } | null;
  readonly successes: readonly ApiSuccess[];
}

type Content = Named<{ readonly schema: ApiSchema }>;

/** The parts of the document that we read. */
interface ApiDocument {
  readonly paths: Named<
    Named<{
      readonly parameters: readonly (ApiParameter & { readonly $ref?: string })[];
      readonly requestBody?: { readonly required: boolean; readonly content: Content };
      readonly responses: Named<{ readonly headers: Named<unknown>; readonly content?: Content }>;
    }>
  >;
  readonly components: { readonly parameters: Named<ApiParameter>; readonly schemas: Named<ApiSchema> };
}

/** The contents of /openapi.json, and which roles each operation needs. */
export function apiReference(operations: readonly ApiOperation[], baseUrl: string): ApiReference {
  // Safe: as OpenAPI 3.1 has it.
  const { paths, components } = JSON.parse(openApiJson(operations, baseUrl)) as ApiDocument;
  const { schemas } = components;
  const entries = operations.map((operation): ApiEntry => {
    const described = paths[operation.path]?.[operation.method.toLowerCase()];
    const successOf = ([status, { description }]: readonly [string, ResponseInfo]): ApiSuccess => {
      const { headers = {}, content = {} } = described?.responses[status] ?? {};
      // All successes of an operation share a schema. The description names the object that belongs to the status.
      const isNamed = ({ $ref = "" }: ApiSchema) => description.includes(`\`${schemaName($ref)}\``);
      return {
        status,
        description,
        headers: Object.keys(headers).filter((name) => name !== "X-Request-Id"),
        content: Object.entries(content).map(([mediaType, { schema }]) => {
          return { mediaType, schema: dereferenced(schema, schemas).anyOf?.find(isNamed) ?? schema };
        }),
      };
    };
    const { content, required: isRequired = false } = described?.requestBody ?? {};
    const body = dereferenced(content?.["application/json"]?.schema ?? {}, schemas);
    return {
      ...operation,
      parameters: (described?.parameters ?? [])
        .map((one) => components.parameters[schemaName(one.$ref ?? "")] ?? one)
        .filter(({ name }) => name !== "X-Request-Id"),
      // A body that must be empty is not worth showing.
      body: Object.keys(body.properties ?? {}).length === 0 ? null : { schema: body, isRequired },
      successes: Object.entries(operation.answers).map(successOf),
      errors: [...new Set([...operation.errors, "method_not_allowed" as const])].toSorted(
        (one, other) => HTTP_STATUS[one] - HTTP_STATUS[other],
      ),
    };
  });
  return { baseUrl, entries, schemas };
}

export function dereferenced(schema: ApiSchema, schemas: Named<ApiSchema>): ApiSchema {
  return schema.$ref === undefined ? schema : (schemas[schemaName(schema.$ref)] ?? schema);
}

/** Splits the document's description into its paragraphs and the list after them. */
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

/** An example of a value with only the required members. */
export function exampleOf(schema: ApiSchema, schemas: Named<ApiSchema>): unknown {
  const own = dereferenced(schema, schemas);
  const { properties, required = [], examples, const: only, enum: values, items, anyOf } = own;
  if (properties !== undefined) {
    const shown = Object.entries(properties).filter(([name]) => required.includes(name));
    return Object.fromEntries(shown.map(([name, member]) => [name, exampleOf(member, schemas)]));
  }
  if (examples !== undefined) return examples[0];
  if (only !== undefined) return only;
  if (values !== undefined) return values[0];
  if (items !== undefined) return [exampleOf(items, schemas)];
  const [first] = anyOf ?? [];
  return first === undefined ? null : exampleOf(first, schemas);
}

/** The type of a value, like "list of Action". */
export function typeText({ $ref, anyOf, items, const: only, type = "any value", format }: ApiSchema): string {
  if ($ref !== undefined) return schemaName($ref);
  if (anyOf !== undefined) return [...new Set(anyOf.map(typeText))].join(" or ");
  if (items !== undefined) return `list of ${typeText(items)}`;
  if (only !== undefined) return JSON.stringify(only);
  return [type].flat().join(" or ") + (format === undefined ? "" : ` (${format})`);
}

/** The bounds of a value as a sentence; empty without bounds. */
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

/** The schema of a nullable value when it is not null. */
function withoutNull(schema: ApiSchema): ApiSchema {
  const [given, none, ...more] = schema.anyOf ?? [];
  return given !== undefined && none?.type === "null" && more.length === 0 ? { ...schema, ...given } : schema;
}

function rangeText(least: number | undefined, most: number | undefined, unit: string): string {
  if (least !== undefined && most !== undefined) return `${least} to ${most}${unit}`;
  if (most !== undefined) return `at most ${most}${unit}`;
  return least === undefined || least === 0 ? "" : `at least ${least}${unit}`;
}

/** The groups of the reference, by how paths begin. */
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

/** Groups operations by subject. Each belongs to the first group that its path fits. */
export function groupsOf(entries: readonly ApiEntry[]): readonly ApiGroup[] {
  const titleOf = (entry: ApiEntry) =>
    GROUPS.find(([, ...starts]) => starts.some((start) => entry.path.startsWith(start)))?.[0];
  return GROUPS.map(([title]) => ({ title, entries: entries.filter((entry) => titleOf(entry) === title) })).filter(
    (group) => group.entries.length > 0,
  );
}
