import type { Tool } from "@modelcontextprotocol/server";
import Type, { type Static, type TObject } from "typebox";
import { DomainError, type ErrorCode } from "../src/core/domain-error.ts";
import { REASON_CHARS_MAX } from "../src/core/limits.ts";
import {
  actionIdSchema,
  CreateActionBody,
  DecisionBody,
  RetryBody,
  WaitParameters,
  WaitSeconds,
} from "../src/api/action-schemas.ts";
import { ListParameters } from "../src/api/list-schemas.ts";
import { compile, onePerField, withoutNulls } from "../src/api/check.ts";
import { isJsonObject } from "../src/core/json.ts";
import { DESCRIBED_ONLY, key, storable, stringMap } from "../src/api/schema-helpers.ts";

const closed = { additionalProperties: false } as const;

/** Arguments of create other than the action; in REST these are a header and a query parameter. */
export const CreateToolOptions = Type.Object(
  {
    idempotency_key: Type.Optional(key("One for each intent; reuse it when you repeat the call.")),
    wait: WaitParameters.properties.wait,
  },
  closed,
);

const text = (description: string) => Type.Optional(Type.String({ description }));

const texts = (description: string) => Type.Optional(Type.Array(Type.String(), { description }));

const reason = (description: string) =>
  Type.Optional(storable(Type.String({ maxLength: REASON_CHARS_MAX, description })));

const run = (description: string) => Type.Optional(Type.Integer({ minimum: 1, description }));

/** Each schema here has one type, and each list says what it contains, since some model providers refuse other tools. */
const VALUE_TYPES = ["object", "string", "number", "boolean"].map((type) => ({ type }));

/** Short descriptions, since they cost tokens in every conversation; a test bounds their sum. The service checks arguments as for REST. */
const IN_FEW_WORDS = {
  url: Type.String({ description: "Where the call goes: http or https, to an allowed host." }),
  callback: text("Receives the events of this action."),
  reason: reason("Why; approvers read it. Required after a person's rejection."),
  text: text("Instead of body: text, as text/plain unless headers say otherwise."),
  base64: text("Instead of body: bytes in base64, as application/octet-stream unless headers say otherwise."),
  dedupe: Type.Optional(key("Within 24 hours, the same value means the same action.")),
  sync: Type.Optional(
    Type.Boolean({
      default: false,
      description: "Answer when the action has ended. Not with approve, nor where the key's hold applies.",
    }),
  ),
  on_unknown: Type.Optional(
    Type.Enum(["retry", "stop"], {
      type: "string",
      default: "retry",
      description: "When the target may have received an attempt: retry, or stop as failed.",
    }),
  ),
  credential: text("Name of the credential to send."),
  json: Type.Optional(
    Type.Unsafe<unknown>({
      anyOf: [...VALUE_TYPES, { type: "array", items: { anyOf: VALUE_TYPES } }, { type: "null" }],
      description: "Instead of body: any JSON value, null too.",
    }),
  ),
  headers: Type.Optional(stringMap("Headers of the call; content-type must fit the body.")),
  notify: Type.Optional(Type.Object({ email: Type.String() }, { ...closed, description: "Who is asked by mail." })),
  backoff: Type.Optional(
    Type.Object(
      { base_ms: Type.Integer(), cap_ms: Type.Integer() },
      { ...closed, description: "Delay: base_ms after the first failure, then doubled up to cap_ms." },
    ),
  ),
  give_up_on: Type.Optional(
    Type.Unsafe<unknown>({
      type: "array",
      items: { anyOf: [{ type: "integer" }, { type: "string" }] },
      description: "Statuses that are not retried, such as 422 or 4xx.",
    }),
  ),
};

export const CreateArguments = Type.Object(
  { ...CreateActionBody.properties, ...IN_FEW_WORDS, ...CreateToolOptions.properties },
  closed,
);

/** The filters of REST, with short descriptions. */
export const ListArguments = Type.Object(
  {
    ...ListParameters.properties,
    q: text("Text in host, path or title, a status such as 422 or 5xx, or the start of an id."),
    id: texts("Any of these actions."),
    host: text("Host name, with a port or for any port."),
    path: text("Start of the path."),
    dedupe: text("The dedupe of the create."),
    created_by: text("Id of a key."),
    response_code: texts("Statuses of the target: 422, 5xx."),
    title: text("Text in it."),
    reason: text("Text in it."),
    metadata: texts("name:value, or a name; all of them."),
    cursor: text("The next_cursor of the page before."),
  },
  closed,
);

