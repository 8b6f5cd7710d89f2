import { POLICY_SOURCES } from "../core/action-policy.ts";
import { PAUSE_KINDS } from "../core/pause.ts";
import Type, { type Static } from "typebox";
import { CREDENTIAL_KINDS } from "../core/credential.ts";
import { ACTION_STATUSES, OPERATIONS } from "../core/action.ts";
import { HEADER_NAME_PATTERN, HEADER_VALUE_PATTERN } from "./call-headers.ts";
import {
  DELAY_SECONDS_MAX,
  HEADER_VALUE_BYTES_MAX,
  HEADERS_BYTES_MAX,
  HEADERS_MAX,
  JSON_DEPTH_MAX,
  JSON_MEMBERS_MAX,
  METADATA_NAME_PATTERN,
  METADATA_NAMES_MAX,
  METADATA_VALUE_CHARS_MAX,
  TITLE_CHARS_MAX,
  REQUEST_BODY_BYTES_MAX,
  RETRIES_DEFAULT,
  RETRIES_MAX,
  WAIT_SECONDS_DEFAULT,
  WAIT_SECONDS_MAX,
} from "../core/limits.ts";
import * as t from "./schema-helpers.ts";
import { retryMembers } from "./retry-settings.ts";
import { HTTP_METHODS } from "../core/target.ts";

// A schema's title, here `ActionId`, is its name in the API description.
export const actionIdSchema = t.idSchema("act", "Id of an action.", "ActionId");

export const credentialNameSchema = t.plainText(
  "Name of a credential: 1 to 63 lower-case letters, digits and _ . or -.",
  "stripe-live",
  { title: "CredentialName", pattern: t.CREDENTIAL_NAME },
);

export const CredentialKindName = t.choice(
  CREDENTIAL_KINDS,
  "bearer: `Authorization: Bearer <secret>`; header: a header of your choice; basic: a user name and a password; hmac: a signature of each request.",
  "bearer",
);

export const Status = t.choice(
  ACTION_STATUSES,
  "Where the action is. pending: waits to be sent; active: being sent; awaiting_approval: held for a person; " +
    "completed, failed and cancelled: it has ended.",
  "completed",
  { title: "ActionStatus" },
);

const method = (more: { readonly title?: string; readonly default?: "POST" }) =>
  t.choice(HTTP_METHODS, "HTTP method of the call.", "POST", more);

const retries = (more: { readonly default?: number }) =>
  t.integer(1, RETRIES_MAX, "Most delivery attempts in one run.", 3, more);

const switchedOff = (description: string) => Type.Boolean({ default: false, description, examples: [true] });

const callHeaders = t.stringMap(
  [
    "Headers of the call.",
    [
      `- Names are unique regardless of case; names and values have at most ${HEADERS_BYTES_MAX} bytes in all.`,
      "- `content-type`: with body or json, `application/json` or `application/*+json`; with form its own type; with text and base64 neither.",
      "- Refused are headers of message framing, of the connection and of Outgate itself: host, date, content-length, content-encoding, transfer-encoding, connection, keep-alive, te, trailer, upgrade, expect, via, forwarded, accept-encoding, cdn-loop, http2-settings, x-real-ip, x-http-method, x-http-method-override, x-method-override, x-original-url, x-rewrite-url, and names that begin with proxy-, sec-, webhook-, x-forwarded- or x-outgate-.",
      "- Refused for a key with the role agent are headers by which a proxy tells a target who someone is, such as x-remote-user, x-authentik-* or cf-access-* (but cf-access-client-id and cf-access-client-secret, which log a client in).",
    ].join("\n"),
  ].join("\n\n"),
  t.describedOnly({
    maxProperties: HEADERS_MAX,
    propertyNames: { pattern: HEADER_NAME_PATTERN },
    additionalProperties: { type: "string", maxLength: HEADER_VALUE_BYTES_MAX, pattern: HEADER_VALUE_PATTERN },
  }),
);

const BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$";

const formSchema = (description: string) =>
  Type.Unsafe<Readonly<Record<string, string | string[]>>>({
    type: "object",
    additionalProperties: { anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] },
    description,
    examples: [{ amount: "1200", "expand[]": ["charge", "customer"] }],
  });

