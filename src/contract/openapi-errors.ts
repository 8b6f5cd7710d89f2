import type { ErrorCode } from "../domain/errors.ts";
import { ERROR_MEANING, ErrorEnvelope, HTTP_STATUS } from "./error.ts";
import { type AnswerHeader, ERROR_HEADERS } from "./headers.ts";
import type { Json, SchemaPrinter } from "./openapi-schemas.ts";
import type { Form } from "./shapes.ts";

/** References to headers, by name; every answer has an id. */
export function headerRefs(names: readonly AnswerHeader[]): Json {
  const all: readonly AnswerHeader[] = ["X-Request-Id", ...names];
  return Object.fromEntries(all.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

/** The other form of a body, where there is one. */
export function contentOf(form: Form | undefined, schemas: SchemaPrinter): Json {
  return form === undefined ? {} : { [form.mediaType]: { schema: schemas.print(form.schema) } };
}

/**
 * An error that is alone in its status is a component; a status of several codes says which, and so does one that comes
 * in another form too.
 */
export function errorResponses(codes: readonly ErrorCode[], schemas: SchemaPrinter, alsoAs?: Form): Json {
  const byStatus = Map.groupBy(new Set(codes), (code) => HTTP_STATUS[code]);
  return Object.fromEntries(
    [...byStatus].map(([status, [first, ...more]]) => [
      status,
      first === undefined || more.length > 0 || alsoAs !== undefined
        ? errorResponse(byStatus.get(status) ?? [], schemas, alsoAs)
        : { $ref: `#/components/responses/${first}` },
    ]),
  );
}

/** The envelope under any of these codes. */
export function errorResponse(codes: readonly ErrorCode[], schemas: SchemaPrinter, alsoAs?: Form): Json {
  const chosen: readonly AnswerHeader[] = alsoAs === undefined ? [] : ["Vary"];
  const headers = new Set([...chosen, ...codes.flatMap((code) => ERROR_HEADERS[code] ?? [])]);
  const told = codes.map((code) =>
    codes.length === 1 && alsoAs === undefined ? ERROR_MEANING[code] : `- \`${code}\`: ${ERROR_MEANING[code]}`,
  );
  return {
    description: told.join("\n"),
    headers: headerRefs([...headers]),
    content: {
      "application/json": {
        schema: {
          allOf: [schemas.print(ErrorEnvelope), { type: "object", properties: { error: narrowed(codes) } }],
        },
        examples: Object.fromEntries(codes.map((code) => [code, { value: exampleOf(code) }])),
      },
      ...contentOf(alsoAs, schemas),
    },
  };
}

/** With their types, which generators of clients want of each schema. */
function narrowed(codes: readonly ErrorCode[]): Json {
  return { type: "object", properties: { code: { type: "string", enum: codes } } };
}

function exampleOf(code: ErrorCode): Json {
  const error = { code, message: ERROR_MEANING[code], request_id: "req_01kjwa5v00e7v8c9x2m4n6p8qr" };
  if (code !== "validation_error") return { error };
  return { error: { ...error, details: [{ field: "retries", message: "Must be an integer.", code: "invalid" }] } };
}
