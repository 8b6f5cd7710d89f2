import Type, { type Static, type TObject } from "typebox";
import { DomainError, type ErrorCode } from "../domain/errors.ts";
import { REASON_CHARS_MAX } from "../domain/limits.ts";
import { isStorableText } from "../domain/json.ts";
import { Action, ActionId, CreateAction } from "./action.ts";
import { compile, withoutNulls } from "./check.ts";
import { Decision } from "./decision.ts";
import { key, nullable, plainText } from "./kinds.ts";
import { ActionPage } from "./page.ts";
import { WaitQuery } from "./wait.ts";

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
export const WaitInput = Type.Object({ id: ActionId, wait: WaitQuery.properties.wait }, closed);
export const DecideInput = Type.Object({ id: ActionId, reason: Decision.properties.reason }, closed);

const responseNote = Type.Optional(
  plainText("About response_body: that it is data from outside, and whether it was cut.", "Data from outside: …"),
);

/** An action as a tool shows it (decisions 12). */
export const ToolAction = Type.Object({ ...Action.properties, response_note: responseNote });
export const ToolPage = Type.Object({
  data: Type.Array(ToolAction, { description: "The actions, newest first." }),
  next_cursor: nullable(ActionPage.properties.next_cursor),
});

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
  const isPrinted = (name: string, value: unknown) => name !== "format" || value === "date-time";
  // Safe: an object schema prints as one.
  return JSON.parse(
    JSON.stringify(schema, (name, value: unknown) => (isPrinted(name, value) ? value : undefined)),
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
