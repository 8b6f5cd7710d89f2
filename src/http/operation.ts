import { Elysia } from "elysia";
import Type, { type Static, type TObject, type TSchema } from "typebox";
import { authorize, type Caller, type Permission } from "../core/roles.ts";
import { DomainError, type ErrorCode } from "../core/domain-error.ts";
import type { AnswerHeader, RequestHeader } from "../api/headers.ts";
import { bodyCheck, compile, queryCheck } from "../api/check.ts";
import { closedObject } from "../api/schema-helpers.ts";
import type { ParsedJson } from "../core/json.ts";
import { parseFields, readJson, readOptionalJson } from "./body.ts";
import { contextCaller, contextFor, type RequestContext } from "./request.ts";
import { LINK_NOT_FOUND } from "./errors.ts";
import type { PageKind } from "./response.ts";

/** For routes outside the API description, or without a key. Handlers get the `context` of their request. */
export function createRoutes() {
  return new Elysia(SETTINGS).derive(({ request, route }) => ({ context: noteRoute(request, route) }));
}

/** For routes that answer with pages, also in case of errors. */
export function createPageRoutes(kind: PageKind) {
  return createRoutes().derive(({ context }) => {
    context.page = kind;
    return {};
  });
}

/** For routes of the API. Handlers also get the authenticated `caller`. */
export function createApiRoutes() {
  return createRoutes().resolve(({ context }) => ({ caller: contextCaller(context) }));
}

/** `normalize` would drop unknown fields instead of refusing them. */
const SETTINGS = { normalize: false } as const;

/** Notes which route answers, for the log and the metrics. */
function noteRoute(request: Request, route: string): RequestContext {
  const context = contextFor(request);
  context.route ??= routePattern(route);
  return context;
}

/** A route's path as OpenAPI and the log write it: `{id}` for `:id`. */
export function routePattern(route: string): string {
  return route.includes(":") ? route.replaceAll(/:(\w+)/g, "{$1}") : route;
}

/** A further media type of a response's body. */
export interface AlternativeBody {
  readonly mediaType: string;
  readonly schema: TSchema;
}

/** A successful response of an operation. */
export interface ResponseInfo {
  readonly description: string;
  /** Null: no body. */
  readonly schema: TSchema | null;
  /** Which schema of the union it is, if `schema` is one for all successes of the operation. */
  readonly only?: TSchema;
  /** Default: application/json. */
  readonly mediaType?: string;
  /** A second media type by `Accept`, also for errors. */
  readonly alsoAs?: AlternativeBody;
  /** A second media type by `Accept` or a parameter; errors stay JSON. */
  readonly onRequestAs?: AlternativeBody;
  readonly headers?: readonly AnswerHeader[];
}

/** What the API description says about an operation besides method and path. */
export interface OperationInfo {
  readonly operationId: string;
  /** The permission that the caller's role needs; null: no API key is needed. */
  readonly permission: Permission | null;
  readonly tag: "Actions" | "Auth" | "System";
  readonly summary: string;
  /** What it does, in a sentence or two. */
  readonly description: string;
  /** What else a caller needs to know beyond the schemas, one rule each. */
  readonly notes?: readonly string[];
  readonly params?: { readonly schema: TObject };
  readonly query?: TObject;
  /** Request headers that it reads, other than X-Request-Id. */
  readonly headers?: readonly RequestHeader[];
  readonly body?: { readonly schema: TObject; readonly isRequired: boolean };
  /** Successful responses, by status. */
  readonly answers: Readonly<Record<number, ResponseInfo>>;
  readonly errors: readonly ErrorCode[];
  /** Needs METRICS_TOKEN if that is set. */
  readonly takesMetricsToken?: true;
}

/** Errors of every /v1 request. */
const API_ERRORS = [
  "unauthorized",
  "rate_limited",
  "forbidden",
  "invalid_query",
  "internal_error",
  "unavailable",
] as const;

/** Errors of a request with a body. */
export const BODY_ERRORS = [
  "invalid_content_type",
  "payload_too_large",
  "invalid_request",
  "validation_error",
] as const;

interface OperationSpec<Params, Query extends TObject, Accepted> extends Omit<OperationInfo, "errors" | "tag"> {
  /** Default: Auth. */
  readonly tag?: OperationInfo["tag"];
  /** Errors that don't follow from permission, body and path; without a permission, all errors. */
  readonly errors?: readonly ErrorCode[];
  readonly params?: PathParams<Params>;
  readonly query?: Query;
  readonly body?: RequestBody<Accepted>;
  /** Throws for callers who have the permission, but still may not call this. */
  readonly requires?: (caller: Caller) => Promise<void>;
}

