/** The parts of our OpenAPI document (`api/openapi.ts`) that the API reference uses. */
export interface ApiDocument {
  readonly info: { readonly description: string; readonly version: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, ApiSchema>>;
    readonly parameters: Readonly<Record<string, ApiParameter>>;
  };
}

export interface DocumentedOperation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly parameters: readonly (ApiParameter | Ref)[];
  readonly requestBody?: { readonly required: boolean; readonly content: ApiContent };
  readonly responses: Readonly<Record<string, ApiAnswer | Ref>>;
}

export interface ApiParameter {
  readonly name: string;
  readonly in: string;
  readonly required: boolean;
  readonly description?: string;
  readonly schema: ApiSchema;
}

export interface ApiAnswer {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Ref>>;
  readonly content?: ApiContent;
}

type ApiContent = Readonly<Record<string, { readonly schema: ApiSchema }>>;

export interface Ref {
  readonly $ref: string;
}

/** The JSON Schema keywords that our schemas use. */
export interface ApiSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, ApiSchema>>;
  readonly required?: readonly string[];
  readonly items?: ApiSchema;
  readonly anyOf?: readonly ApiSchema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly format?: string;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
}

/** The last part of a reference: the name of what it refers to. */
export function nameOf({ $ref }: Ref): string {
  return $ref.slice($ref.lastIndexOf("/") + 1);
}

/** The type of a schema as text: "string or null", "list of Action". */
export function typeWords(schema: ApiSchema): string {
  if (schema.$ref !== undefined) return nameOf({ $ref: schema.$ref });
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map(typeWords))].join(" or ");
  if (schema.items !== undefined) return `list of ${typeWords(schema.items)}`;
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  const type = [schema.type ?? "any value"].flat().join(" or ");
  return schema.format === undefined ? type : `${type} (${schema.format})`;
}

/** The bounds of a schema as text; empty if there are none. */
export function boundWords(schema: ApiSchema): string {
  const { minimum, maximum, minLength, maxLength, enum: values, items, default: usual } = schema;
  const one = values ?? items?.enum;
  const words = [
    one === undefined ? "" : `one of ${one.join(", ")}`,
    rangeWords(minimum, maximum, ""),
    rangeWords(minLength, maxLength, " characters"),
    usual === undefined ? "" : `default ${JSON.stringify(usual)}`,
  ];
  return words.filter((word) => word !== "").join("; ");
}

function rangeWords(least: number | undefined, most: number | undefined, unit: string): string {
  if (least !== undefined && most !== undefined) return `${least} to ${most}${unit}`;
  if (most !== undefined) return `at most ${most}${unit}`;
  return least === undefined || least === 0 ? "" : `at least ${least}${unit}`;
}

/** An example value with the required members only. */
export function exampleOf(schema: ApiSchema, document: ApiDocument): unknown {
  if (schema.$ref !== undefined) {
    const named = document.components.schemas[nameOf({ $ref: schema.$ref })];
    return named === undefined ? null : exampleOf(named, document);
  }
  if (schema.properties === undefined) return schema.examples?.[0] ?? schema.const ?? schema.enum?.[0] ?? null;
  const needed = Object.entries(schema.properties).filter(([name]) => schema.required?.includes(name) ?? false);
  return Object.fromEntries(needed.map(([name, member]) => [name, exampleOf(member, document)]));
}