/** The body of a create. Except in `json`, `null` counts as absent, which the schema does not show. */
export const CreateActionBody = t.requestObject(
  "CreateAction",
  `The call to make. A member that is null counts as absent, but for json. The whole request has at most ` +
    `${REQUEST_BODY_BYTES_MAX} bytes, a depth of ${JSON_DEPTH_MAX} and ${JSON_MEMBERS_MAX} object members.`,
  {
    url: t.targetUrl(
      "Where the call goes: http or https, without user name and password, to a host and port that are allowed; a path " +
        "does not begin with //.",
    ),
    method: Type.Optional(method({ default: "POST" })),
    body: Type.Optional(t.anyObject("JSON body of the call, sent as written. Not with GET.")),
    json: Type.Optional(
      // Lists every type, because clients that build forms from a schema need one.
      Type.Unsafe<unknown>({
        type: ["object", "array", "string", "number", "boolean", "null"],
        description: "Instead of body: any JSON value, null too. Give one of body, json, form, text, base64.",
        examples: [[{ op: "remove", path: "/a" }]],
      }),
    ),
    form: Type.Optional(formSchema("Instead of body: fields of a form; a list sends its name several times.")),
    text: Type.Optional(
      t.plainText(
        "Instead of body: a text, with your content-type header, default text/plain; charset=utf-8.",
        "a,b\n1,2\n",
      ),
    ),
    base64: Type.Optional(
      t.plainText(
        "Instead of body: bytes in base64, with your content-type header, default application/octet-stream.",
        "AAEC/w==",
        t.describedOnly({ pattern: BASE64 }),
      ),
    ),
    headers: Type.Optional(callHeaders),
    dedupe: Type.Optional(t.key("Actions of one account with the same value within 24 hours are the same action.")),
    retries: Type.Optional(retries({ default: RETRIES_DEFAULT })),
    on_unknown: Type.Optional(
      t.choice(
        ["retry", "stop"],
        "After an attempt that the target may or may not have received: try again, or end as failed.",
        "stop",
        { default: "retry" },
      ),
    ),
    approve: Type.Optional(switchedOff("Hold the action until a person approves it.")),
    sync: Type.Optional(
      switchedOff(
        "Wait for the end of the action before answering. Not with approve, and not for calls that the key's hold holds.",
      ),
    ),
    notify: Type.Optional(
      Type.Object(
        {
          email: t.emailSchema(
            "Who is asked for approval: one address, of a person of the account or one that APPROVERS allows. An owner key without a hold may name anyone while APPROVERS is empty.",
          ),
        },
        { additionalProperties: false, description: "Approval mail.", examples: [{ email: "ann@example.com" }] },
      ),
    ),
    callback: Type.Optional(
      t.targetUrl(
        "Receives the events of this action. Must be a target that url may name; for a key with a hold or a limit, and for agents where the account has rules, on a listed host.",
        "https://app.example.com/outgate",
      ),
    ),
    run_at: Type.Optional(t.dateTime("Not sent before this time, a year ahead at most.")),
    delay_seconds: Type.Optional(t.integer(1, DELAY_SECONDS_MAX, "In place of run_at: seconds from now.", 3_600)),
    expires_at: Type.Optional(t.dateTime("Cancelled if not sent before this time.")),
    ...retryMembers,
    credential: Type.Optional(
      Type.String({
        ...credentialNameSchema,
        title: "CredentialToUse",
        description: "Name of a credential that Outgate adds when it sends the call.",
      }),
    ),
    title: Type.Optional(
      t.line(
        TITLE_CHARS_MAX,
        "What the call does, in one line, for the person who decides.",
        "Refund 12.00 EUR to customer 4711",
      ),
    ),
    metadata: Type.Optional(
      t.stringMap("Names with a string each, to find it by.", {
        examples: [{ order: "4711" }],
        ...t.describedOnly({
          maxProperties: METADATA_NAMES_MAX,
          propertyNames: { pattern: METADATA_NAME_PATTERN },
          additionalProperties: { type: "string", maxLength: METADATA_VALUE_CHARS_MAX },
        }),
      }),
    ),
    reason: Type.Optional(
      t.reason(
        "Why you request the call; shown to approvers and in the timeline. Required from an agent's key if a person rejected the same request within the last 24 hours.",
      ),
    ),
  },
  {
    examples: [
      {
        url: "https://api.example.com/refunds",
        body: { charge: "ch_42", amount: 1200 },
        title: "Refund 12.00 EUR to customer 4711",
        approve: true,
      },
    ],
  },
);

export type CreateActionBody = Static<typeof CreateActionBody>;

const lastError = "The target answered with status 503.";

export const responseCode = (example: number) =>
  t.nullable(Type.Integer({ description: "HTTP status of the target; null: it gave none.", examples: [example] }));

export const responseBody = (example: unknown) =>
  Type.Unknown({
    description: "Body of the target's answer: a JSON value, text, or `{ encoding: base64, data }`; null: none.",
    examples: [example],
  });