/** The members of Elysia's context that the hook of an operation reads and sets. */
interface Call {
  readonly request: Request;
  readonly route: string;
  readonly params: unknown;
  query: unknown;
  body: unknown;
}

/**
 * What Elysia needs for an operation: a hook that checks requests, in an order that is part of the API, and `detail` for the
 * API description. With `permission: null`, the handler checks query and body itself.
 */
export function operation<Params = object, Query extends TObject = TObject, Accepted = unknown>(
  spec: OperationSpec<Params, Query, Accepted>,
) {
  const { permission, requires, params, body } = spec;
  const readQuery = queryCheck(spec.query ?? NO_QUERY);
  const detail: OperationInfo = { tag: "Auth", ...spec, errors: operationErrors(spec) };
  return {
    // Turns off Elysia's parser, which has no bounds and coerces values.
    parse: "none" as const,
    // Elysia reads the source of its hooks. If a hook passed `call` on whole, all headers and cookies would be parsed; a method
    // (`transform(call) {`) is misread if it is on one line, as in the binary.
    transform: async (call: Call): Promise<void> => {
      const context = noteRoute(call.request, call.route);
      if (permission === null) {
        params?.accept(call.params);
        return;
      }
      const caller = contextCaller(context);
      authorize(caller, permission);
      await requires?.(caller);
      // Elysia would turn `dedupe=a,b` into a list and `{"x":1}` into an object.
      call.query = readQuery(context.search);
      const json = body && (await (body.isRequired ? readJson : readOptionalJson)(context, parseFields));
      params?.accept(call.params);
      call.body = body?.accept(json ?? null);
    },
    params: checked<Params>(),
    query: checked<Static<Query>>(),
    body: checked<Accepted>(),
    detail,
  };
}

function operationErrors({ permission, body, params, errors = [] }: OperationSpec<unknown, TObject, unknown>) {
  if (permission === null) return errors;
  return [
    ...API_ERRORS,
    ...(body === undefined ? [] : BODY_ERRORS),
    ...(body?.isRequired === true ? (["missing_body"] as const) : []),
    ...(params === undefined ? [] : (["not_found"] as const)),
    ...errors,
  ];
}

/** The JSON body of an operation. */
interface RequestBody<Accepted> {
  readonly schema: TObject;
  readonly isRequired: boolean;
  /** Null: nothing was sent. Throws `validation_error` with every issue. */
  accept(json: ParsedJson | null): Accepted;
}

export function jsonBody<Schema extends TObject>(schema: Schema): RequestBody<Static<Schema>> {
  const accept = bodyCheck(schema);
  return { schema, isRequired: true, accept: (json) => accept(json?.value) };
}

/** A body that may be left out, which then counts as an empty object. */
export function optionalBody<Schema extends TObject>(schema: Schema): RequestBody<Static<Schema>> {
  const accept = bodyCheck(schema);
  return { schema, isRequired: false, accept: (json) => accept(json === null ? {} : json.value) };
}

/** A body that the handler checks together with headers, so that an error lists the issues of both. */
export function uncheckedBody(schema: TObject): RequestBody<ParsedJson> {
  return {
    schema,
    isRequired: true,
    accept(json) {
      if (json === null) throw new DomainError("missing_body", "Send a JSON body.");
      return json;
    },
  };
}

/** The part of Standard Schema that Elysia needs (https://standardschema.dev). Our checks throw; `onError` answers. */
interface StandardSchema<Value> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: "outgate";
    readonly validate: (value: unknown) => { readonly value: Value };
    readonly types?: { readonly input: unknown; readonly output: Value };
  };
}

function standardSchema<Value>(accept: (value: unknown) => Value): StandardSchema<Value> {
  return { "~standard": { version: 1, vendor: "outgate", validate: (value) => ({ value: accept(value) }) } };
}

/** Gives handlers the type of what `transform` has checked. */
function checked<Value>(): StandardSchema<Value> {
  // Safe: `transform` has put a value of this type there.
  return standardSchema((value) => value as Value);
}

/** The query of routes without parameters. */
export const NO_QUERY = closedObject({});

/** The parameters in the path of a route. */
interface PathParams<Params> extends StandardSchema<Params> {
  readonly schema: TObject;
  accept(params: unknown): Params;
}

/** A malformed parameter gets the same 404 as an id that doesn't exist. */
export function pathParams<Schema extends TObject>(schema: Schema, message: string): PathParams<Static<Schema>> {
  const compiled = compile<Schema>(schema);
  const accept = (value: unknown): Static<Schema> => {
    if (compiled.accepts(value)) return value;
    throw new DomainError("not_found", message);
  };
  return { ...standardSchema(accept), schema, accept };
}

/** The path of a link that is itself a secret. */
export const TokenParams = pathParams(Type.Object({ token: Type.String() }), LINK_NOT_FOUND);
