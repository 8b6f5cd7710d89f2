import Type, { type Static } from "typebox";
import { ACTION_STATUSES, HTTP_METHODS } from "../domain/action.ts";
import { RETRIES_DEFAULT, RETRIES_MAX } from "../domain/limits.ts";
import { OPERATIONS } from "../domain/transition.ts";
import { anyObject, dateTime, email, key, nullable, stringMap, url } from "./kinds.ts";

export const ActionId = Type.String({ pattern: "^act_[A-Za-z0-9_-]{1,64}$", description: "Id of an action." });
// `type` beside `enum`: clients that make forms of a schema want it.
export const Status = Type.Enum([...ACTION_STATUSES], { type: "string", description: "Where the action is." });
export const Method = Type.Enum([...HTTP_METHODS], { type: "string", description: "HTTP method of the call." });

const retries = (extra: { default?: number }) =>
  Type.Integer({ minimum: 1, maximum: RETRIES_MAX, description: "Most delivery attempts in one run.", ...extra });

/** What a create may say (spec "POST /v1/actions"). Members that are null count as absent, which is not shown here. */
export const CreateAction = Type.Object(
  {
    url: url("Where the call goes: http or https."),
    method: Type.Optional(
      Type.Enum([...HTTP_METHODS], { type: "string", default: "POST", description: "HTTP method." }),
    ),
    body: Type.Optional(anyObject("JSON body of the call, sent as written. Not with GET.")),
    headers: Type.Optional(stringMap("Headers of the call.")),
    dedupe: Type.Optional(key("Actions of one account with the same value within 24 hours are the same action.")),
    retries: Type.Optional(retries({ default: RETRIES_DEFAULT })),
    on_unknown: Type.Optional(
      Type.Enum(["retry", "stop"], {
        type: "string",
        default: "retry",
        description: "After an attempt that the target may or may not have received: try again, or end as failed.",
      }),
    ),
    approve: Type.Optional(
      Type.Boolean({ default: false, description: "Hold the action until a person approves it." }),
    ),
    sync: Type.Optional(
      Type.Boolean({ default: false, description: "Answer when the action has ended. Not with approve." }),
    ),
    notify: Type.Optional(
      Type.Object(
        { email: email("Who is asked for approval.") },
        { additionalProperties: false, description: "Approval mail." },
      ),
    ),
    callback: Type.Optional(url("Where news of this action is sent.")),
  },
  { additionalProperties: false },
);
export type CreateAction = Static<typeof CreateAction>;

const ActionError = Type.Object({
  source: Type.Enum(["target", "dispatch"], { type: "string" }),
  message: Type.String({ description: "The same text as last_error." }),
  response_code: nullable(Type.Integer()),
  response_body: Type.Unknown(),
});

/** An action as every answer shows it (spec "Action", decisions 12). `view.ts` writes it. */
export const Action = Type.Object({
  id: ActionId,
  status: Status,
  url: url("The target."),
  method: Method,
  body: nullable(anyObject("JSON body sent to the target.")),
  headers: nullable(stringMap("Headers of the call.")),
  dedupe: nullable(Type.String()),
  attempts: Type.Integer({ minimum: 0, description: "Delivery attempts used in this run." }),
  retries: retries({}),
  created_at: dateTime("When it was created."),
  started_at: nullable(dateTime("The first attempt of this run.")),
  finished_at: nullable(dateTime("When it ended.")),
  next_retry_at: nullable(dateTime("The next attempt, between two attempts.")),
  last_error: nullable(Type.String({ description: "How the last attempt failed." })),
  response_code: nullable(Type.Integer({ description: "HTTP status of the target." })),
  response_body: Type.Unknown({ description: "What the target answered: a JSON value, text, or base64." }),
  response_truncated: Type.Optional(Type.Literal(true, { description: "The answer was cut." })),
  duration_ms: nullable(Type.Integer({ minimum: 0, description: "How long the last attempt took." })),
  approve: Type.Boolean({ description: "Whether the action was held for approval." }),
  approved_at: nullable(dateTime("When it was approved.")),
  approved_by: nullable(Type.String({ description: "Who approved it." })),
  callback: nullable(url("Where news of this action is sent.")),
  idempotency_key: nullable(Type.String({ description: "Idempotency-Key of its creation." })),
  on_unknown: Type.Optional(Type.Literal("stop")),
  retries_remaining: Type.Optional(Type.Integer({ minimum: 0 })),
  next_retry_in_seconds: Type.Optional(Type.Integer({ minimum: 0 })),
  actions: Type.Array(Type.Enum([...OPERATIONS], { type: "string" }), { description: "What may be done with it now." }),
  error: Type.Optional(ActionError),
  receipt_url: nullable(Type.String({ format: "uri-reference", description: "Its receipt page." })),
  deduplicated: Type.Optional(Type.Literal(true, { description: "A create found this older action." })),
  differs: Type.Optional(Type.Array(Type.String(), { description: "Request fields that differ from it." })),
});
