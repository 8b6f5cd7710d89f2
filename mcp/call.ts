import type { ElicitRequestFormParams } from "@modelcontextprotocol/server";
import type { ParsedJson } from "../src/contract/json-text.ts";
import type { Caller } from "../src/domain/caller.ts";

/** One HTTP request of a client: authenticated, counted and read. */
export interface AgentCall {
  readonly request: Request;
  readonly caller: Caller;
  /** Null where the method has no body. */
  readonly body: ParsedJson | null;
  /** Aborted when the answer has ended, or the client is gone. */
  readonly over: AbortSignal;
  /** Told when the answer waits for an action or a person: the time until then is no work. */
  readonly waits: () => void;
}

/** How a question gets to the person who uses the client. */
export type Questions =
  /** Revision 2026-07-28: the call ends with the question, and is made again with the answer and the state that went out. */
  | { readonly era: "modern"; readonly answers: Readonly<Record<string, unknown>> | null; readonly state: unknown }
  /** Before it: the question is a request of ours while the call waits. Resolves with the answer; rejects without one. */
  | { readonly era: "legacy"; readonly put: (form: Form) => Promise<unknown> };

/** What a person is asked, and what may be answered. */
export interface Form {
  readonly message: string;
  readonly requestedSchema: ElicitRequestFormParams["requestedSchema"];
}

/** How far a call has come. Each must be larger than the one before it. */
export interface Progress {
  readonly progress: number;
  readonly total: number;
  readonly message: string;
}

/** One call of a tool. */
export interface ToolCall {
  /** Whoever calls, as the newest request of the client has shown: a role may change while a person thinks. */
  readonly caller: () => Caller;
  readonly arguments: Readonly<Record<string, unknown>>;
  /** The text of an argument, numbers as they were written. */
  readonly textOf: (argument: string) => string;
  /** Aborted when nobody waits for the result any more, or the service stops. */
  readonly stop: AbortSignal;
  /** Null where the client wants to hear of none. */
  readonly tell: ((progress: Progress) => void) | null;
  /** Null where the client can't ask its person. */
  readonly questions: Questions | null;
}