/** The body of REST without the kind, with short descriptions. */
export const RequestCredentialArguments = Type.Object(
  {
    host: Type.String({ description: "The host to call, such as api.stripe.com." }),
    reason: Type.String({ description: "What it is for, and how the API takes it." }),
    name: Type.Optional(Type.String({ description: "A name to suggest." })),
    paths: texts("Where the paths of your calls begin."),
    methods: texts("Methods of your calls."),
  },
  closed,
);

export const NoArguments = Type.Object({}, closed);

export const GetArguments = Type.Object({ id: actionIdSchema }, closed);

export const WaitArguments = Type.Object({ id: actionIdSchema, wait: WaitSeconds }, closed);

export const DecideArguments = Type.Object(
  {
    id: actionIdSchema,
    ...DecisionBody.properties,
    reason: reason("Why; shown in the timeline."),
    run: run("The run to decide on; refused in any other. Default: the current run."),
  },
  closed,
);

export const RetryArguments = Type.Object(
  {
    id: actionIdSchema,
    ...RetryBody.properties,
    reason: reason("Why you retry; shown in the timeline. Required after a person's rejection."),
    run: run("The run to send again; refused in any other. Default: the current run."),
  },
  closed,
);

/** A person's answer. Flat, with primitive values, since MCP clients make a form of it. */
export const ApprovalForm = Type.Object(
  {
    decision: Type.Enum(["approve", "reject"], {
      type: "string",
      title: "Decision",
      description: "approve: the call is sent. reject: it is cancelled.",
    }),
    reason: Type.Optional(
      storable(
        Type.String({ title: "Reason", description: "Why; shown in the timeline.", maxLength: REASON_CHARS_MAX }),
      ),
    ),
  },
  closed,
);

/** A schema for any client. Some model providers refuse formats, and validators of `uri` refuse URLs that we take. */
export function schemaJson(schema: TObject): Tool["inputSchema"] {
  return withoutWords(
    schema,
    (word, value) =>
      word === DESCRIBED_ONLY || (word === "format" && typeof value === "string" && value !== "date-time"),
  );
}

/** The same for the input of a tool, without titles, examples and patterns, which would only cost tokens. */
export function inputSchemaJson(schema: TObject): Tool["inputSchema"] {
  // Check the value's type, too: an argument could be called `title`, and its schema is an object.
  return withoutWords(
    schemaJson(schema),
    (word, value) =>
      ((word === "title" || word === "pattern") && typeof value === "string") ||
      (word === "examples" && Array.isArray(value)),
  );
}

function withoutWords(schema: object, isLeftOut: (word: string, value: unknown) => boolean): Tool["inputSchema"] {
  // Safe: the JSON of an object schema.
  return JSON.parse(
    JSON.stringify(schema, (word, value: unknown) => (isLeftOut(word, value) ? undefined : value)),
  ) as Tool["inputSchema"];
}

/** Returns a function that validates the arguments of a call, ignoring null members. It throws `code` with every issue. */
export function compileArguments<S extends TObject>(schema: S, code: ErrorCode = "validation_error") {
  const check = compile(schema);
  return (given: unknown): Static<S> => {
    const value = withLists(withoutNulls(given, schema.properties), schema);
    if (check.accepts(value)) return value;
    const issues = check.issues(value).map(({ field, message }) => {
      const isOfId = field === "id" || field.startsWith("id.");
      return { field, message: isOfId ? ID_EXPECTED : message };
    });
    throw new DomainError(code, "The arguments are not valid.", onePerField(issues));
  };
}

const ID_EXPECTED =
  "Must be the id of an action, such as act_01kjwa5v00e7v8c9x2m4n6p8qr: create returns it, and list finds it.";

/** If a list is expected, takes a text for a list of one. */
function withLists(value: unknown, { properties }: TObject): unknown {
  if (!isJsonObject(value)) return value;
  const lists = Object.entries(value).filter(([name, member]) => {
    const schema: object = properties[name] ?? {};
    return typeof member === "string" && "type" in schema && schema.type === "array";
  });
  return lists.length === 0 ? value : { ...value, ...Object.fromEntries(lists.map(([name, one]) => [name, [one]])) };
}

/** An action, or an error instead; a refused approval has both. */
export const ActionResult = outputSchema("id");

/** A page, or an error instead. */
export const PageResult = outputSchema("data");

/** Accepts errors, too: clients refuse structured content that the tool's output schema doesn't accept. */
function outputSchema(member: string) {
  return { type: "object" as const, anyOf: [{ required: [member] }, { required: ["error"] }] };
}