const ActionError = t.answerObject("ActionError", "Why the action failed. Present only if it failed.", {
  source: t.choice(
    ["target", "dispatch"],
    "target: it answered with a status other than 2xx; dispatch: no whole answer arrived.",
    "target",
  ),
  message: t.plainText("The same text as last_error.", lastError),
  response_code: responseCode(503),
  response_body: responseBody("Service Unavailable"),
});

const LateResultJson = t.answerObject(
  "LateResult",
  "What the target answered to an attempt after Outgate had closed it as unknown. The status of the action stays as it " +
    "is; with a 2xx response_code the target has done what it asks for. Absent otherwise.",
  {
    run: t.run("The run of the attempt."),
    attempt: t.positive("The attempt in its run.", 1),
    response_code: Type.Integer({ description: "HTTP status of the target.", examples: [200] }),
    response_body: responseBody({ ok: true }),
    at: t.dateTime("When it became known."),
  },
);

const ActionCreator = t.answerObject("ActionCreator", "Who created it.", {
  id: t.nullable(
    t.plainText(
      "Id of the key; null: a person on the pages, the agent of `outgate mcp`, or not recorded.",
      "key_01kjwa5v00e7v8c9x2m4n6p8qr",
    ),
  ),
  name: t.plainText("Name of the key at that time, or the person's address.", "ci"),
});

const ActionPolicyJson = t.answerObject(
  "ActionPolicy",
  "Why it was held, or which rule or grant let it pass. Absent if nothing held it and no rule applies.",
  {
    effect: t.choice(["allow", "hold"], "What became of the request.", "hold"),
    by: t.choice(
      POLICY_SOURCES,
      "key: the hold of its key; caller: its own `approve`; rule: a rule of the account; grant: what a person allowed before.",
      "rule",
    ),
    id: t.nullable(t.plainText("Id of the rule or grant.", "rul_01kjwa5v00e7v8c9x2m4n6p8qr")),
    name: t.nullable(t.plainText("Its name at that time.", "Payments above 1,000")),
    version: t.nullable(t.positive("The version of the rule.", 3)),
    reason: t.nullable(
      t.plainText(
        "What an owner has written about the rule, or why it could not be decided.",
        "A person checks large payments.",
      ),
    ),
  },
);

export const pauseIdSchema = t.idSchema("pau", "Id of a pause.", "PauseId");

export const pauseKind = t.choice(
  PAUSE_KINDS,
  "account: the whole account; key: the actions of one key; host: the calls to one host; sign_up: the whole account, until an owner of the first account of the service allows it.",
  "key",
);

export const pauseReason = t.nullable(t.plainText("The reason that was given; null: none.", "It loops."));

const ActionPauseJson = t.answerObject(
  "ActionPause",
  "The pause that keeps it from being sent. Present if `paused` is.",
  { id: pauseIdSchema, kind: pauseKind, reason: pauseReason, created_at: t.dateTime("When it was paused.") },
);

