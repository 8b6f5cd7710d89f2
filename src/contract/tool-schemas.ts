import Type, { type Static, type TObject } from "typebox";
import { DomainError, type ErrorCode } from "../domain/errors.ts";
import { REASON_CHARS_MAX } from "../domain/limits.ts";
import { isStorableText } from "../domain/json.ts";
import { ActionId, CreateAction } from "./action.ts";
import { compile, withoutNulls } from "./check.ts";
import { Decision, Retry } from "./decision.ts";
import { ENFORCED, key } from "./kinds.ts";
import { WaitQuery, WaitSeconds } from "./wait.ts";

const closed = { additionalProperties: false } as const;

/** What a create says beside the action itself; over REST these are a header and a query parameter. */
export const CreateOptions = Type.Object(
  {
    idempotency_key: Type.Optional(
      key(
        "Names this intent. Same intent, same key: reuse it whenever you repeat the call, and nothing is sent twice.",
      ),
    ),
    wait: WaitQuery.properties.wait,
  },
  closed,
);

export const CreateInput = Type.Object({ ...CreateAction.properties, ...CreateOptions.properties }, closed);
export const GetInput = Type.Object({ id: ActionId }, closed);
export const WaitInput = Type.Object({ id: ActionId, wait: WaitSeconds }, closed);
export const DecideInput = Type.Object({ id: ActionId, ...Decision.properties }, closed);
export const RetryInput = Type.Object({ id: ActionId, ...Retry.properties }, closed);

/** What a person is asked; flat and primitive, as MCP clients make a form of it. */
export const Verdict = Type.Object(
  {
    decision: Type.Enum(["approve", "reject"], {
      type: "string",
      title: "Decision",
      description: "approve: the call is made. reject: it is cancelled.",
    }),
    reason: Type.Optional(
      Type.Refine(
        Type.String({ title: "Reason", description: "Why; shown in the timeline.", maxLength: REASON_CHARS_MAX }),
        isStorableText,
      ),
    ),
  },
  closed,
);

type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

/** A schema as tools and forms print it. */
export interface PrintedSchema {
  [word: string]: Json;
  type: "object";
  properties: { [name: string]: { [word: string]: Json } };
}

/**
 * The JSON of a schema for clients of every kind. Only dates keep their format: some model providers refuse tools with any
 * other, and a validator's `uri` refuses URLs that we take.
 */
export function printed(schema: TObject): PrintedSchema {
  const isOurs = (word: string, value: unknown) =>
    word !== ENFORCED && (word !== "format" || typeof value !== "string" || value === "date-time");
  return printedWhere(schema, isOurs);
}

/** The same of what a tool takes, without what a model does not need: titles, and examples of what the description says. */
export function printedInput(schema: TObject): PrintedSchema {
  // A member of the input may have such a name too, and is an object.
  const isLeftOut = (word: string, value: unknown) =>
    (word === "title" && typeof value === "string") || (word === "examples" && Array.isArray(value));
  return printedWhere(printed(schema), (word, value) => !isLeftOut(word, value));
}

function printedWhere(schema: object, isPrinted: (word: string, value: unknown) => boolean): PrintedSchema {
  // Safe: an object schema prints as one.
  return JSON.parse(
    JSON.stringify(schema, (word, value: unknown) => (isPrinted(word, value) ? value : undefined)),
  ) as PrintedSchema;
}

/** Checks the arguments of a tool call, null members left out. What it returns throws `code` with every issue. */
export function compileArguments<S extends TObject>(schema: S, code: ErrorCode = "validation_error") {
  const check = compile(schema);
  return (given: unknown): Static<S> => {
    const value = withoutNulls(given, schema.properties);
    if (check.accepts(value)) return value;
    throw new DomainError(code, "The arguments are not valid.", check.issues(value));
  };
}
