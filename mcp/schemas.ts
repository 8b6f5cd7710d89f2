import Type, { type Static, type TObject } from "typebox";
import { DomainError, type ErrorCode } from "../src/api/domain-error.ts";
import { REASON_CHARS_MAX } from "../src/config/limits.ts";
import { isStorableText } from "../src/json/scan.ts";
import { ActionId, CreateAction, Decision, Retry, WaitQuery, WaitSeconds } from "../src/actions/schemas.ts";
import { compile, withoutNulls, ENFORCED, key } from "../src/api/schema-helpers.ts";
import type { API } from "../src/api/operations.ts";
import { ListQuery } from "../src/actions/list-schemas.ts";

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
interface PrintedSchema {
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

/** Hints for clients; nothing here relies on them. All four, because the defaults assume the worst. */
interface ToolHints {
  readonly readOnlyHint: boolean;
  readonly destructiveHint: boolean;
  readonly idempotentHint: boolean;
  readonly openWorldHint: boolean;
}

/** One tool of agents: the operation that it is, and what a model reads of it. */
interface ToolShape {
  readonly operation: keyof typeof API;
  readonly title: string;
  readonly description: string;
  /** In place of it where no agent's key may approve, if that makes a difference. */
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
      "Sends one HTTP call as an action: stored, held for a person where that is asked for, then made, signed, and " +
      "repeated when it fails. Use it for every call with an effect. Returns the action at once, with sync: true when it " +
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
      "Shows one action as it is now: status, attempts, what the target answered, the error, and what may be done with it. " +
      "decision, decided_by and decision_reason say who decided on it, and why. To wait for the end use wait; to find an " +
      "action without its id use list.",
    annotations: READS,
    input: GetInput,
  },
  list: {
    operation: "listActions",
    title: "List actions",
    description:
      "Lists actions, newest first, by status, method, host, dedupe and time. Use it to find an action, or what waits for " +
      'a person: status ["awaiting_approval"]. Returns data, without bodies (get has them), and next_cursor when there is ' +
      "more.",
    annotations: READS,
    input: ListQuery,
  },
  wait: {
    operation: "getAction",
    title: "Wait for an action to end",
    description:
      "Waits until an action is completed, failed or cancelled, or until wait seconds have passed, and returns it as get " +
      "does. Without progress notifications it returns after 50 seconds: call it again. Giving up ends the wait, not the " +
      "action. What awaits approval may take hours: tell the person instead of waiting.",
    annotations: READS,
    input: WaitInput,
  },
  approve: {
    operation: "approveAction",
    title: "Ask for approval of an action",
    description:
      "Puts a held action to the person who uses this client; call it only after you have told them what it does. Returns " +
      "the action with decision: approved (it is sent), rejected (cancelled; decision_reason is theirs), declined or " +
      "unanswered (still held), or unavailable with an error that says who can decide. An approval that comes after you " +
      "gave up counts: get tells.",
    descriptionWhenOff:
      "For keys of an owner or approver only: puts a held action to the person who uses this client. AGENT_APPROVAL is off " +
      "here, so with an agent's key it is always refused: tell your person to decide in the inbox at /approvals or by the " +
      "link in the approval mail, and use get to learn what they decided.",
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: true },
    input: DecideInput,
  },
  cancel: {
    operation: "cancelAction",
    title: "Cancel an action",
    description:
      "Ends an action that is pending or awaiting_approval, so that it is not sent. What is active or has ended can't be " +
      "cancelled. Returns the action.",
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    input: DecideInput,
  },
  retry: {
    operation: "retryAction",
    title: "Send an action again",
    description:
      "Sends a failed or cancelled action again as a new run: the same request, under the same Idempotency-Key. What " +
      "needed approval needs it again; what a person rejected, only when they ask for it, with a reason, and twice in 24 " +
      "hours at most. Use it in place of another create; create a new action only for a new intent. Returns the action, " +
      "pending or awaiting_approval.",
    annotations: SENDS,
    input: RetryInput,
  },
} as const satisfies Readonly<Record<string, ToolShape>>;

export type ToolName = keyof typeof TOOLS;

/** What a model reads of a tool, where agents' keys may approve by an elicitation and where they may not. */
export function descriptionOf(tool: ToolShape, agentApproval: "elicit" | "off"): string {
  return agentApproval === "off" ? (tool.descriptionWhenOff ?? tool.description) : tool.description;
}