/** An action in responses, as `see.ts` writes it. */
export const ActionJson = t.answerObject("Action", "One HTTP call: its request, state and result.", {
  id: actionIdSchema,
  status: Status,
  url: t.url("The target."),
  method: method({ title: "HttpMethod" }),
  body: t.nullable(t.anyObject("JSON body sent to the target. Null also where another member has the body.")),
  json: Type.Optional(Type.Unknown({ description: "JSON value sent to the target.", examples: [[1, 2]] })),
  form: Type.Optional(formSchema("Form sent to the target. A list of one value is shown as the value.")),
  text: Type.Optional(t.plainText("Text sent to the target.", "a,b\n1,2\n")),
  base64: Type.Optional(t.plainText("Bytes sent to the target, in base64.", "AAEC/w==")),
  headers: t.nullable(t.stringMap("Headers of the call.")),
  dedupe: t.nullable(t.plainText("Semantic key of deduplication.", "order-7")),
  run: t.run("The current run: 1, and one more with each retry. Attempts are counted per run."),
  attempts: t.quantity("Delivery attempts used in this run.", 1),
  retries: retries({}),
  created_at: t.dateTime("When it was created."),
  created_by: ActionCreator,
  started_at: t.nullable(t.dateTime("The first attempt of this run.")),
  finished_at: t.nullable(t.dateTime("When it ended.")),
  next_retry_at: t.nullable(t.dateTime("The next attempt, between two attempts.")),
  last_error: t.nullable(t.plainText("How the last attempt failed.", lastError)),
  response_code: responseCode(200),
  response_body: responseBody({ ok: true }),
  response_truncated: Type.Optional(t.constant(true, "The target's answer was longer than the part that is stored.")),
  late_result: Type.Optional(LateResultJson),
  duration_ms: t.nullable(t.quantity("How long the last attempt took.", 41)),
  approve: t.yesNo("Whether the action was held for approval.", false),
  approved_at: t.nullable(t.dateTime("When it was approved.")),
  approved_by: t.nullable(t.plainText("Who approved it.", "key:ann")),
  policy: Type.Optional(ActionPolicyJson),
  credential: Type.Optional(
    t.answerObject("ActionCredential", "The credential that it is sent with. Absent: none.", {
      name: credentialNameSchema,
      kind: CredentialKindName,
    }),
  ),
  callback: t.nullable(t.url("Receives the events of this action.", "https://app.example.com/outgate")),
  idempotency_key: t.nullable(t.plainText("Idempotency-Key of its creation.", "order-4711")),
  title: Type.Optional(
    t.plainText("What the call does, in the requester's words.", "Refund 12.00 EUR to customer 4711"),
  ),
  reason: Type.Optional(t.plainText("Why it was requested, in the requester's words.", "The parcel was lost.")),
  metadata: Type.Optional(t.stringMap("What the requester noted.", { examples: [{ order: "4711" }] })),
  run_at: Type.Optional(t.dateTime("It is not sent before this time. Present if the create said so.")),
  expires_at: Type.Optional(t.dateTime("No attempt begins from this time on. Present if the create said so.")),
  ...retryMembers,
  extras: Type.Optional(
    t.anyObject(
      "What another version of Outgate stored with the action and this one doesn't use. It is kept. Absent if there is nothing.",
      { priority: 7 },
    ),
  ),
  hidden_values: Type.Optional(
    t.positive("Number of values of the request that are masked for this key. Absent if none is.", 2),
  ),
  on_unknown: Type.Optional(
    t.constant("stop", "It ends as failed after an attempt that the target may have received."),
  ),
  retries_remaining: Type.Optional(
    t.quantity("Attempts left in this run, once one was made or the action was retried.", 2),
  ),
  next_retry_in_seconds: Type.Optional(t.quantity("Seconds until next_retry_at.", 2)),
  paused: Type.Optional(
    t.constant(true, "It is not sent until its pause ends. Absent otherwise, and in events and callbacks."),
  ),
  pause: Type.Optional(ActionPauseJson),
  actions: Type.Array(Type.Enum([...OPERATIONS], { type: "string" }), {
    description: "Operations that its status allows now.",
    examples: [["cancel"]],
  }),
  error: Type.Optional(ActionError),
  receipt_url: t.nullable(
    Type.String({
      format: "uri-reference",
      description:
        "Its receipt page, visible to everyone who has the link. Absolute if the service has a BASE_URL, else a path. " +
        "Null on the receipt itself.",
      examples: [
        "/r/4dQm0cJ1s9XwVtYk2hZbLqPnRfGeUaBi",
        "https://outgate.example.com/r/4dQm0cJ1s9XwVtYk2hZbLqPnRfGeUaBi",
      ],
    }),
  ),
  deduplicated: Type.Optional(t.constant(true, "A create found this older action. Absent otherwise.")),
  differs: Type.Optional(
    Type.Array(Type.String(), {
      description:
        "Fields of the request that differ from this older action: empty if none does. Absent unless a create found it.",
      examples: [["body"]],
    }),
  ),
});

export type ActionJson = Static<typeof ActionJson>;

export const DecisionBody = t.requestObject("Decision", "Optional details of a decision.", {
  reason: Type.Optional(t.reason("Why; shown in the timeline.")),
  run: Type.Optional(
    t.run("The run that the decision is for; it is refused if the action is in another one. Default: the current run."),
  ),
});

export type DecisionBody = Static<typeof DecisionBody>;

export const RetryBody = t.requestObject("Retry", "Optional details of a retry.", {
  run: Type.Optional(t.run("The run to send again; refused once the next has begun. Default: the current run.")),
  reason: Type.Optional(
    t.reason(
      "Why you retry; shown in the timeline. Required from an agent's key if a person rejected the request within the last 24 hours.",
    ),
  ),
});

const seconds = (description: string, more?: { readonly default: number }) =>
  Type.Optional(t.integer(1, WAIT_SECONDS_MAX, description, 60, more));

const BY_DEFAULT = { default: WAIT_SECONDS_DEFAULT };

export const WaitSeconds = seconds("Seconds to wait for the end of the action.", BY_DEFAULT);

export const WaitParameters = t.closedObject({
  wait: seconds("Seconds to wait for the end of the action. Ignored without sync.", BY_DEFAULT),
});

/** Without defaults: generated clients send them, so that each of their reads would wait. */
export const ReadParameters = t.closedObject({
  wait: seconds("Seconds to wait for the end of the action. Default: answer at once."),
});
