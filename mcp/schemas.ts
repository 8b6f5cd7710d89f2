import Type, { type Static, type TObject } from "typebox";
import { DomainError, type ErrorCode } from "../src/api/domain-error.ts";
import { REASON_CHARS_MAX } from "../src/config/limits.ts";
import { isStorableText } from "../src/json/json.ts";
import { ActionId, CreateAction, Decision, Retry, WaitQuery, WaitSeconds } from "../src/actions/schemas.ts";
import { compile, withoutNulls, ENFORCED, key } from "../src/api/schema-helpers.ts";
import { ListQuery } from "../src/actions/list-schemas.ts";

const closed = { additionalProperties: false } as const;

/** Arguments of create beside the action; in REST these are a header and a query parameter. */
export const CreateOptions = Type.Object(
  {
    idempotency_key: Type.Optional(
      key(
        "Identifies this intent. Same intent, same key: reuse it whenever you repeat the call, and nothing is sent twice.",
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

/** A person's answer. Flat, with primitive values, since MCP clients make a form of it. */
export const Verdict = Type.Object(
  {
    decision: Type.Enum(["approve", "reject"], {
      type: "string",
      title: "Decision",
      description: "approve: the call is sent. reject: it is cancelled.",
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

/** A schema in a tool or form. */
interface PrintedSchema {
  [word: string]: Json;
  type: "object";
  properties: { [name: string]: { [word: string]: Json } };
}

/**
 * A schema as JSON for any client. Only `date-time` is kept as a format: some model providers refuse tools with others,
 * and validators of `uri` refuse URLs that we accept.
 */
export function printed(schema: TObject): PrintedSchema {
  return printedWhere(
    schema,
    (word, value) => word !== ENFORCED && (word !== "format" || typeof value !== "string" || value === "date-time"),
  );
}

/** The same for the input of a tool, without titles and examples, which would only cost tokens. */
export function printedInput(schema: TObject): PrintedSchema {
  // By the value's type too: an argument could be called `title`, and its schema is an object.
  const isLeftOut = (word: string, value: unknown) =>
    (word === "title" && typeof value === "string") || (word === "examples" && Array.isArray(value));
  return printedWhere(printed(schema), (word, value) => !isLeftOut(word, value));
}

function printedWhere(schema: object, isPrinted: (word: string, value: unknown) => boolean): PrintedSchema {
  // Safe: the JSON of an object schema.
  return JSON.parse(
    JSON.stringify(schema, (word, value: unknown) => (isPrinted(word, value) ? value : undefined)),
  ) as PrintedSchema;
}

/** Returns a function that validates the arguments of a call, ignoring null members. It throws `code` with every issue. */
export function compileArguments<S extends TObject>(schema: S, code: ErrorCode = "validation_error") {
  const check = compile(schema);
  return (given: unknown): Static<S> => {
    const value = withoutNulls(given, schema.properties);
    if (check.accepts(value)) return value;
    throw new DomainError(code, "The arguments are not valid.", check.issues(value));
  };
}

/** MCP tool annotations. All four are set, because the defaults assume the worst. */
interface ToolHints {
  readonly readOnlyHint: boolean;
  readonly destructiveHint: boolean;
  readonly idempotentHint: boolean;
  readonly openWorldHint: boolean;
}

/** One tool: its operation of the API, and what a model reads about it. */
interface ToolShape {
  /** `operationId` of the same operation of the API. */
  readonly operation: string;
  readonly title: string;
  readonly description: string;
  /** Replaces `description` where AGENT_APPROVAL is off. */
  readonly descriptionWhenOff?: string;
  readonly annotations: ToolHints;
  readonly input: TObject;
}

const READS = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false } as const;

const SENDS = { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true } as const;

/** Every tool, in the order of the list. */
export const TOOLS = {
  create: {
    operation: "createAction",
    title: "Send an HTTP call",
    description:
      "Sends one HTTP call as an action: stored, held for approval if required, then signed and sent, and retried when " +
      "it fails. Use it for every call with an effect. Returns the action at once, with sync: true when it " +
      "has ended. Same intent, same idempotency_key: choose one for each intent and reuse it when you repeat this call " +
      "after an error or a lost answer; then nothing is sent twice. To send a failed action again use retry; to learn how " +
      "one ended use wait.",
    annotations: SENDS,
    input: CreateInput,
  },
  get: {
    operation: "getAction",
    title: "Look at an action",
    description:
      "Shows the current state of one action: status, attempts, the target's response, the error, and what can be done. " +
      "decision, decided_by and decision_reason say who decided on it, and why. To wait for the end use wait; to find an " +
      "action without its id use list.",
    annotations: READS,
    input: GetInput,
  },
  list: {
    operation: "listActions",
    title: "List actions",
    description:
      "Lists actions, newest first, by status, method, host, dedupe and time. Use it to find an action, or those that need " +
      'approval: status ["awaiting_approval"]. Returns data, without bodies (use get), and next_cursor when there are more.',
    annotations: READS,
    input: ListQuery,
  },
  wait: {
    operation: "getAction",
    title: "Wait for an action to end",
    description:
      "Waits until an action is completed, failed or cancelled, or until wait seconds have passed, and returns it as get " +
      "does. Without progress notifications it returns after 50 seconds: call it again. Ending the call doesn't end the " +
      "action. An approval may take hours: tell the person instead of waiting.",
    annotations: READS,
    input: WaitInput,
  },
  approve: {
    operation: "approveAction",
    title: "Ask for approval of an action",
    description:
      "Asks the person who uses this client to decide on a held action; call it only after you have told them what it " +
      "does. Returns the action with decision: approved (it is sent), rejected (cancelled; see decision_reason), declined " +
      "or unanswered (still held), or unavailable with an error that says who can decide. An answer after this call has " +
      "ended still counts: use get.",
    descriptionWhenOff:
      "Only for keys of an owner or approver: asks the person who uses this client to decide on a held action. " +
      "AGENT_APPROVAL is off here, so an agent's key is always refused: tell your person to decide in the inbox at " +
      "/approvals or by the link in the approval mail, and use get to learn what they decided.",
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: true },
    input: DecideInput,
  },
  cancel: {
    operation: "cancelAction",
    title: "Cancel an action",
    description:
      "Cancels an action that is pending or awaiting_approval, so that it is not sent. An action that is active or has " +
      "ended can't be cancelled. Returns the action.",
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    input: DecideInput,
  },
  retry: {
    operation: "retryAction",
    title: "Send an action again",
    description:
      "Sends a failed or cancelled action again as a new run, with the same request and Idempotency-Key. If it needed " +
      "approval, it needs it again. After a person's rejection call it only when they ask for it, with a reason, and at " +
      "most twice in 24 hours. Use it instead of another create; create a new action only for a new intent. Returns the " +
      "action, pending or awaiting_approval.",
    annotations: SENDS,
    input: RetryInput,
  },
} as const satisfies Readonly<Record<string, ToolShape>>;

export type ToolName = keyof typeof TOOLS;

/** The description of a tool under this setting of AGENT_APPROVAL. */
export function descriptionOf(tool: ToolShape, agentApproval: "elicit" | "off"): string {
  return agentApproval === "off" ? (tool.descriptionWhenOff ?? tool.description) : tool.description;
}
