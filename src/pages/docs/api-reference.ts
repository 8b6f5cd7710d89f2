import type { TSchema } from "typebox";
import { ErrorEnvelopeJson } from "../../api/error-schema.ts";
import { HTTP_STATUS } from "../../api/errors.ts";
import { type ApiOperation, responseBodies, createSchemaPrinter, describeParameters } from "../../http/openapi.ts";

/** The API as the reference shows it. */
export interface ApiReference {
  readonly baseUrl: string;
  readonly entries: readonly ApiEntry[];
  /** The named schemas. */
  readonly schemas: Named<ApiSchema>;
}

type Named<T> = Readonly<Record<string, T>>;

/** An operation, with its schemas as in the API description. */
export interface ApiEntry extends Omit<ApiOperation, "body"> {
  readonly parameters: readonly ApiParameter[];
  /** Null also for a body that must be empty, which is not worth showing. */
  readonly body: { readonly schema: ApiSchema; readonly isRequired: boolean } | null;
  readonly successes: readonly ApiSuccess[];
}

export interface ApiParameter {
  readonly name: string;
  readonly in: string;
  readonly required: boolean;
  readonly schema: ApiSchema;
}

export interface ApiSuccess {
  readonly status: string;
  readonly description: string;
  readonly headers: readonly string[];
  /** Its media types; the first one is the default. */
  readonly content: readonly { readonly mediaType: string; readonly schema: ApiSchema }[];
}

/** The keywords of JSON Schema that the reference shows. */
export interface ApiSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly properties?: Named<ApiSchema>;
  readonly required?: readonly string[];
  readonly items?: ApiSchema;
  readonly anyOf?: readonly ApiSchema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
}

export function apiReference(operations: readonly ApiOperation[], baseUrl: string): ApiReference {
  const { print, components } = createSchemaPrinter();
  // Safe: the printer writes JSON Schema.
  const printed = (schema: TSchema) => print(schema) as ApiSchema;
  const entries = operations.map((operation): ApiEntry => {
    const { body, answers, errors } = operation;
    return {
      ...operation,
      parameters: describeParameters(operation).map((parameter) => ({
        ...parameter,
        schema: printed(parameter.schema),
      })),
      body:
        body === undefined || Object.keys(body.schema.properties).length === 0
          ? null
          : { schema: printed(body.schema), isRequired: body.isRequired },
      successes: Object.entries(answers).map(([status, answer]): ApiSuccess => {
        const { description, headers = [], only } = answer;
        const content = responseBodies(answer).map(({ mediaType, schema }) => {
          const whole = printed(schema);
          return { mediaType, schema: only === undefined ? whole : printed(only) };
        });
        return { status, description, headers, content };
      }),
      errors: errors.toSorted((one, other) => HTTP_STATUS[one] - HTTP_STATUS[other]),
    };
  });
  // Also an object that operations answer with.
  print(ErrorEnvelopeJson);
  return { baseUrl, entries, schemas: components() as Named<ApiSchema> };
}

export function dereferenced(schema: ApiSchema, schemas: Named<ApiSchema>): ApiSchema {
  return schema.$ref === undefined ? schema : (schemas[schemaName(schema.$ref)] ?? schema);
}

export function schemaName(ref: string): string {
  return ref.slice(ref.lastIndexOf("/") + 1);
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
export function groupEntries(entries: readonly ApiEntry[]): readonly ApiGroup[] {
  const groupTitle = (entry: ApiEntry) =>
    GROUPS.find(([, ...starts]) => starts.some((start) => entry.path.startsWith(start)))?.[0];
  return GROUPS.map(([title]) => ({ title, entries: entries.filter((entry) => groupTitle(entry) === title) })).filter(
    (group) => group.entries.length > 0,
  );
}
