import type { TObject } from "typebox";
import type { API } from "./operations.ts";
import { ListQuery } from "./page.ts";
import { CreateInput, DecideInput, GetInput, ToolAction, ToolPage, WaitInput } from "./tool-schemas.ts";

/** Hints for clients; nothing here relies on them. All four, because the defaults assume the worst. */
export interface ToolHints {
  readonly readOnlyHint: boolean;
  readonly destructiveHint: boolean;
  readonly idempotentHint: boolean;
  readonly openWorldHint: boolean;
}

/** One tool of agents: the operation that it is, and what a model reads of it. */
export interface ToolShape {
  readonly operation: keyof typeof API;
  readonly title: string;
  readonly description: string;
  readonly annotations: ToolHints;
  readonly input: TObject;
  readonly output: TObject;
}

const READS = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false } as const;
const SENDS = { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true } as const;

/** Every tool, in the order of the list (decisions 9). */
export const TOOLS = {
  create: {
    operation: "createAction",
    title: "Send an HTTP call",
    description:
      "Sends one HTTP call through Outgate as an action: stored first, held for a person where that is asked for, then " +
      "made, signed, and repeated when it fails. Use it for every call with an effect. Returns the action at once, or " +
      "with sync: true when it has ended. Same intent, same idempotency_key: choose one for each intent and reuse it " +
      "when you repeat this call after an error or a lost answer; then nothing is sent twice. approve: true holds the " +
      'action until a person agrees. on_unknown: "stop" never repeats an attempt that the target may have received. ' +
      "To send a failed action again use retry; to learn how one ended use wait.",
    annotations: SENDS,
    input: CreateInput,
    output: ToolAction,
  },
  get: {
    operation: "getAction",
    title: "Look at an action",
    description:
      "Shows one action as it is now: status, attempts, the target's answer, the error, and what may be done with it. " +
      "Returns at once; to wait for the end use wait, to find an action without its id use list.",
    annotations: READS,
    input: GetInput,
    output: ToolAction,
  },
  list: {
    operation: "listActions",
    title: "List actions",
    description:
      "Lists the account's actions, newest first, by status, method, host, dedupe and time. Use it to find an action, or " +
      'what waits for approval: status ["awaiting_approval"]. Returns a page, and next_cursor when there is more.',
    annotations: READS,
    input: ListQuery,
    output: ToolPage,
  },
  wait: {
    operation: "getAction",
    title: "Wait for an action to end",
    description:
      "Waits until an action is completed, failed or cancelled, or until wait seconds have passed, and returns it as it " +
      "is then. Without progress notifications it returns after 50 seconds: call it again. Giving up ends the wait, not " +
      "the action. What awaits approval may take hours: tell the person instead of waiting.",
    annotations: READS,
    input: WaitInput,
    output: ToolAction,
  },
  approve: {
    operation: "approveAction",
    title: "Ask for approval of an action",
    description:
      "Puts a held action to the person who uses this client, who approves or rejects it; call it only after you have " +
      "told them what it does. Returns the action: pending when approved, cancelled when rejected, awaiting_approval " +
      "when nobody decided. Where the client can't ask its person, only the key of an owner or approver may approve.",
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: true },
    input: DecideInput,
    output: ToolAction,
  },
  cancel: {
    operation: "cancelAction",
    title: "Cancel an action",
    description:
      "Ends an action that has not been sent yet (pending or awaiting_approval). What is active or has ended can't be " +
      "cancelled. Returns the action.",
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
    input: DecideInput,
    output: ToolAction,
  },
  retry: {
    operation: "retryAction",
    title: "Send an action again",
    description:
      "Sends a failed or cancelled action again as a new run: the same request, under the same Idempotency-Key. What " +
      "needed approval needs it again. Use it in place of another create; create a new action only for a new intent. " +
      "Returns the action, pending or awaiting_approval.",
    annotations: SENDS,
    input: DecideInput,
    output: ToolAction,
  },
} as const satisfies Readonly<Record<string, ToolShape>>;
export type ToolName = keyof typeof TOOLS;
